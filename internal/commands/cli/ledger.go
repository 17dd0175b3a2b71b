package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"cove/internal/server/audit"
	"cove/internal/server/hub"
)

type usageCmd struct {
	adminFlags
	Project string `placeholder:"PROJECT" help:"Id or name of the project (default: local; on a server, the project of the key)."`
	Of      string `name:"of" placeholder:"KEY" help:"Of one key, by its id."`
	Models  bool   `help:"How answers went, by day and model: completed, repaired, failed, installs, seconds."`
	Since   string `default:"30d" placeholder:"WHEN" help:"A day such as 2026-11-21, or how long ago (default: 30d)."`
	JSON    bool   `name:"json" help:"Print the days as one JSON array."`
}

// Help is the long help.
func (usageCmd) Help() string {
	return `Days are those of UTC. The counts include the work of a server, and that of cove ask, chat and run --session on this machine.
With --server they are those of a server; other projects than the key's own take the key of an admin of the server.

Examples:

    cove usage --project lab --since 7d
    cove usage --server https://cove.example.com`
}

func (c *usageCmd) run(ctx context.Context, p *Program) (int, error) {
	now := time.Now().UTC()
	from, err := since(c.Since, now)
	if err != nil {
		return 0, err
	}
	return 0, p.administer(ctx, c.adminFlags, func(a administration) error {
		if c.Models {
			return c.models(ctx, p, a, from.Format(day), now.Format(day))
		}
		days, err := a.Usage(ctx, c.Project, c.Of, from.Format(day), now.Format(day))
		if err != nil {
			return err
		}
		if c.JSON {
			return p.printJSON(append([]hub.Usage{}, days...))
		}
		if len(days) == 0 {
			notef(p.Err, "nothing was used in these days")
			return nil
		}
		w := newRows(p.Out, true)
		w.head("DAY", "EXECUTIONS", "WALL", "CPU", "TURNS", "TOKENS IN", "TOKENS OUT", "UPLOADED", "COST", "")
		var sum hub.Usage
		for _, d := range days {
			usageRow(w, d)
			sum = added(sum, d)
		}
		if len(days) > 1 {
			sum.Day = "all"
			usageRow(w, sum)
		}
		return w.Flush()
	})
}

// models prints how answers went.
func (c *usageCmd) models(ctx context.Context, p *Program, a administration, first, last string) error {
	days, err := a.Answers(ctx, c.Project, first, last)
	if err != nil {
		return err
	}
	if c.JSON {
		return p.printJSON(append([]hub.AnswerDay{}, days...))
	}
	if len(days) == 0 {
		notef(p.Err, "no model was asked in these days")
		return nil
	}
	w := newRows(p.Out, true)
	w.head("DAY", "MODEL", "TURNS", "COMPLETED", "REPAIRED", "FAILED", "STEPS", "FAILED", "INSTALLS", "FAILED", "MEDIAN", "P95", "")
	for _, d := range days {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t\n", oneLine(d.Day), oneLine(d.Model), d.Turns, d.Completed, d.Repaired, d.Failed, d.Steps, d.FailedSteps,
			d.Installs, d.FailedInstalls, within(d.Median), within(d.P95))
	}
	return w.Flush()
}

// within is a bound of AnswerDay in words.
func within(seconds float64) string {
	if seconds > 512 {
		return "> 512 s"
	}
	return fmt.Sprintf("≤ %g s", seconds)
}

func usageRow(w *rows, d hub.Usage) {
	fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t\n", oneLine(d.Day), d.Executions, spent(d.WallSeconds), spent(d.CPUSeconds), d.Turns, d.InputTokens, d.OutputTokens,
		humanSize(d.UploadBytes), charged(d))
}

// charged is what a day's tokens cost; nothing is known of days without a currency.
func charged(d hub.Usage) string {
	if d.Currency == "" {
		return ""
	}
	return fmt.Sprintf("%.4f %s", d.Cost, oneLine(d.Currency))
}

