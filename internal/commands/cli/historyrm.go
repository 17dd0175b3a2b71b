package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

type historyRm struct {
	serverFlags
	IDs    []string `arg:"" optional:"" name:"conversation" complete:"conversation" help:"Ids, or numbers as cove history shows them."`
	Before string   `placeholder:"WHEN" help:"All that were last used before a day such as 2026-11-21, or longer ago than 90d."`
	All    bool     `help:"All conversations."`
}

// Help is the long help.
func (historyRm) Help() string {
	return `A conversation is deleted with its turns, the code that ran and what it printed. Sessions with a name and files in the out folder stay.`
}

func (c *historyRm) run(ctx context.Context, p *Program) (int, error) {
	if len(c.IDs) == 0 && c.Before == "" && !c.All {
		return 0, problem.New(problem.Usage, "it is not said which conversations").WithHint("give numbers as cove history shows them, ids, --before or --all")
	}
	return 0, p.withPast(ctx, c.serverFlags, func(from past) error {
		chosen, err := c.chosen(ctx, from)
		if err != nil {
			return err
		}
		for n, id := range chosen {
			if err := from.Delete(ctx, id); err != nil {
				if n > 0 {
					notef(p.Err, "%s before that", lang.Text(deleted(n)))
				}
				return err
			}
		}
		fmt.Fprintln(p.Err, "cove: "+lang.Text(deleted(len(chosen))))
		return nil
	})
}

func deleted(n int) string {
	if n == 1 {
		return "1 conversation was deleted"
	}
	return fmt.Sprintf("%d conversations were deleted", n)
}

// chosen are the ids of the conversations that are meant. All are found before any is deleted, since numbers move.
func (c *historyRm) chosen(ctx context.Context, from past) (ids []string, err error) {
	add := func(id string) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range c.IDs {
		t, err := find(ctx, from, id)
		if err != nil {
			return nil, err
		}
		if t.conversation.ID == "" || len(t.turns) == 1 && t.turns[0].ID == id {
			return nil, problem.New(problem.IDInvalid, oneLine(id)+" is no conversation").WithHint("give an id that begins with cnv_, or a number as cove history shows it")
		}
		add(t.conversation.ID)
	}
	var until time.Time
	if c.Before != "" {
		if until, err = since(c.Before, time.Now()); err != nil {
			return nil, err
		}
	}
	if c.Before == "" && !c.All {
		return ids, nil
	}
	all, err := collected(from.Conversations(ctx))
	if err != nil {
		return nil, err
	}
	for _, one := range slices.DeleteFunc(all, func(one hub.Conversation) bool { return !c.All && !one.Used.Before(until) }) {
		add(one.ID)
	}
	return ids, nil
}
