package hub_test

import (
	"fmt"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// TestForksOfConversations has conversations forked at each of their turns, and the forks go on by themselves.
func TestForksOfConversations(t *testing.T) {
	t.Parallel()
	l, v, who := newTalk(t,
		calls(python("c1", "remember one")), words("First."), calls(python("c2", "remember two")), words("Second."), words("Again."), words("Further."))
	first := l.ask(who, hub.NewTurn{Input: input("Go on"), Source: "test"})
	second := l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("Go on"), Source: "test"})
	fork := func(n hub.NewFork) hub.Conversation {
		t.Helper()
		c, err := l.ForkConversation(t.Context(), who, first.Conversation, n)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	has := func(session, want string) {
		t.Helper()
		if got, _ := l.run(who, session, "recall"); fmt.Sprint(got) != "["+want+"]" {
			t.Errorf("it has %q, not %q", got, want)
		}
	}
	whole := fork(hub.NewFork{State: hub.StateThen})
	half := fork(hub.NewFork{Turn: first.ID, Title: "half", State: hub.StateThen})
	bare := fork(hub.NewFork{Turn: first.ID, State: hub.StateNone})
	if whole.Turns != 2 || half.Turns != 1 || half.Title != "half" || whole.Title == "" || half.Origin.Turn != first.ID || half.Origin.Conversation != first.Conversation || bare.Session != "" {
		t.Fatalf("%+v %+v %+v", whole, half, bare)
	}
	has(whole.Session, "one two")
	has(half.Session, "one")
	has(fork(hub.NewFork{Turn: first.ID, State: hub.StateNow}).Session, "one two")

	turns, err := l.Turns(t.Context(), who, whole.ID, hub.Page{Oldest: true})
	if err != nil || len(turns.Items) != 2 {
		t.Fatalf("%+v %v", turns, err)
	}
	copied := turns.Items[1]
	if copied.Parent != turns.Items[0].ID || copied.Session != whole.Session || copied.Answer != "Second." || *copied.Origin != (hub.TurnOrigin{Turn: second.ID, Session: second.Session}) {
		t.Errorf("%+v", copied)
	}
	events, err := l.hear(who, copied.ID)
	if err != nil || len(events) == 0 || events[len(events)-1].Seq != second.Events {
		t.Errorf("%d events, %v", len(events), err)
	}
	steps, err := l.Executions(t.Context(), who, hub.ExecutionFilter{Turn: copied.ID}, hub.Page{})
	if err != nil || len(steps.Items) != 1 || steps.Items[0].Code != "remember two" || steps.Items[0].Session != whole.Session {
		t.Errorf("%+v %v", steps, err)
	}

	// A fork of a fork knows the turn that has the point.
	again, err := l.ForkConversation(t.Context(), who, whole.ID, hub.NewFork{State: hub.StateThen})
	if err != nil {
		t.Fatal(err)
	}
	if turns, err := l.Turns(t.Context(), who, again.ID, hub.Page{Oldest: true}); err != nil || turns.Items[1].Origin.Turn != second.ID {
		t.Errorf("%+v %v", turns, err)
	}

	// The origin goes, and the fork goes on.
	if err := l.DeleteConversation(t.Context(), who, first.Conversation); err != nil {
		t.Fatal(err)
	}
	if err := l.DeleteSession(t.Context(), who, first.Session); err != nil {
		t.Fatal(err)
	}
	next := l.ask(who, hub.NewTurn{Conversation: whole.ID, Input: input("Go on"), Source: "test"})
	if next.Parent != copied.ID || next.Session != whole.Session {
		t.Errorf("%+v", next)
	}
	if asked := v.asked(4); !strings.Contains(asked, "First.") || !strings.Contains(asked, "Second.") {
		t.Errorf("the model was asked %s", asked)
	}
	if events, err = l.hear(who, copied.ID); err != nil || len(events) == 0 {
		t.Errorf("%d events, %v", len(events), err)
	}
}

// TestForksThatCannotBe has forks refused, and nothing left of them.
func TestForksThatCannotBe(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, words("First."), words("Second."))
	first := l.ask(who, hub.NewTurn{Input: input("Go on"), Source: "test"})
	other := l.ask(who, hub.NewTurn{Input: input("Go on"), Source: "test"})
	refused := func(who auth.Principal, id string, n hub.NewFork, code string) {
		t.Helper()
		_, err := l.ForkConversation(t.Context(), who, id, n)
		fails(t, err, code)
	}
	empty, err := l.CreateConversation(t.Context(), who, hub.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	refused(who, empty.ID, hub.NewFork{}, "conversation_empty")
	refused(who, "cnv_never", hub.NewFork{}, "conversation_not_found")
	refused(who, first.Conversation, hub.NewFork{Turn: other.ID}, "turn_not_found")
	refused(who, first.Conversation, hub.NewFork{Turn: "trn_never"}, "turn_not_found")
	refused(someone("prj_other"), first.Conversation, hub.NewFork{}, "conversation_not_found")
	reader := who
	reader.Scopes = []auth.Action{auth.ConversationsRead}
	refused(reader, first.Conversation, hub.NewFork{}, "forbidden")
	all, err := l.Conversations(t.Context(), who, hub.ConversationFilter{}, hub.Page{})
	if err != nil || len(all.Items) != 3 {
		t.Errorf("%+v %v", all.Items, err)
	}
}

// TestForkOfAnUndoneTurn has the state after a turn refused where the session does not have it any more, instead of another state in its place.
func TestForkOfAnUndoneTurn(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t,
		calls(python("c1", "remember one")), words("First."), calls(python("c2", "remember two")), words("Second."), calls(python("c3", "remember three")), words("Third."))
	first := l.ask(who, hub.NewTurn{Input: input("Go on"), Source: "test"})
	second := l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("Go on"), Source: "test"})
	fork := func(turn string, state hub.ForkState) (hub.Conversation, error) {
		return l.ForkConversation(t.Context(), who, first.Conversation, hub.NewFork{Turn: turn, State: state})
	}
	if _, err := fork(second.ID, hub.StateThen); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ReturnSession(t.Context(), who, first.Session, second.ID); err != nil {
		t.Fatal(err)
	}
	refused := func(when string) {
		t.Helper()
		if _, err := fork(second.ID, hub.StateThen); !problem.Has(err, problem.PointUnknown) {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("returned to before it")
	if c, err := fork(second.ID, hub.StateNow); err != nil || c.Session == "" {
		t.Errorf("with the present state: %+v, %v", c, err)
	}
	l.ask(who, hub.NewTurn{Conversation: first.Conversation, Parent: first.ID, Input: input("Go on"), Source: "test"})
	refused("another branch went on")
	c, err := fork(first.ID, hub.StateThen)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := l.run(who, c.Session, "recall"); fmt.Sprint(got) != "[one]" {
		t.Errorf("the state after the first turn is %q", got)
	}
}
