package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

// searchedPlaces bounds the matches that a list of conversations is narrowed by.
const searchedPlaces = 5000

type historyCmd struct {
	Ls historyLs `cmd:"" default:"withargs" help:"List what was asked before."`
	Rm historyRm `cmd:"" help:"Delete conversations, with what they emitted."`
}

// Help is the long help.
func (historyCmd) Help() string {
	return `The database keeps what cove ask and cove chat did, unless history is off (cove config get store.history), for as long as store.retention says. The numbers are those that
cove show, rerun and export take; 1 is the conversation that was used last.

Examples:

    cove history
    cove history --search churn --since 30d
    cove history rm 3 cnv_06f1k3t3y4m0v8s2k5r7w9x1z4
    cove history rm --before 90d
    cove show 1`
}

type historyLs struct {
	serverFlags
	Search string `placeholder:"WORDS" help:"Only conversations in which these words are, as cove search finds them."`
	Source string `default:"" enum:"cli,api,openai," placeholder:"SOURCE" help:"Only those that came through cli, api or openai."`
	Since  string `placeholder:"WHEN" help:"Only those used since a day such as 2026-11-21, or a time such as 7d."`
	Limit  int    `short:"n" default:"20" placeholder:"N" help:"How many (default: 20)."`
	JSON   bool   `name:"json" help:"Print one conversation per line as JSON."`
}

// shownConversation is a conversation in --json.
type shownConversation struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Model    string    `json:"model"`
	Turns    int       `json:"turns"`
	Source   string    `json:"source"`
	Session  string    `json:"session,omitempty"`
	Created  time.Time `json:"created"`
	Used     time.Time `json:"used"`
	Files    []string  `json:"files,omitempty"`
	Position int       `json:"number"`
}

func shownOf(c hub.Conversation, n int) shownConversation {
	session := c.Session
	if session == "" {
		session = c.Metadata[metaSession]
	}
	return shownConversation{c.ID, c.Title, c.Model, c.Turns, c.Source, session, c.Created, c.Used, fileNames(c), n}
}

func (c *historyLs) run(ctx context.Context, p *Program) (int, error) {
	if err := limited(c.Limit); err != nil {
		return 0, err
	}
	return 0, p.withPast(ctx, c.serverFlags, func(from past) error {
		keep, err := c.filter(ctx, from)
		if err != nil {
			return err
		}
		var list []hub.Conversation
		var numbers []int
		shown, number := 0, 0
		for one, err := range from.Conversations(ctx) {
			if err != nil {
				return err
			}
			if number++; !keep(one) {
				continue
			}
			if !c.JSON {
				list, numbers = append(list, one), append(numbers, number)
			} else if err := p.printLine(shownOf(one, number)); err != nil {
				return err
			}
			if shown++; shown >= c.Limit {
				break
			}
		}
		if shown > 0 || c.JSON {
			return p.tellConversations(ctx, from, list, numbers)
		}
		if number > 0 {
			fmt.Fprintln(p.Err, "cove: "+lang.Text("the history has no such conversation, among "+strconv.Itoa(number)))
			return nil
		}
		notef(p.Err, "the history is empty; cove ask and cove chat write it")
		if !p.Config.Store.History {
			fmt.Fprintln(p.Err, "  "+lang.Text("it is off: cove config set store.history true"))
		}
		return nil
	})
}

// tellConversations prints a list of conversations.
func (p *Program) tellConversations(ctx context.Context, from past, list []hub.Conversation, numbers []int) error {
	p.live.Await(lang.Text("asking how the conversations ended"))
	turns := turnsOf(ctx, from, list)
	p.live.Over()
	var rows [][]string
	for n, one := range list {
		rows = append(rows, []string{strconv.Itoa(numbers[n]), oneLine(one.Title), dateTime(one.Used), turns[n], oneLine(one.Model), oneLine(one.Source), one.ID})
	}
	return p.table([]string{"#", "TITLE", "LAST USED", "TURNS", "MODEL", "SOURCE", "ID"}, 1, rows)
}

// How many conversations of one list are asked for their last turn, and how many at a time.
const (
	markedConversations = 100
	markedAtOnce        = 4
)

