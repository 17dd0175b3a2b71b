package api

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"cove/internal/python/notebook"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/transcript"
)

// Charts that people made of tables are steps of their own: executions without a turn, whose first line has their settings (web/src/chart/settings.ts). Code is a
// person's, and what it says of itself is believed as far as it says where a chart stands.

const (
	chartMark = "# Chart settings for the page: "
	// longestChartMark bounds that line, mostChartPages the executions of a session that are looked at, mostOwnCharts the charts of a document.
	longestChartMark = 30_000
	mostChartPages   = 20
	mostOwnCharts    = 200
)

// ownChart is the newest version of a chart.
type ownChart struct {
	id, after string
	removed   bool
	first     time.Time // when it was made
	execution hub.Execution
}

func readOwnChart(e hub.Execution) (ownChart, bool) {
	line, _, more := strings.Cut(e.Code, "\n")
	said, marked := strings.CutPrefix(line, chartMark)
	if !more || !marked || len(line) > longestChartMark || e.Turn != "" {
		return ownChart{}, false
	}
	var mark struct {
		ID      string `json:"id"`
		After   string `json:"after"`
		Removed bool   `json:"removed"`
	}
	if json.Unmarshal([]byte(said), &mark) != nil || mark.ID == "" {
		return ownChart{}, false
	}
	return ownChart{id: mark.ID, after: mark.After, removed: mark.Removed, first: e.Created, execution: e}, true
}

// ownCharts returns the charts that people made in the sessions of a branch, the oldest first. Who may not read sessions gets none.
func (s *server) ownCharts(ctx context.Context, who auth.Principal, branch []hub.Turn) ([]ownChart, error) {
	if who.Require(auth.SessionsRead) != nil {
		return nil, nil
	}
	var found []ownChart
	for _, session := range sessionsOfBranch(branch) {
		page := hub.Page{Limit: 100}
		for range mostChartPages {
			list, err := s.o.Hub.Executions(ctx, who, hub.ExecutionFilter{Session: session}, page)
			if err != nil {
				return nil, err
			}
			for _, e := range list.Items {
				if c, is := readOwnChart(e); is {
					found = append(found, c)
				}
			}
			if page.After = list.Next; page.After == "" {
				break
			}
		}
	}
	slices.SortStableFunc(found, func(a, b ownChart) int {
		return cmp.Or(a.execution.Created.Compare(b.execution.Created), cmp.Compare(a.execution.ID, b.execution.ID))
	})
	return newestCharts(found), nil
}

// newestCharts returns the last version of each chart, in the place of its first one, without those that were removed.
func newestCharts(found []ownChart) []ownChart {
	var out []ownChart
	for _, c := range found {
		if i := slices.IndexFunc(out, func(o ownChart) bool { return o.id == c.id }); i >= 0 {
			out[i].execution, out[i].removed = c.execution, c.removed
		} else if len(out) < mostOwnCharts {
			out = append(out, c)
		}
	}
	return slices.DeleteFunc(out, func(c ownChart) bool { return c.removed })
}

func sessionsOfBranch(branch []hub.Turn) []string {
	var out []string
	add := func(session string) {
		if session != "" && !slices.Contains(out, session) {
			out = append(out, session)
		}
	}
	for _, t := range branch {
		add(t.Session)
		if t.Origin != nil {
			add(t.Origin.Session)
		}
		if u := t.UndoneTo(); u != nil {
			add(u.Session)
		}
	}
	return out
}

// standsAfter returns the place in a branch of the turn that a chart stands after: the one that it names, or the one that is a copy of that, or else the last one that was asked before it; -1: none.
func (c ownChart) standsAfter(branch []hub.Turn) int {
	if c.after != "" {
		return slices.IndexFunc(branch, func(t hub.Turn) bool { return c.after == t.ID || t.Origin != nil && c.after == t.Origin.Turn })
	}
	for i, t := range slices.Backward(branch) {
		if !t.Created.After(c.first) {
			return i
		}
	}
	return -1
}

// chartTurn returns the charts that stand after the turn at a place of a branch as a part of a document. size is of all that was read.
func (s *server) chartTurn(ctx context.Context, who auth.Principal, branch []hub.Turn, place int, charts []ownChart, size *int64) ([]notebook.Turn, error) {
	var out notebook.Turn
	for _, c := range charts {
		if c.standsAfter(branch) != place {
			continue
		}
		cell := notebook.Cell{Code: c.execution.Code}
		recorded, err := s.o.Hub.Recorded(ctx, who, c.execution.ID)
		if err != nil {
			return nil, err
		}
		for n, err := range recorded {
			if err == nil {
				err = countExport(ctx, n.Event, size)
			}
			if err != nil {
				return nil, err
			}
			if e, err := transcript.ParseEvent(n.Event); err == nil && !n.Gap {
				cell.Add(e)
			}
		}
		out.Blocks = append(out.Blocks, notebook.Block{Text: "*A chart that a person made of a table:*"}, notebook.Block{Cell: &cell})
	}
	if len(out.Blocks) == 0 {
		return nil, nil
	}
	return []notebook.Turn{out}, nil
}
