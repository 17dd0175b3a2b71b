package app_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/commands/app"
	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model/modeltest"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/store"
)

func listed(t *testing.T, m hub.Models) string {
	t.Helper()
	all, err := m.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, one := range all {
		id := one.ID
		if one.Default {
			id += "*"
		}
		out = append(out, id)
	}
	return strings.Join(out, " ")
}

// What an admin connects is asked at once, in place of what the settings have of that provider, and by every server on the database.
func TestConnections(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), store.Options{Database: filepath.Join(t.TempDir(), "cove.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	upstream := modeltest.NewServer(modeltest.Say("Hello."), modeltest.Say("Again."))
	t.Cleanup(upstream.Close)
	cfg := config.Config{Models: config.Models{Serve: config.List{"openai/of-settings", "anthropic/c"}, OpenAIKey: "sk-of-the-settings-5555", AnthropicKey: "k"}}
	m, other := app.ModelsWith(cfg, db), app.ModelsWith(cfg, db)
	h, err := hub.New(hub.Options{Store: db, Models: m, Connector: m, Limits: hub.DefaultLimits(), Turns: loop.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, who := t.Context(), auth.Local()
	if got := listed(t, m); got != "openai/of-settings* anthropic/c" {
		t.Errorf("of the settings: %s", got)
	}
	key := "sk-secret-of-the-test-1234"
	set := hub.ConnectionChange{Provider: "openai", Address: upstream.OpenAIURL(), Key: &key, Models: []string{"one", "two"}}
	if trial, err := h.TryConnection(ctx, who, set); err != nil || trial.Problem != nil || trial.Answer != "Hello." || trial.Took <= 0 {
		t.Errorf("tried: %+v, %v", trial, err)
	}
	if c, err := h.SetConnection(ctx, who, set); err != nil || c.KeyEnd() != "1234" {
		t.Fatalf("%+v, %v", c, err)
	}
	if got := listed(t, other); got != "anthropic/c* openai/one openai/two" {
		t.Errorf("of another server: %s", got)
	}
	kept := set
	kept.Key, kept.Default = nil, "two"
	if c, err := h.SetConnection(ctx, who, kept); err != nil || c.Key != key {
		t.Errorf("with the key that is there: %+v, %v", c, err)
	}
	if got := listed(t, m); got != "openai/two* anthropic/c openai/one" {
		t.Errorf("with a default: %s", got)
	}
	opened, err := m.Open(ctx, "")
	if err != nil || opened.Name() != "openai/two" {
		t.Fatalf("%v, %v", opened, err)
	}
	if trial, err := h.TryConnection(ctx, who, kept); err != nil || trial.Answer != "Again." {
		t.Errorf("with the key that is there: %+v, %v", trial, err)
	}
	all, err := h.Connections(ctx, who)
	if err != nil || len(all) != 2 || all[0].Settings || all[0].Provider != "openai" || !all[1].Settings || all[1].Provider != "anthropic" {
		t.Errorf("%+v, %v", all, err)
	}
	if err := h.DeleteConnection(ctx, who, "openai"); err != nil {
		t.Fatal(err)
	}
	if err := h.DeleteConnection(ctx, who, "openai"); problem.Of(err).Code != "connection_not_found" {
		t.Errorf("once more: %v", err)
	}
	if got := listed(t, m); got != "openai/of-settings* anthropic/c" {
		t.Errorf("without the connection: %s", got)
	}
}

// A server without any setting is connected while it runs.
func TestAConnectionWithoutSettings(t *testing.T) {
	t.Parallel()
	m := app.ModelsWith(config.Config{Models: config.Models{OllamaHost: "127.0.0.1:1"}}, fixed{{Provider: "ollama", Address: "http://10.0.0.7:11434", Models: []string{"qwen3"}}})
	if got := listed(t, m); got != "ollama/qwen3*" {
		t.Errorf("%s", got)
	}
}

// fixed are connections that nobody changes.
type fixed []hub.Connection

func (f fixed) Connections(context.Context) ([]hub.Connection, error) { return f, nil }
func (fixed) SetConnection(context.Context, string, func(*hub.Connection) error) (c hub.Connection, err error) {
	return c, nil
}
func (fixed) DeleteConnection(context.Context, string) error { return nil }

func TestConnectionsThatAreRefused(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), store.Options{Database: filepath.Join(t.TempDir(), "cove.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	m := app.ModelsWith(config.Config{}, db)
	h, err := hub.New(hub.Options{Store: db, Models: m, Connector: m, Limits: hub.DefaultLimits(), Turns: loop.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	key, spaced, who := "sk-secret-of-the-test-1234", "a b", auth.Local()
	good := hub.ConnectionChange{Provider: "openai", Address: "https://models.example.com/v1", Key: &key, Models: []string{"m"}}
	if _, err := h.SetConnection(t.Context(), who, good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(c *hub.ConnectionChange){
		"a provider":          func(c *hub.ConnectionChange) { c.Provider = "mars" },
		"a scheme":            func(c *hub.ConnectionChange) { c.Address = "file:///etc/passwd" },
		"a password":          func(c *hub.ConnectionChange) { c.Address = "https://u:p@models.example.com/v1" },
		"a fragment":          func(c *hub.ConnectionChange) { c.Address += "#x" },
		"a query":             func(c *hub.ConnectionChange) { c.Address += "?x=1" },
		"no host":             func(c *hub.ConnectionChange) { c.Address = "https:///v1" },
		"no models":           func(c *hub.ConnectionChange) { c.Models = nil },
		"another default":     func(c *hub.ConnectionChange) { c.Default = "n" },
		"an empty name":       func(c *hub.ConnectionChange) { c.Models = []string{""} },
		"a name with a line":  func(c *hub.ConnectionChange) { c.Models = []string{"a\nb"} },
		"many models":         func(c *hub.ConnectionChange) { c.Models = make([]string, 101) },
		"a key with spaces":   func(c *hub.ConnectionChange) { c.Key = &spaced },
		"a key for elsewhere": func(c *hub.ConnectionChange) { c.Key, c.Address = nil, "https://elsewhere.example.com/v1" },
		"a key for Ollama":    func(c *hub.ConnectionChange) { c.Provider = "ollama" },
	} {
		c := good
		change(&c)
		if _, err := h.SetConnection(t.Context(), who, c); err == nil || problem.Of(err).Code != "connection_invalid" || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", name, err)
		}
	}
	member := auth.Principal{User: "usr_x", Project: auth.LocalProject, Role: auth.Owner}
	if _, err := h.SetConnection(t.Context(), member, good); problem.Of(err).Code != "forbidden" {
		t.Errorf("an owner of a project: %v", err)
	}
	if _, err := h.Connections(t.Context(), member); problem.Of(err).Code != "forbidden" {
		t.Errorf("an owner of a project: %v", err)
	}
	if _, err := h.TryConnection(t.Context(), member, good); problem.Of(err).Code != "forbidden" {
		t.Errorf("an owner of a project: %v", err)
	}
}

// What a service says of a wrong key is told without the key.
func TestATrialThatFails(t *testing.T) {
	t.Parallel()
	key := "sk-secret-of-the-test-1234"
	upstream := modeltest.NewServer(modeltest.Error(401, "invalid_request_error", "Incorrect API key provided: "+key))
	t.Cleanup(upstream.Close)
	m := app.ModelsWith(config.Config{}, fixed{})
	trial := m.Try(t.Context(), hub.Connection{Provider: "openai", Address: upstream.OpenAIURL(), Key: key}, "m")
	if p := trial.Problem; p == nil || trial.Answer != "" || strings.Contains(p.Error()+p.Hint, key) {
		t.Errorf("%+v", trial)
	}
	if trial = m.Try(t.Context(), hub.Connection{Provider: "openai", Address: "http://127.0.0.1:1/v1", Key: key}, ""); trial.Problem == nil || strings.Contains(trial.Problem.Error(), key) {
		t.Errorf("%+v", trial)
	}
}
