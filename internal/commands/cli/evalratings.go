package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"cove/internal/core/lang"
	"cove/internal/http/api"
	"cove/internal/llm/eval"
	"cove/internal/server/hub"
)

type evalRatingsCmd struct {
	serverFlags
	Limit int  `default:"20" placeholder:"N" help:"Name at most so many answers that are not good (default: 20)."`
	JSON  bool `name:"json" help:"Print the figures and all ratings as one JSON object."`
}

// Help is the long help.
func (evalRatingsCmd) Help() string {
	return `People rate answers on the page, or by the API. This counts how many answers of each model are good, and names those that are not, the newest first, with the reasons.

Examples:

    cove eval ratings
    cove eval ratings --server http://127.0.0.1:8700 --json`
}

// modelRating is what people say of one model's answers.
type modelRating struct {
	Model string     `json:"model"`
	Good  eval.Share `json:"good"`
}

func (c *evalRatingsCmd) run(ctx context.Context, p *Program) (int, error) {
	if err := limited(c.Limit); err != nil {
		return 0, err
	}
	from, err := p.past(ctx, c.serverFlags)
	if err != nil {
		return 0, err
	}
	defer func() { _ = from.close() }()
	rated, err := collected(from.Rated(ctx))
	if err != nil {
		return 0, err
	}
	models := ratingsOf(rated)
	if c.JSON {
		e := json.NewEncoder(p.Out)
		e.SetIndent("", "  ")
		return 0, e.Encode(map[string]any{"models": models, "interval": "Wilson, 95 %", "ratings": append([]api.RatedTurn{}, rated...)})
	}
	if len(rated) == 0 {
		notef(p.Err, "no answer has a rating")
		return 0, nil
	}
	t := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, lang.Text("MODEL")+"\t"+lang.Text("GOOD ANSWERS"))
	for _, m := range models {
		fmt.Fprintf(t, "%s\t%s\n", oneLine(m.Model), m.Good)
	}
	if err := t.Flush(); err != nil {
		return 0, err
	}
	named := 0
	for _, r := range rated {
		if r.Rating.Good {
			continue
		}
		if named++; named > c.Limit {
			break
		}
		fmt.Fprintf(p.Out, "\n%s  %s  %s\n  › %s\n", r.Turn, r.Created.Local().Format("2006-01-02 15:04"), oneLine(r.Model), oneLine(cut(r.Prompt)))
		if r.Rating.Reason != "" {
			fmt.Fprintf(p.Out, "  %s\n", oneLine(cut(r.Rating.Reason)))
		}
	}
	return 0, nil
}

// cut is the beginning of a text.
func cut(text string) string {
	const most = 160
	if whole := []rune(strings.TrimSpace(text)); len(whole) > most {
		return string(whole[:most]) + "…"
	}
	return text
}

// ratingsOf counts the ratings of each model, by its name.
func ratingsOf(rated []api.RatedTurn) []modelRating {
	good, all := map[string]int{}, map[string]int{}
	for _, r := range rated {
		if all[r.Model]++; r.Rating.Good {
			good[r.Model]++
		}
	}
	out := []modelRating{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, modelRating{name, eval.NewShare(good[name], all[name])})
	}
	return out
}

// ratedOf is a rated turn as the API has it.
func ratedOf(t hub.Turn) api.RatedTurn {
	r := cmp.Or(t.Rating, &hub.Rating{}) // none comes with an error
	return api.RatedTurn{Turn: t.ID, Conversation: t.Conversation, Model: t.Model, Prompt: t.Prompt, Answer: t.Answer, Created: t.Created, Rating: &api.Rating{Good: r.Good, Reason: r.Reason, User: r.User, At: r.At}}
}
