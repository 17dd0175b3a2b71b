package cli

import (
	"context"
	"fmt"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/server/hub"
)

type modelsCmd struct {
	serverFlags
	JSON bool `name:"json" help:"Print them as one JSON array, as the API has them."`
}

// Help is the long help.
func (modelsCmd) Help() string {
	return `The default comes first, then the other models of its provider: as that says which it has, and on a server as its settings name them.
What a model takes at once, and what a million of its tokens cost, is what the settings say (models.about; see docs/configuration.md).

Examples:

    cove models
    cove ask --model openai/gpt-5.5 "..."
    cove models --server https://cove.example.com`
}

func (c *modelsCmd) run(ctx context.Context, p *Program) (int, error) {
	if p.ConfigErr != nil {
		return 0, p.ConfigErr
	}
	base, key, err := c.remote(p.Config)
	if err != nil {
		return 0, err
	}
	p.signs(c.JSON).Await(lang.Text("asking for models"))
	var list []api.Model
	if base != "" {
		server := client.New(base, key)
		defer server.Close()
		list, err = server.Models(ctx)
	} else {
		list, err = p.models(ctx, "")
	}
	p.live.Over()
	if err != nil {
		return 0, err
	}
	if c.JSON {
		return 0, p.printJSON(append([]api.Model{}, list...))
	}
	if len(list) == 0 {
		notef(p.Err, "the server has no language model; an admin connects one, or its operator with models.serve")
		return 0, nil
	}
	return 0, p.tellModels(list, "")
}

// models lists those that this machine can ask: the one that is named, "" for the default, and the others of its provider. That the provider does not say which it has is said.
func (p *Program) models(ctx context.Context, named string) ([]api.Model, error) {
	if err := p.Config.Validate(); err != nil {
		return nil, err
	}
	found, silent, err := p.Models(ctx, p.Config, named)
	if err != nil {
		return nil, err
	}
	if silent != nil {
		silent = problem.New(problem.ModelProvider, "the provider does not say which models it has").WithCause(silent)
		if len(found) == 0 {
			return nil, silent
		}
		p.live.Over()
		fmt.Fprintln(p.Err, "cove: "+lang.Text(oneLine(spoken(silent))))
	}
	return modelsFrom(found), nil
}

func modelsFrom(found []hub.ModelInfo) []api.Model {
	out := make([]api.Model, 0, len(found))
	for _, m := range found {
		out = append(out, api.ModelOf(m))
	}
	return out
}

// tellModels prints models with what is known of them. The one that is asked has a mark: current, or the default where that is "".
func (p *Program) tellModels(list []api.Model, current string) error {
	rows := make([][]string, 0, len(list))
	for _, m := range list {
		mark := " "
		if m.ID == current || current == "" && m.Default {
			mark = "*"
		}
		rows = append(rows, []string{mark + " " + oneLine(m.ID), contextOf(m), sightOf(m), priceOf(m)})
	}
	return p.table([]string{"  MODEL", "CONTEXT", "IMAGES", "PRICE OF A MILLION TOKENS"}, 3, rows)
}

// contextOf is how many tokens a model takes at once.
func contextOf(m api.Model) string {
	if m.Context == 0 {
		return "-"
	}
	return fmt.Sprint(m.Context)
}

// sightOf says whether a model sees images.
func sightOf(m api.Model) string {
	switch {
	case m.Vision == nil:
		return "-"
	case *m.Vision:
		return lang.Text("yes")
	}
	return lang.Text("no")
}

func priceOf(m api.Model) string {
	if m.Price == nil {
		return "-"
	}
	text := fmt.Sprintf("%g in, %g out", m.Price.Input, m.Price.Output)
	if m.Price.Cached != nil {
		text += fmt.Sprintf(", %g cached", *m.Price.Cached)
	}
	return text + " " + oneLine(m.Price.Currency)
}
