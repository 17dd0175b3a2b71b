package hub_test

import (
	"context"
	"slices"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/egress"
	"cove/internal/server/hub"
)

// TestCheckProgram: the rules for code hold for programs that a surface starts in a process.
func TestCheckProgram(t *testing.T) {
	t.Parallel()
	l := newLife(t, func(o *hub.Options) {
		o.Quotas = func(_ context.Context, project, _ string) (*hub.Quota, *hub.Quota, error) {
			return &hub.Quota{Code: &hub.CodeRules{Policy: hub.CodePolicy(project)}}, nil, nil
		}
	})
	for _, c := range []struct {
		policy hub.CodePolicy
		code   string
		want   problem.Code
	}{
		{hub.CodeNote, seriousCode, nil}, {hub.CodeAsk, seriousCode, problem.CodeUnapproved}, {hub.CodeRefuse, seriousCode, problem.CodeRefused},
		{hub.CodeRefuse, "print(1)", nil}, {hub.CodeRefuse, "", nil},
	} {
		err := l.CheckProgram(t.Context(), someone(string(c.policy)), c.code)
		if c.want == nil && err != nil || c.want != nil && !problem.Has(err, c.want) {
			t.Errorf("%s, %q: %v", c.policy, c.code, err)
		}
	}
	who := someone("note")
	who.Role = "viewer"
	if err := l.CheckProgram(t.Context(), who, "print(1)"); !problem.Has(err, problem.Forbidden) {
		t.Errorf("a viewer: %v", err)
	}
}

// TestWidestNetwork: the widest network is one that a session may have, and has each rule that the server, the project and the key agree on.
func TestWidestNetwork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ server, project, key, want []string }{
		{nil, nil, nil, nil},
		{nil, []string{"*"}, nil, nil},
		{[]string{"*"}, nil, nil, []string{"*"}},
		{[]string{"*"}, []string{}, nil, nil}, // the project may reach nothing
		{[]string{"*"}, []string{"*.example.com", "10.1.2.0/24"}, nil, []string{"*.example.com", "10.1.2.0/24"}},
		{[]string{"*.example.com"}, []string{"*"}, nil, []string{"*.example.com"}},
		{[]string{"*"}, []string{"*.example.com"}, []string{"api.example.com", "other.test"}, []string{"api.example.com"}},
		{[]string{"a.test", "b.test"}, []string{"b.test", "c.test"}, nil, []string{"b.test"}},
	} {
		rules, err := egress.ParseRules(c.server, nil)
		if err != nil {
			t.Fatal(err)
		}
		reach := func(allow []string) *hub.Quota {
			if allow == nil {
				return nil
			}
			return &hub.Quota{Network: &hub.Reach{Allow: allow}}
		}
		l := newLife(t, func(o *hub.Options) {
			o.Network.Rules = rules
			o.Quotas = func(context.Context, string, string) (*hub.Quota, *hub.Quota, error) {
				return reach(c.project), reach(c.key), nil
			}
		})
		who := someone("prj_a")
		who.Key = "key_a"
		got, err := l.WidestNetwork(t.Context(), who)
		if err != nil || (got == nil) != (c.want == nil) || got != nil && !slices.Equal(got.Allow, c.want) {
			t.Errorf("%+v: %+v, %v", c, got, err)
			continue
		}
		if _, err := l.CreateSession(t.Context(), who, hub.NewSession{Network: got}); err != nil {
			t.Errorf("%+v: a session may not have it: %v", c, err)
		}
	}
}
