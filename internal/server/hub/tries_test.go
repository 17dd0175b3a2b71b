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
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// choir is several models, each with lines of its own.
type choir map[string]*voice

// singer is a model of a choir.
type singer struct {
	*voice
	name string
}

func (s singer) Name() string { return s.name }

func (c choir) Open(_ context.Context, name string) (model.Model, error) {
	v := c[name]
	if v == nil {
		return nil, problem.New(problem.ModelUnknown, "there is no model "+name)
	}
	return singer{v, name}, nil
}

func (c choir) List(context.Context) ([]hub.ModelInfo, error) { return nil, nil }

// newChoir is a server with models of these names and lines, in pairs.
func newChoir(t *testing.T, lines map[string][]line, change func(*hub.Options)) (*life, choir, auth.Principal) {
	t.Helper()
	c := choir{}
	for name, said := range lines {
		c[name] = &voice{t: t, lines: said}
	}
	return newLife(t, func(o *hub.Options) {
		o.Models = c
		if change != nil {
			change(o)
		}
	}), c, someone(auth.LocalProject)
}

// tried are the lines of a model that runs code and says an answer.
func tried(code, answer string) []line { return []line{calls(python("c1", code)), words(answer)} }

// notices are the notices among the events of a turn.
func notices(events []hub.Numbered[hub.TurnEvent]) (out []string) {
	for _, e := range events {
		if n, ok := e.Event.(loop.Notice); ok {
			out = append(out, n.Text)
		}
	}
	return out
}

// TestTries has a question answered three times: what two say is the answer, its variables go on, and the other answers stay as versions.
func TestTries(t *testing.T) {
	t.Parallel()
	l, c, who := newChoir(t, map[string][]line{
		"": {calls(python("c0", "remember base")), words("Begun."), words("Next.")}, "one": tried("remember one", "It is 41."), "two": tried("remember two", "It is 42."), "three": tried("remember three", "The total is 42"),
	}, func(o *hub.Options) { o.Limits.Points = 5 })
	c["first"] = c[""]
	first := l.ask(who, hub.NewTurn{Input: input("Begin"), Source: "test"})
	turn := l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("What is the total?"), Tries: &hub.Tries{Number: 3, Models: []string{"one", "two", "three"}}})
	about := turn.Tries
	if !strings.Contains(turn.Answer, "42") || about == nil || about.Why != hub.ChosenByMost || about.Agree != 2 || about.Number != 3 || about.Request != nil || turn.Parent != first.ID || turn.Session != first.Session {
		t.Fatalf("%+v, tries %+v", turn, about)
	}
	if got, _ := l.run(who, turn.Session, "recall"); fmt.Sprint(got) != "[base two]" && fmt.Sprint(got) != "[base three]" {
		t.Errorf("the session has %q", got)
	}
	events, err := l.hear(who, turn.ID)
	if err != nil || !slices.ContainsFunc(events, func(n hub.Numbered[hub.TurnEvent]) bool { _, ok := n.Event.(loop.Start); return ok }) {
		t.Errorf("the events are %+v, %v", events, err)
	}
	if said := strings.Join(notices(events), "\n"); !strings.Contains(said, "2 answered the same") {
		t.Errorf("the notices are %q", said)
	}
	turns, err := l.Turns(t.Context(), who, turn.Conversation, hub.Page{Oldest: true})
	if err != nil || len(turns.Items) != 5 {
		t.Fatalf("%+v, %v", turns.Items, err)
	}
	for _, one := range turns.Items {
		if one.IsTry() && (one.Tries.Of != turn.ID || one.Parent != first.ID || one.Session == turn.Session) {
			t.Errorf("a try is %+v", one)
		}
		if one.IsTry() {
			synced(t, func() bool { // it is removed when the turn's end is recorded
				_, err := l.Session(t.Context(), who, one.Session)
				return problem.Has(err, problem.SessionNotFound)
			})
		}
	}
	next := l.ask(who, hub.NewTurn{Conversation: turn.Conversation, Input: input("Go on")})
	if next.Parent != turn.ID || next.Session != turn.Session {
		t.Errorf("the next turn is %+v", next)
	}
	if asked := c[""].asked(2); !strings.Contains(asked, "42") || strings.Contains(asked, "41") {
		t.Errorf("the model was asked %s", asked)
	}
	if _, err := l.ReturnSession(t.Context(), who, turn.Session, turn.ID); err != nil {
		t.Fatal(err)
	}
	if got, _ := l.run(who, turn.Session, "recall"); fmt.Sprint(got) != "[base]" {
		t.Errorf("before the turn the session had %q", got)
	}
	if err := l.DeleteTurn(t.Context(), who, turn.ID); err != nil {
		t.Fatal(err)
	}
	synced(t, func() bool { // its tries go with it
		left, err := l.Turns(t.Context(), who, turn.Conversation, hub.Page{Oldest: true})
		return err == nil && len(left.Items) == 2
	})
}

