package config_test

import (
	"testing"

	"cove/internal/core/config"
)

func TestOAuth(t *testing.T) {
	t.Parallel()
	good, err := config.Load(environment("HOME", "/home/u"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*config.OAuth)
		fits   bool
	}{
		"nothing": {func(*config.OAuth) {}, true},
		"all": {func(o *config.OAuth) {
			*o = config.OAuth{Issuer: "https://id.example.com/", Resource: "https://cove.example.com/mcp", Audience: "api://cove", Scope: "api://cove/mcp", Claim: "https://example.com/email", Newcomers: "my:project:viewer"}
		}, true},
		"this machine's": {func(o *config.OAuth) {
			o.Issuer, o.Resource = "http://127.0.0.1:8080/realms/a", "http://localhost:8700/mcp"
		}, true},
		"no scope":            {func(o *config.OAuth) { o.Scope = "none" }, true},
		"an open issuer":      {func(o *config.OAuth) { o.Issuer = "http://id.example.com" }, false},
		"no address":          {func(o *config.OAuth) { o.Issuer = "id.example.com" }, false},
		"a password":          {func(o *config.OAuth) { o.Issuer = "https://u:p@id.example.com" }, false},
		"a query":             {func(o *config.OAuth) { o.Issuer = "https://id.example.com?a=b" }, false},
		"an open resource":    {func(o *config.OAuth) { o.Resource = "http://cove.example.com/mcp" }, false},
		"a fragment":          {func(o *config.OAuth) { o.Resource = "https://cove.example.com/mcp#a" }, false},
		"no claim":            {func(o *config.OAuth) { o.Claim = "" }, false},
		"a claim with a sign": {func(o *config.OAuth) { o.Claim = "a=b" }, false},
		"two scopes":          {func(o *config.OAuth) { o.Scope = "a b" }, false},
		"a scope with quotes": {func(o *config.OAuth) { o.Scope = `a"` }, false},
		"newcomers who rule":  {func(o *config.OAuth) { o.Newcomers = "local:owner" }, false},
		"no project":          {func(o *config.OAuth) { o.Newcomers = ":member" }, false},
		"no role":             {func(o *config.OAuth) { o.Newcomers = "local" }, false},
	} {
		set := good
		c.change(&set.OAuth)
		if err := set.Validate(); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
	if project, role := (config.OAuth{Newcomers: "my:project:viewer"}).Join(); project != "my:project" || role != "viewer" {
		t.Errorf("%s %s", project, role)
	}
}