func spent(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}

func added(a, b hub.Usage) hub.Usage {
	a.Executions += b.Executions
	a.WallSeconds += b.WallSeconds
	a.CPUSeconds += b.CPUSeconds
	a.Turns += b.Turns
	a.InputTokens += b.InputTokens
	a.OutputTokens += b.OutputTokens
	a.UploadBytes += b.UploadBytes
	if b.Currency != "" && b.Currency != a.Currency { // days of two currencies are no sum
		a.Cost, a.Currency = 0, b.Currency
	}
	a.Cost += b.Cost
	return a
}

type auditCmd struct {
	adminFlags
	Project string `placeholder:"PROJECT" help:"Id or name of one project; without: all that you may see."`
	User    string `placeholder:"USER" help:"Only of one user: id or name."`
	Of      string `name:"of" placeholder:"KEY" help:"Only of one key, by its id."`
	Action  string `placeholder:"ACTION" help:"Only one action, or all that begin so: session.create, or session."`
	Target  string `placeholder:"ID" help:"Only on this session, key, file, ..., by its id."`
	Outcome string `placeholder:"OUTCOME" help:"Only ok, refused (all that is not ok), or one problem's code."`
	Since   string `placeholder:"WHEN" help:"Only from a day such as 2026-11-21 on, or so long ago (7d)."`
	Until   string `placeholder:"WHEN" help:"Only before a day such as 2026-11-21, or before so long ago."`
	Limit   int    `default:"50" placeholder:"N" help:"How many rows, the newest first (default: 50)."`
	JSON    bool   `name:"json" help:"Print one row per line as JSON."`
}

// Help is the long help.
func (auditCmd) Help() string {
	return `A row for every change that anybody asked a server for, also when it was refused. Code, keys and contents of files are not in it.
With --server it is the log of a server, which takes a key with audit:read; of all projects, that of an admin of the server.

Examples:

    cove audit --project lab --outcome refused --since 7d
    cove audit --user ada --action session --json`
}

// query is what the flags ask for.
func (c *auditCmd) query() (q audit.Query, err error) {
	q = audit.Query{User: c.User, Key: c.Of, Action: c.Action, Target: c.Target, Outcome: c.Outcome}
	now := time.Now().UTC()
	if c.Since != "" {
		if q.From, err = since(c.Since, now); err != nil {
			return q, err
		}
	}
	if c.Until != "" {
		q.To, err = since(c.Until, now)
	}
	return q, err
}

func (c *auditCmd) run(ctx context.Context, p *Program) (int, error) {
	if err := limited(c.Limit); err != nil {
		return 0, err
	}
	query, err := c.query()
	if err != nil {
		return 0, err
	}
	return 0, p.administer(ctx, c.adminFlags, func(a administration) error {
		names := userNames(ctx, a)
		for id, name := range names {
			if name == c.User {
				query.User = id
			}
		}
		var rows [][]string
		for left := c.Limit; left > 0; {
			query.Limit = min(left, 1000)
			found, err := a.Rows(ctx, c.Project, query)
			if err != nil {
				return err
			}
			for _, row := range found {
				if query.Before = row.ID; !c.JSON {
					rows = append(rows, auditRow(row, names))
				} else if err := p.printLine(row); err != nil {
					return err
				}
			}
			if left -= len(found); len(found) == 0 {
				break
			}
		}
		if len(rows) == 0 && !c.JSON {
			notef(p.Err, "the audit log has no such rows; `cove audit` shows the newest 50")
			return nil
		}
		return p.table([]string{"WHEN", "USER", "ACTION", "TARGET", "OUTCOME", "FROM"}, 3, rows)
	})
}

func auditRow(row audit.Row, names map[string]string) []string {
	return []string{row.At.Local().Format(time.DateTime), oneLine(cmp.Or(names[row.User], row.User)), oneLine(row.Action), oneLine(row.Target), oneLine(row.Outcome), oneLine(row.IP)}
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
