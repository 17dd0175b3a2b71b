package app

import (
	"context"
	"errors"
	"slices"
	"strings"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/llm/model/choose"
	"cove/internal/server/hub"
)

const (
	mostListed    = 1000 // names of one service
	longestListed = 200  // bytes of one
	trialWords    = 200  // bytes of an answer that is shown
	trialTokens   = 1000 // a model that reasons needs some before its answer
)

// connected are the settings with what an admin connected through the API, which goes first: its address and key take the place of the same provider's, and its models
// that of what models.serve has of the provider.
func (m *models) connected(ctx context.Context) (c config.Config, changed bool, err error) {
	c = m.cfg
	if m.store == nil {
		return c, false, nil
	}
	set, err := m.store.Connections(ctx)
	if err != nil || len(set) == 0 {
		return c, false, err
	}
	isSet := func(name string) bool {
		return slices.ContainsFunc(set, func(s hub.Connection) bool { return strings.HasPrefix(name, s.Provider+"/") })
	}
	others := slices.DeleteFunc(slices.Clone(c.Models.Serve), isSet)
	if len(c.Models.Serve) == 0 {
		if usual, err := choose.Model(ctx, m.cfg, ""); err == nil && !isSet(usual.String()) {
			others = config.List{usual.String()}
		}
	}
	var first, served config.List
	for _, s := range set {
		c.Models = apply(c.Models, s)
		for _, name := range s.Models {
			if name == s.Default && first == nil {
				first = config.List{s.Provider + "/" + name}
			} else {
				served = append(served, s.Provider+"/"+name)
			}
		}
	}
	c.Models.Serve = slices.Concat(first, others, served)
	return c, true, nil
}

func apply(m config.Models, c hub.Connection) config.Models {
	switch c.Provider {
	case "openai":
		m.OpenAIBaseURL, m.OpenAIKey = c.Address, c.Key
	case "anthropic":
		m.AnthropicBaseURL, m.AnthropicKey = c.Address, c.Key
	case "ollama":
		m.OllamaHost = c.Address
	}
	return m
}

// FromSettings implements hub.Connector.
func (m *models) FromSettings(context.Context) (out []hub.Connection) {
	c := m.cfg.Models
	for _, one := range []hub.Connection{
		{Provider: "openai", Address: c.OpenAIBaseURL, Key: c.OpenAIKey}, {Provider: "anthropic", Address: c.AnthropicBaseURL, Key: c.AnthropicKey},
		{Provider: "ollama", Address: c.OllamaHost},
	} {
		prefix := one.Provider + "/"
		for _, name := range c.Serve {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				one.Models = append(one.Models, rest)
			}
		}
		usual := c.Default
		if len(c.Serve) > 0 {
			usual = c.Serve[0]
		}
		one.Default, _ = strings.CutPrefix(usual, prefix)
		if one.Default == usual {
			one.Default = ""
		}
		if one.Settings = true; one.Address != "" || one.Key != "" || len(one.Models) > 0 || one.Default != "" {
			out = append(out, one)
		}
	}
	return out
}

// Try implements hub.Connector.
func (m *models) Try(ctx context.Context, c hub.Connection, name string) hub.Trial {
	cfg := m.cfg
	cfg.Models = apply(cfg.Models, c)
	choice := choose.Choice{Provider: c.Provider, Name: name, BaseURL: c.Address, Key: c.Key}
	var t hub.Trial
	names, err := choose.List(ctx, choice)
	for _, n := range names {
		if n != "" && len(n) <= longestListed && len(t.Models) < mostListed {
			t.Models = append(t.Models, strings.ToValidUTF8(n, "\uFFFD"))
		}
	}
	switch {
	case name != "": // the question says what is wrong, in better words
		t.Answer, err = m.tryQuestion(ctx, cfg, choice)
	case c.Provider == "anthropic":
		err = problem.New(problem.ConnectionInvalid, "this service is tried with one of its models").WithHint("name a model")
	case err != nil:
		cause := problem.InWords(err, "")
		if c.Key != "" {
			cause = strings.ReplaceAll(cause, c.Key, "***")
		}
		err = problem.New(problem.ModelUnreachable, "the service does not say which models it has: "+cause).WithHint("check the address and the key")
	}
	if err != nil {
		t.Problem = redacted(problem.Of(err), c.Key)
	}
	return t
}

func redacted(p *problem.Error, key string) *problem.Error {
	if len(key) < 4 {
		return p
	}
	hide := func(s string) string { return strings.ReplaceAll(s, key, "***") }
	return problem.Received(p.Kind, p.Code, hide(p.Message)).WithHint(hide(p.Hint))
}

func (m *models) tryQuestion(ctx context.Context, cfg config.Config, choice choose.Choice) (string, error) {
	opened, err := newModel(cfg, choice)
	if err != nil {
		return "", err
	}
	var words strings.Builder
	question := model.Message{Role: model.RoleUser, Content: []model.Content{model.Text{Text: "Say hello in one word."}}}
	for part, err := range opened.Stream(ctx, model.Request{Messages: []model.Message{question}, MaxTokens: trialTokens}) {
		if err != nil {
			return "", err
		}
		switch p := part.(type) {
		case model.TextDelta:
			if words.WriteString(p.Text); words.Len() > trialWords {
				return strings.ToValidUTF8(words.String()[:trialWords], "\uFFFD"), nil
			}
		case model.Retry:
			return "", problem.New(problem.ModelUnreachable, "the service failed: "+p.Reason).WithHint("check the address and the key")
		}
	}
	if words.Len() == 0 {
		return "", errors.New("the model said nothing")
	}
	return words.String(), nil
}
