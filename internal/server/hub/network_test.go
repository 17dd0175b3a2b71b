package hub_test

import (
	"context"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/egress"
	"cove/internal/server/hub"
)

// TestNetworkOfProjects: what a project and a key may reach is within what the operator allows, and a session's rules within both.
func TestNetworkOfProjects(t *testing.T) {
	t.Parallel()
	rules, err := egress.ParseRules([]string{"*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := newLife(t, func(o *hub.Options) {
		o.Network.Rules = rules
		o.Quotas = func(_ context.Context, project, key string) (*hub.Quota, *hub.Quota, error) {
			return map[string]*hub.Quota{
					"prj_narrow": {Network: &hub.Reach{Allow: []string{"*.example.com"}, Deny: []string{"admin.example.com"}}}, "prj_none": {Network: &hub.Reach{}},
				}[project], map[string]*hub.Quota{
					"key_narrow": {Network: &hub.Reach{Allow: []string{"api.example.com"}}},
				}[key], nil
		}
	})
	for _, c := range []struct {
		project, key, rule string
		may                bool
	}{
		{"prj_any", "", "other.test", true}, {"prj_narrow", "", "api.example.com", true}, {"prj_narrow", "", "other.test", false}, {"prj_narrow", "", "*", false}, {"prj_none", "", "api.example.com", false},
		{"prj_narrow", "key_narrow", "api.example.com", true}, {"prj_narrow", "key_narrow", "www.example.com", false}, {"prj_any", "key_narrow", "other.test", false},
	} {
		who := someone(c.project)
		who.Key = c.key
		s, err := l.CreateSession(t.Context(), who, hub.NewSession{Network: &hub.Network{Allow: []string{c.rule}}})
		if c.may != (err == nil) || err != nil && !problem.Has(err, problem.NetworkOff) {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil {
			continue
		}
		if _, err := l.ChangeSession(t.Context(), who, s.ID, hub.SessionChange{Network: &hub.Network{Allow: []string{"not." + c.rule, "evil.test"}}}); (c.project == "prj_any" && c.key == "") != (err == nil) {
			t.Errorf("%+v, changed: %v", c, err)
		}
	}
}

// TestNetworkOfATurnsSession: a turn that makes a session says where that may connect to; for one that is there already it cannot.
func TestNetworkOfATurnsSession(t *testing.T) {
	t.Parallel()
	rules, err := egress.ParseRules([]string{"*.example.com"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := newLife(t, func(o *hub.Options) {
		o.Models, o.System, o.Network.Rules = &voice{t: t, lines: []line{words("Hello."), words("Hello.")}}, 1<<20, rules
	})
	who := someone("prj_a")
	ask := func(n hub.NewTurn) (hub.Turn, error) {
		n.Input = input("go")
		turn, err := l.StartTurn(t.Context(), who, n)
		if err == nil {
			_, err = l.hear(who, turn.ID)
		}
		return turn, err
	}
	turn, err := ask(hub.NewTurn{Network: &hub.Network{Allow: []string{"api.example.com"}}, Root: true})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := l.Session(t.Context(), who, turn.Session); err != nil || s.Network == nil || s.Network.Allow[0] != "api.example.com" || s.System == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := ask(hub.NewTurn{Conversation: turn.Conversation, Network: &hub.Network{Allow: []string{"api.example.com"}}}); !problem.Has(err, problem.TurnInvalid) {
		t.Errorf("for a session that is there: %v", err)
	}
	if _, err := ask(hub.NewTurn{Network: &hub.Network{Allow: []string{"elsewhere.test"}}}); !problem.Has(err, problem.NetworkOff) {
		t.Errorf("what the server does not allow: %v", err)
	}
	if _, err := ask(hub.NewTurn{Conversation: turn.Conversation}); err != nil {
		t.Error(err)
	}
}
