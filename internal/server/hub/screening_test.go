package hub_test

import (
	"context"
	"strings"
	"testing"

	"cove/internal/code/screen"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/server/hub"
)

// Code of the toy interpreter that calls for a second look, and code that starts a program.
const (
	seriousCode = "say open('/root/.ssh/id_rsa')"
	programCode = "say subprocess.run(['ls'])"
)

// TestRulesForCode runs code under each policy, with the rules of the server, of a project and of a key.
func TestRulesForCode(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		rules    hub.CodeRules
		code     string
		approved bool
		want     problem.Code
		found    string
	}{
		"off":                     {hub.CodeRules{Policy: hub.CodeOff}, seriousCode, false, nil, ""},
		"none":                    {hub.CodeRules{}, seriousCode, false, nil, ""},
		"note":                    {hub.CodeRules{Policy: hub.CodeNote}, seriousCode, false, nil, screen.ReadsCredentials},
		"ask":                     {hub.CodeRules{Policy: hub.CodeAsk}, seriousCode, false, problem.CodeUnapproved, ""},
		"ask, approved":           {hub.CodeRules{Policy: hub.CodeAsk}, seriousCode, true, nil, screen.ReadsCredentials},
		"ask, of little weight":   {hub.CodeRules{Policy: hub.CodeAsk}, programCode, false, nil, screen.StartsPrograms},
		"ask, by rule":            {hub.CodeRules{Policy: hub.CodeAsk, Rules: []string{screen.StartsPrograms}}, programCode, false, problem.CodeUnapproved, ""},
		"refuse":                  {hub.CodeRules{Policy: hub.CodeRefuse}, seriousCode, false, problem.CodeRefused, ""},
		"refuse, although looked": {hub.CodeRules{Policy: hub.CodeRefuse}, seriousCode, true, problem.CodeRefused, ""},
		"refuse, nothing found":   {hub.CodeRules{Policy: hub.CodeRefuse}, "say hello", false, nil, ""},
	}
	rules := map[string]hub.CodeRules{} // by project
	for name, c := range cases {
		rules["prj "+name] = c.rules
	}
	l := newLife(t, func(o *hub.Options) {
		o.Code = hub.CodeRules{Policy: hub.CodeNote}
		o.Quotas = func(_ context.Context, project, key string) (ofProject, ofKey *hub.Quota, err error) {
			of := rules[project]
			if key == "key_strict" {
				ofKey = &hub.Quota{Code: &hub.CodeRules{Policy: hub.CodeRefuse}}
			}
			return &hub.Quota{Code: &of}, ofKey, nil
		}
	})
	for name, c := range cases {
		who := someone("prj " + name)
		s := l.session(who)
		e, err := l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Code: c.code, Approved: c.approved})
		if c.want != nil {
			if !problem.Has(err, c.want) {
				t.Errorf("%s: %v, not %s", name, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := ""
		if len(e.Cautions) > 0 {
			got = e.Cautions[0].Rule
		}
		if stored, err := l.Execution(t.Context(), who, e.ID); err != nil || got != c.found || len(stored.Cautions) != len(e.Cautions) {
			t.Errorf("%s: found %q, stored %+v, %v", name, got, stored.Cautions, err)
		}
	}
	strict := someone("prj note")
	strict.Key = "key_strict"
	if _, err := l.StartExecution(t.Context(), strict, hub.NewExecution{Session: l.session(strict).ID, Code: seriousCode}); !problem.Has(err, problem.CodeRefused) {
		t.Errorf("a key with rules of its own: %v", err)
	}
	for _, bad := range []hub.CodeRules{{Policy: "never"}, {Policy: hub.CodeAsk, Rules: []string{"nonsense"}}} {
		if err := bad.Check(); !problem.Has(err, problem.CodeRulesInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestRulesForTheModelsCode refuses one program of a turn and has another wait; what nobody could be asked about does not run.
func TestRulesForTheModelsCode(t *testing.T) {
	t.Parallel()
	v := &voice{t: t, lines: []line{calls(python("c1", seriousCode)), calls(python("c2", "say b")), words("Done."),
		calls(python("c3", seriousCode)), words("Done."), calls(python("c4", seriousCode)), words("Done.")}}
	l := newLife(t, func(o *hub.Options) {
		o.Models = v
		o.Quotas = func(_ context.Context, project, _ string) (*hub.Quota, *hub.Quota, error) {
			return &hub.Quota{Code: &hub.CodeRules{Policy: hub.CodePolicy(project)}}, nil, nil
		}
	})
	who := someone("refuse")
	kinds, events, err := l.kindsOf(who, l.begin(who, hub.NewTurn{Input: input("go")}).ID)
	if got := strings.Join(kinds, " "); err != nil || !strings.HasPrefix(got, "Refused Start") {
		t.Fatalf("%s, %v", got, err)
	}
	for _, e := range events {
		if r, ok := e.Event.(loop.Refused); ok && (r.Code != seriousCode || !strings.Contains(r.Why, "credentials")) {
			t.Errorf("%+v", r)
		}
	}
	if told := v.asked(1); !strings.Contains(told, "the rules of this place do not let this code run. It names files in which credentials are kept (line 1)") {
		t.Errorf("the model was told %q", told)
	}
	who = someone("ask")
	turn := l.waiting(who, l.begin(who, hub.NewTurn{Input: input("go")}).ID, 1)
	if !strings.Contains(turn.Waiting.Why, "credentials") {
		t.Errorf("it waits with %+v", turn.Waiting)
	}
	if _, err := l.ApproveTurn(t.Context(), who, turn.ID, hub.Word{Step: 1, Run: true}); err != nil {
		t.Fatal(err)
	}
	if kinds, _, err := l.kindsOf(who, turn.ID); err != nil || strings.Join(kinds[:2], " ") != "Approval Start" {
		t.Errorf("%v, %v", kinds, err)
	}
	if kinds, _, err := l.kindsOf(who, l.begin(who, hub.NewTurn{Input: input("go"), Unattended: true}).ID); err != nil || kinds[0] != "Refused" {
		t.Errorf("where nobody can be asked: %v, %v", kinds, err)
	}
}