// turnsOf says of each conversation how many turns it has, and how the last one ended where that was not with an answer. The list is worth having without that: where one of
// them cannot be asked, no more are, and it is said of none.
func turnsOf(ctx context.Context, from records, list []hub.Conversation) []string {
	marks := make([]string, len(list))
	asking, stopped := errgroup.WithContext(ctx)
	asking.SetLimit(markedAtOnce)
	for n, c := range list[:min(len(list), markedConversations)] {
		if c.Turns == 0 {
			continue
		}
		if stopped.Err() != nil {
			break
		}
		asking.Go(func() error {
			if stopped.Err() != nil {
				return stopped.Err()
			}
			state, err := lastState(stopped, from, c.ID)
			if state != hub.TurnCompleted {
				marks[n] = stateWord(state)
			}
			return err
		})
	}
	failed := asking.Wait() != nil
	texts := make([]string, len(list))
	for n, c := range list {
		if texts[n] = strconv.Itoa(c.Turns); marks[n] != "" && !failed {
			texts[n] += " (" + marks[n] + ")"
		}
	}
	return texts
}

// lastState is the state of the turn that was asked last in a conversation.
func lastState(ctx context.Context, from records, conversation string) (hub.TurnState, error) {
	t, found, err := from.NewestTurn(ctx, conversation)
	if err == nil && found && t.IsTry() {
		t, err = from.Turn(ctx, t.Tries.Of)
	}
	return t.State, err
}

// filter says which conversations are wanted.
func (c *historyLs) filter(ctx context.Context, from past) (func(hub.Conversation) bool, error) {
	var begin time.Time
	if c.Since != "" {
		var err error
		if begin, err = since(c.Since, time.Now()); err != nil {
			return nil, err
		}
	}
	var found map[string]bool
	if strings.TrimSpace(c.Search) != "" {
		found = map[string]bool{}
		n := 0
		for f, err := range from.Search(ctx, c.Search) {
			if err != nil {
				return nil, err
			}
			found[f.Conversation] = true
			if n++; n >= searchedPlaces {
				break
			}
		}
	}
	return func(one hub.Conversation) bool {
		return (c.Source == "" || one.Source == c.Source) && !one.Used.Before(begin) && (found == nil || found[one.ID])
	}, nil
}

type searchCmd struct {
	serverFlags
	Words []string `arg:"" help:"The words; all of them must be there, and the last one may be the beginning of a longer one."`
	Limit int      `short:"n" default:"20" placeholder:"N" help:"How many places (default: 20)."`
	JSON  bool     `name:"json" help:"Print one place per line as JSON."`
}

// Help is the long help.
func (searchCmd) Help() string {
	return `The search covers questions, answers, code, and the beginning of what code printed. Chinese needs no spaces between words.

Examples:

    cove search churn
    cove search 客户流失`
}

func (c *searchCmd) run(ctx context.Context, p *Program) (int, error) {
	if err := limited(c.Limit); err != nil {
		return 0, err
	}
	words := strings.TrimSpace(strings.Join(c.Words, " "))
	if words == "" {
		return 0, problem.New(problem.Usage, "there are no words to search for").WithHint("for example: cove search churn")
	}
	return 0, p.withPast(ctx, c.serverFlags, func(from past) error {
		shown := 0
		for f, err := range from.Search(ctx, words) {
			if err != nil {
				return err
			}
			if err := c.place(p, f); err != nil {
				return err
			}
			if shown++; shown >= c.Limit {
				break
			}
		}
		if shown == 0 && !c.JSON {
			notef(p.Err, "nothing in the history has these words")
		}
		return nil
	})
}

// fieldWord is the word for a part of the history in which words were found.
func fieldWord(field string) string {
	switch field {
	case "title":
		return lang.Text("title")
	case "prompt":
		return lang.Text("question")
	case "answer":
		return lang.Text("answer")
	case "code":
		return lang.Text("code")
	case "output":
		return lang.Text("output")
	}
	return field
}

func (c *searchCmd) place(p *Program, f hub.Found) error {
	id := f.Turn
	if id == "" {
		id = f.Execution
	}
	if c.JSON {
		text, err := json.Marshal(map[string]any{"at": f.At, "field": f.Field, "snippet": f.Snippet, "conversation": f.Conversation, "turn": f.Turn, "execution": f.Execution})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Out, "%s\n", text)
		return err
	}
	_, err := lang.Fprintf(p.Out, "%s  %s  in the %s\n    %s\n", dateTime(f.At), id, fieldWord(f.Field), oneLine(f.Snippet))
	return err
}
