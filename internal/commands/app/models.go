package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/llm/model/choose"
	"cove/internal/server/hub"
)

// modelsFresh is how long a provider's list of models is taken for the present one.
const modelsFresh = time.Minute

// listedAgain is how long a provider is left alone that did not say what models it has.
const listedAgain = 5 * time.Second

// models are what a server's clients may ask.
type models struct {
	cfg   config.Config
	store hub.ConnectionStore // nil: the settings alone count

	mu     sync.Mutex
	listed []hub.ModelInfo
	when   time.Time
}

var _ hub.Models = (*models)(nil)

// Open implements hub.Models. Clients never reach a file of the operator's: a recording is only what the settings name.
func (m *models) Open(ctx context.Context, name string) (model.Model, error) {
	cfg, changed, err := m.connected(ctx)
	if err != nil {
		return nil, err
	}
	from := m
	if changed {
		from = &models{cfg: cfg}
	}
	choice, err := from.choose(ctx, name)
	switch {
	case problem.Has(err, problem.NoModel):
		return nil, problem.New(problem.NoModel, "this server has no language model").
			WithHint("an admin connects one (PUT /api/v1/connections), or its operator: models.serve with OPENAI_API_KEY, ANTHROPIC_API_KEY, OPENAI_BASE_URL or an Ollama server; code runs without").WithCause(err)
	case problem.Has(err, problem.ModelNotNamed):
		return nil, problem.New(problem.ModelNotNamed, "this server has several models, and none that is meant without a name").
			WithHint("name one of the list of models; its operator sets the usual one with models.serve").WithCause(err)
	case err != nil:
		return nil, err
	}
	opened, err := newModel(cfg, choice)
	if err != nil {
		return nil, err
	}
	if choice.Provider == "replay" {
		opened = nameless{opened}
	}
	return opened, nil
}

// nameless keeps to itself where a recording is.
type nameless struct{ model.Model }

// Name implements model.Model.
func (nameless) Name() string { return "replay" }

func (m *models) choose(ctx context.Context, name string) (choose.Choice, error) {
	if served := m.cfg.Models.Serve; len(served) > 0 {
		return m.among(served, name)
	}
	usual, err := choose.Model(ctx, m.cfg, "")
	several := problem.Has(err, problem.ModelNotNamed)
	if name == "" || err != nil && !several || name == usual.String() || usual.Provider == "replay" {
		return usual, err
	}
	if provider, _, qualified := strings.Cut(name, "/"); qualified && isProvider(provider) {
		// A service may have names that begin like a provider's: openai/gpt-oss-20b.
		whole := cmp.Or(usual.Provider, "openai") + "/" + name
		if listed, err := m.List(ctx); err == nil && has(listed, whole) && !has(listed, name) {
			name = whole
		}
		return choose.Parse(m.cfg, name)
	}
	// A name alone, and one such as Qwen/Qwen3-8B, is the default provider's.
	if several {
		return choose.Parse(m.cfg, "openai/"+name)
	}
	usual.Name, usual.Because = name, ""
	return usual, nil
}

func has(listed []hub.ModelInfo, id string) bool {
	return slices.ContainsFunc(listed, func(m hub.ModelInfo) bool { return m.ID == id })
}

// among returns the served model that name means. A name that no provider is part of and that fits none is the client's habit, such as gpt-4o: the
// operator decided what it gets.
func (m *models) among(served []string, name string) (choose.Choice, error) {
	at := slices.IndexFunc(served, func(s string) bool { return s == name || strings.HasSuffix(s, "/"+name) })
	provider, _, qualified := strings.Cut(name, "/")
	switch {
	case name == "":
		at = 0
	case at < 0 && qualified && isProvider(provider):
		return choose.Choice{}, problem.New(problem.ModelNotFound, fmt.Sprintf("this server does not serve the model %q", name)).
			WithHint("the list of models says which it serves")
	}
	return choose.Parse(m.cfg, served[max(at, 0)])
}

func isProvider(name string) bool {
	return name == "openai" || name == "anthropic" || name == "ollama"
}

// List implements hub.Models.
func (m *models) List(ctx context.Context) ([]hub.ModelInfo, error) {
	cfg, _, err := m.connected(ctx)
	if err != nil {
		return nil, err
	}
	if served := cfg.Models.Serve; len(served) > 0 {
		out := make([]hub.ModelInfo, 0, len(served))
		for k, name := range served {
			out = append(out, m.info(name, k == 0))
		}
		return out, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.listed != nil && time.Since(m.when) < modelsFresh {
		return slices.Clone(m.listed), nil
	}
	out, silent, err := m.offered(ctx, "")
	switch {
	case problem.Has(err, problem.NoModel):
		return nil, nil // a server without a model still runs code
	case err != nil:
		return nil, err
	case silent != nil:
		m.listed, m.when = out, time.Now().Add(listedAgain-modelsFresh)
		return slices.Clone(out), nil // what is asked for is passed on to the provider
	}
	m.listed, m.when = out, time.Now()
	return slices.Clone(out), nil
}

// offered lists the model that is named, "" for the default, and the others of its provider. silent says why the provider does not say which it has.
func (m *models) offered(ctx context.Context, named string) (out []hub.ModelInfo, silent, err error) {
	usual, err := choose.Model(ctx, m.cfg, named)
	switch {
	case problem.Has(err, problem.ModelNotNamed):
		usual, err = choose.Parse(m.cfg, "openai/any")
	case err == nil:
		out = []hub.ModelInfo{m.info(usual.String(), true)}
	}
	if err != nil {
		return nil, nil, err
	}
	names, silent := choose.List(ctx, usual)
	for _, name := range names {
		if len(out) == 0 || name != usual.Name {
			out = append(out, m.info(usual.Provider+"/"+name, false))
		}
	}
	return out, silent, nil
}

// modelsOf is cli.Program.Models.
func modelsOf(ctx context.Context, c config.Config, named string) (list []hub.ModelInfo, silent, err error) {
	return (&models{cfg: c}).offered(ctx, named)
}

// info never shows where a recording is.
func (m *models) info(name string, usual bool) hub.ModelInfo {
	if strings.HasPrefix(name, "replay:") {
		return hub.ModelInfo{ID: "replay", Provider: "replay", Default: usual}
	}
	provider, _, _ := strings.Cut(name, "/")
	about := aboutModels(m.cfg)(name)
	if how := sight(m.cfg, name); about.Vision == nil && (how != model.SightAuto || how.Sees(name)) {
		about.Vision = new(how.Sees(name)) // a name that is not known says nothing
	}
	return hub.ModelInfo{ID: name, Provider: provider, Default: usual, About: about}
}

// aboutModels returns what the settings say of models. They were validated before.
func aboutModels(c config.Config) func(name string) model.About {
	known, _ := c.Models.Known()
	return func(name string) model.About {
		said := known[name]
		about := model.About{Context: said.Context, Vision: said.Vision}
		if p := said.Price; p != nil {
			about.Price = &model.Price{Input: p.Input, Output: p.Output, Cached: p.Cached, Currency: p.Currency}
		}
		return about
	}
}

// sight is what the settings say of a model's sight: of this model, or else of all.
func sight(c config.Config, name string) model.Sight {
	seen := aboutModels(c)(name).Vision
	switch {
	case seen != nil && *seen, seen == nil && c.Models.Vision == "on":
		return model.SightOn
	case seen != nil, c.Models.Vision == "off":
		return model.SightOff
	}
	return model.SightAuto
}