// TestTriesThatDiffer has the model vote where no answers agree, and the first answer taken where that does not say.
func TestTriesThatDiffer(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{"The right one is 2": "It is 42.", "none": "It is 41."} {
		l, _, who := newChoir(t, map[string][]line{"": {words(reply)}, "one": {words("It is 41.")}, "two": {words("It is 42.")}}, nil)
		turn := l.ask(who, hub.NewTurn{Input: input("What is the total?"), Source: "test", Tries: &hub.Tries{Number: 2, Models: []string{"one", "two"}}})
		if strings.TrimSpace(turn.Answer) != want || turn.Tries.Agree != 1 {
			t.Errorf("%s: %q, %+v", reply, turn.Answer, turn.Tries)
		}
	}
}

// TestTriesVoteWithinTheWindow: a vote about a long question and long answers fits into what the model takes at once, and a reply without an end is none.
func TestTriesVoteWithinTheWindow(t *testing.T) {
	t.Parallel()
	const window = 4000 // tokens
	about := func(o *hub.Options) {
		o.About = func(string) model.About { return model.About{Context: window} }
	}
	for reply, want := range map[string]string{"2": "It is 42.", strings.Repeat("2 ", 16<<10): "It is 41."} {
		long := strings.Repeat("word ", 8000)
		l, c, who := newChoir(t, map[string][]line{"": {words(reply)}, "one": {words("It is 41. " + long)}, "two": {words("It is 42. " + long)}}, about)
		turn := l.ask(who, hub.NewTurn{Input: input("What is the total? " + long), Source: "test", Tries: &hub.Tries{Number: 2, Models: []string{"one", "two"}}})
		if !strings.HasPrefix(turn.Answer, want) {
			t.Errorf("%.10s: %.20q, %+v", reply, turn.Answer, turn.Tries)
		}
		if len(reply) > 100 && turn.Usage.OutputTokens < 16<<10/4 {
			t.Errorf("of the reply without an end %d tokens are counted", turn.Usage.OutputTokens)
		}
		asked := c[""].asked(0)
		if tokens := len(asked) / 3; tokens > window*3/4 || tokens < window/2 {
			t.Errorf("the vote has about %d tokens", tokens)
		}
		for _, part := range []string{"What is the total?", "It is 41.", "It is 42."} {
			if !strings.Contains(asked, part) {
				t.Errorf("the vote is without %q", part)
			}
		}
	}
}

