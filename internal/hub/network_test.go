package hub_test

import (
	"context"
	"testing"

	"cove/internal/egress"
	"cove/internal/hub"
	"cove/internal/problem"
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
