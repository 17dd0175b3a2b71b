package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/machine/egress"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// rulesOfProject has projects with the names of policies have these rules for code.
func rulesOfProject(o *hub.Options) {
	o.Quotas = func(_ context.Context, project, _ string) (*hub.Quota, *hub.Quota, error) {
		return &hub.Quota{Code: &hub.CodeRules{Policy: hub.CodePolicy(project)}}, nil, nil
	}
}

// TestTriesAreNotAsked: where the rules for code would have a person look at it, the code of a try does not run, since nobody follows a try. Nor does a check that they do not let run.
func TestTriesAreNotAsked(t *testing.T) {
	t.Parallel()
	l, _, _ := newChoir(t, map[string][]line{"": nil, "one": tried(seriousCode, "It is 42."), "two": tried(seriousCode, "It is 42.")}, rulesOfProject)
	tries := hub.Tries{Number: 2, Models: []string{"one", "two"}}
	turn := l.ask(someone("ask"), hub.NewTurn{Input: input("What is the total?"), Source: "test", Tries: &tries})
	events, err := l.hear(someone("ask"), turn.ID)
	if err != nil || !slices.ContainsFunc(events, func(n hub.Numbered[hub.TurnEvent]) bool { _, ok := n.Event.(loop.Refused); return ok }) {
		t.Errorf("%+v, %v", events, err)
	}
	tries.Check = seriousCode
	for _, project := range []string{"ask", "refuse"} {
		if _, err := l.StartTurn(t.Context(), someone(project), hub.NewTurn{Input: input("What is the total?"), Source: "test", Tries: &tries}); !problem.Has(err, problem.CodeRefused) {
			t.Errorf("a check in a project with the rule %s: %v", project, err)
		}
	}
}

// TestTriesThatCannotBe refuses tries of code that waits for a word, of results, and of models that are not there, before anything begins.
func TestTriesThatCannotBe(t *testing.T) {
	t.Parallel()
	l, _, who := newChoir(t, map[string][]line{"": {words("Begun."), words("Begun.")}, "one": nil}, nil)
	first := l.ask(who, hub.NewTurn{Input: input("Begin"), Source: "test"})
	always := hub.ApprovalAlways
	careful := l.ask(who, hub.NewTurn{Input: input("Begin"), Source: "test", NoPython: true}).Conversation
	if _, err := l.ChangeConversation(t.Context(), who, careful, hub.ConversationChange{Approval: &always}); err != nil {
		t.Fatal(err)
	}
	results := []model.Message{{Role: model.RoleUser, Content: []model.Content{model.ToolResult{CallID: "c1"}}}}
	for what, n := range map[string]hub.NewTurn{
		"approval": {Conversation: careful, Input: input("What?")},
		"results":  {Conversation: first.Conversation, Input: results},
	} {
		n.Tries, n.Source = &hub.Tries{Number: 2}, "test"
		if _, err := l.StartTurn(t.Context(), who, n); !problem.Has(err, problem.TurnInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	n := hub.NewTurn{Conversation: first.Conversation, Input: input("What?"), Source: "test", Tries: &hub.Tries{Number: 2, Models: []string{"one", "none"}}}
	if _, err := l.StartTurn(t.Context(), who, n); !problem.Has(err, problem.ModelUnknown) {
		t.Errorf("a model that is not there: %v", err)
	}
}

// TestTriesKeepNoSecrets: what a turn keeps to be asked again has no credential of its network.
func TestTriesKeepNoSecrets(t *testing.T) {
	t.Parallel()
	rules, err := egress.ParseRules([]string{"*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, _, who := newChoir(t, map[string][]line{"": nil, "one": {{hang: true}, {hang: true}}}, func(o *hub.Options) { o.Network.Rules = rules })
	network := &hub.Network{Allow: []string{"api.example.com"}, Credentials: []egress.Credential{{Host: "api.example.com", Header: "Authorization", Value: "sk-a-secret"}}}
	turn := l.begin(who, hub.NewTurn{Input: input("What?"), Source: "test", Network: network, Tries: &hub.Tries{Number: 2, Models: []string{"one"}}})
	kept, err := l.store.Turn(t.Context(), who.Project, turn.ID)
	if err != nil || kept.Tries == nil || kept.Tries.Request == nil || kept.Tries.Request.Turn.Network != nil {
		t.Errorf("%+v %v", kept.Tries, err)
	}
}

// TestTriesTakenTwice: a server that died after a try's state was taken, and before the turn's end was recorded, leaves a session that is returned to before it.
func TestTriesTakenTwice(t *testing.T) {
	t.Parallel()
	l, _, who := newChoir(t, map[string][]line{"": {calls(python("c0", "remember base")), words("Begun.")}, "one": tried("remember one", "It is 42."), "two": tried("remember one", "It is 42.")}, func(o *hub.Options) { o.Limits.Points = 5 })
	first := l.ask(who, hub.NewTurn{Input: input("Begin"), Source: "test"})
	turn := l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("What?"), Tries: &hub.Tries{Number: 2, Models: []string{"one", "two"}}})
	for range 2 { // the second time there is nothing to do
		if err := l.UntakeState(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := l.run(who, turn.Session, "recall"); fmt.Sprint(got) != "[base]" {
		t.Errorf("the session has %q", got)
	}
}

// TestTriesOfAChangedQuestion: what had been answered of a question in a server that died does not count when the question is another one.
func TestTriesOfAChangedQuestion(t *testing.T) {
	t.Parallel()
	people := &crowd{known: map[string]auth.Principal{}}
	serve := func(c choir) func(*hub.Options) {
		return func(o *hub.Options) { o.Models, o.Asker = c, people.Present }
	}
	l := newLife(t, serve(choir{"": {t: t}, "one": {t: t, lines: tried("remember one", "It is 42.")}, "two": {t: t, lines: []line{{hang: true}}}}))
	who := people.let(someone(auth.LocalProject))
	turn := l.begin(who, hub.NewTurn{Input: input("What is the total?"), Source: "test", Tries: &hub.Tries{Number: 2, Models: []string{"one", "two"}}})
	synced(t, func() bool {
		turns, err := l.Turns(t.Context(), who, turn.Conversation, hub.Page{Oldest: true})
		return err == nil && slices.ContainsFunc(turns.Items, func(one hub.Turn) bool { return one.IsTry() && one.Tries.Saved })
	})
	n := l.killedWith(serve(choir{"": {t: t}, "one": {t: t, lines: tried("remember mean", "It is 7.")}, "two": {t: t, lines: tried("remember mean", "It is 7.")}}))
	list, err := n.Questions(t.Context(), who, turn.Conversation)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v %v", list, err)
	}
	other := "What is the mean?"
	if _, err := n.ChangeQuestion(t.Context(), who, turn.Conversation, list[0].ID, hub.QuestionChange{Prompt: &other}); err != nil {
		t.Fatal(err)
	}
	n.AskDue(t.Context())
	synced(t, func() bool {
		turns, err := n.Turns(t.Context(), who, turn.Conversation, hub.Page{Oldest: true})
		return err == nil && slices.ContainsFunc(turns.Items, func(one hub.Turn) bool {
			return !one.IsTry() && one.State == hub.TurnCompleted && strings.Contains(one.Answer, "7") && one.Tries.Agree == 2
		})
	})
}