// TestTriesThatFail has one try fail, and then all.
func TestTriesThatFail(t *testing.T) {
	t.Parallel()
	broken := []line{{err: problem.New(problem.ModelRequestRejected, "the model's service failed")}}
	l, _, who := newChoir(t, map[string][]line{"": nil, "one": broken, "two": tried("remember two", "It is 42.")}, nil)
	turn := l.ask(who, hub.NewTurn{Input: input("What is the total?"), Source: "test", Tries: &hub.Tries{Number: 2, Models: []string{"one", "two"}}})
	if turn.Tries.Why != hub.ChosenFirst || !strings.Contains(turn.Answer, "42") {
		t.Errorf("%+v %+v", turn, turn.Tries)
	}
	l, _, who = newChoir(t, map[string][]line{"": nil, "one": broken, "two": broken}, nil)
	began := l.begin(who, hub.NewTurn{Input: input("What is the total?"), Source: "test", Tries: &hub.Tries{Number: 2, Models: []string{"one", "two"}}})
	if _, err := l.hear(who, began.ID); err == nil || !strings.Contains(err.Error(), "rejected") {
		t.Errorf("all failed: %v", err)
	}
	for what, n := range map[string]hub.NewTurn{
		"one try": {Tries: &hub.Tries{Number: 1}}, "many": {Tries: &hub.Tries{Number: 11}}, "too many models": {Tries: &hub.Tries{Number: 2, Models: []string{"one", "two", "one"}}},
		"no Python": {Tries: &hub.Tries{Number: 2}, NoPython: true}, "hidden": {Tries: &hub.Tries{Number: 2}, Hidden: true}, "approval": {Tries: &hub.Tries{Number: 2}, Approval: hub.ApprovalAlways},
	} {
		n.Input, n.Source = input("What?"), "test"
		_, err := l.StartTurn(t.Context(), who, n)
		if problem.Of(err) == nil || problem.Of(err).Code != "turn_invalid" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestTriesOutliveTheirServer: a server that is killed while a question is tried leaves it to the next one, with the tries that had ended.
func TestTriesOutliveTheirServer(t *testing.T) {
	t.Parallel()
	people := &crowd{known: map[string]auth.Principal{}}
	serve := func(c choir) func(*hub.Options) {
		return func(o *hub.Options) { o.Models, o.Asker = c, people.Present }
	}
	c := choir{"": {t: t, lines: []line{calls(python("c0", "remember base")), words("Begun.")}}, "one": {t: t, lines: tried("remember one", "It is 42.")}, "two": {t: t, lines: []line{{hang: true}}}}
	l := newLife(t, serve(c))
	who := people.let(someone(auth.LocalProject))
	first := l.ask(who, hub.NewTurn{Input: input("Begin"), Source: "test"})
	turn := l.begin(who, hub.NewTurn{Conversation: first.Conversation, Input: input("What is the total?"), Tries: &hub.Tries{Number: 2, Models: []string{"one", "two"}}})
	l.queue(who, first.Conversation, "Go on")
	var forks []string
	synced(t, func() bool {
		turns, err := l.Turns(t.Context(), who, first.Conversation, hub.Page{Oldest: true})
		forks = nil
		saved := false
		for _, one := range turns.Items {
			if one.IsTry() {
				forks, saved = append(forks, one.Session), saved || one.Tries.Saved
			}
		}
		return err == nil && saved && len(forks) == 2
	})

	n := l.killedWith(serve(choir{"": {t: t, lines: []line{words("Next.")}}, "one": {t: t}, "two": {t: t, lines: tried("remember two", "42, it is")}}))
	n.AskDue(t.Context())
	if got := n.answers(who, first.Conversation, 6); !strings.HasSuffix(got, "What is the total? completed, Go on completed") {
		t.Errorf("asked were %s", got)
	}
	again, err := n.Turn(t.Context(), who, turn.ID)
	if err != nil || again.State != hub.TurnCompleted || !strings.Contains(again.Answer, "It is 42.") || again.Tries.Agree != 2 || again.Parent != first.ID || again.Session != first.Session {
		t.Fatalf("%+v %+v %v", again, again.Tries, err)
	}
	if got, _ := n.run(who, first.Session, "recall"); fmt.Sprint(got) != "[base one]" {
		t.Errorf("the session has %q", got)
	}
	for _, fork := range forks {
		if _, err := n.Session(t.Context(), who, fork); err == nil {
			t.Errorf("the session %s of a try is left", fork)
		}
	}
}
