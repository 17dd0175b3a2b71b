package hub_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// asking begins a turn whose code waits for approval, and returns when it waits.
func (l *life) asking(who auth.Principal, n hub.NewTurn) hub.Turn {
	l.t.Helper()
	n.Approval, n.Input = hub.ApprovalAlways, input("go")
	turn := l.begin(who, n)
	return l.waiting(who, turn.ID, 1)
}

// waiting returns a turn as soon as the code of a step waits.
func (l *life) waiting(who auth.Principal, id string, step int) hub.Turn {
	l.t.Helper()
	for range 2000 {
		turn, err := l.Turn(l.t.Context(), who, id)
		switch {
		case err != nil:
			l.t.Fatal(err)
		case turn.State.Final():
			l.t.Fatalf("the turn has ended: %+v", turn)
		case turn.Waiting != nil && turn.Waiting.Step == step:
			return turn
		}
		time.Sleep(5 * time.Millisecond)
	}
	l.t.Fatalf("step %d does not wait", step)
	return hub.Turn{}
}

// kindsOf follows a turn and returns what kinds of events it had, without words and output.
func (l *life) kindsOf(who auth.Principal, id string) (kinds []string, events []hub.Numbered[hub.TurnEvent], err error) {
	l.t.Helper()
	events, err = l.hear(who, id)
	for _, e := range events {
		switch e.Event.(type) {
		case loop.Text, loop.Code, loop.Output:
		default:
			kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%T", e.Event), "loop."))
		}
	}
	return kinds, events, err
}

func TestCodeWaitsForApproval(t *testing.T) {
	t.Parallel()
	l, v, who := newTalk(t, calls(python("c1", "say a")), calls(python("c2", "say b")), calls(python("c3", "say c")), words("Done."))
	turn := l.asking(who, hub.NewTurn{})
	if turn.State != hub.TurnRunning || turn.Waiting.Code != "say a" || turn.Waiting.Since.IsZero() {
		t.Fatalf("%+v", turn)
	}
	if _, err := l.ApproveTurn(t.Context(), who, turn.ID, hub.Word{Step: 2, Run: true}); problem.Of(err).Code != "turn_not_waiting" {
		t.Errorf("another step: %v", err)
	}
	if steps, err := l.Executions(t.Context(), who, hub.ExecutionFilter{Turn: turn.ID}, hub.Page{}); err != nil || len(steps.Items) != 0 {
		t.Fatalf("before its approval: %+v, %v", steps, err)
	}
	say := func(w hub.Word) {
		t.Helper()
		got, err := l.ApproveTurn(t.Context(), who, turn.ID, w)
		if err != nil {
			t.Fatal(err)
		}
		if got.Waiting != nil && got.Waiting.Step == w.Step {
			t.Errorf("approved, the turn is %+v", got)
		}
	}
	say(hub.Word{Step: 1, Run: true})
	if _, err := l.ApproveTurn(t.Context(), who, turn.ID, hub.Word{Step: 1, Run: true}); problem.Of(err).Code != "turn_not_waiting" {
		t.Errorf("a second time: %v", err)
	}
	l.waiting(who, turn.ID, 2)
	say(hub.Word{Step: 2, Note: "no b here"})
	l.waiting(who, turn.ID, 3)
	say(hub.Word{Step: 3, Run: true, Code: "say edited"})
	kinds, _, err := l.kindsOf(who, turn.ID)
	if got := strings.Join(kinds, " "); err != nil || got != "Approval Start Approval Refused Approval Start Answer" {
		t.Errorf("%s, %v", got, err)
	}
	steps, err := l.Executions(t.Context(), who, hub.ExecutionFilter{Turn: turn.ID}, hub.Page{Oldest: true})
	if err != nil || len(steps.Items) != 2 {
		t.Fatalf("%+v %v", steps, err)
	}
	if a, c := steps.Items[0], steps.Items[1]; a.Edited || a.Step != 1 || !c.Edited || c.Step != 3 || c.Code != "say edited" {
		t.Errorf("%+v", steps.Items)
	}
	if got := v.asked(2); !strings.Contains(got, "did not want") || !strings.Contains(got, "no b here") {
		t.Errorf("of the refusal the model was told %s", got)
	}
	if got := v.asked(3); !strings.Contains(got, "changed your code") || !strings.Contains(got, "say edited") {
		t.Errorf("of the edit the model was told %s", got)
	}
	end, err := l.Turn(t.Context(), who, turn.ID)
	if err != nil || end.State != hub.TurnCompleted || end.Steps != 2 || end.Waiting != nil {
		t.Errorf("%+v, %v", end, err)
	}
	if _, err := l.ApproveTurn(t.Context(), who, turn.ID, hub.Word{Step: 3, Run: true}); problem.Of(err).Code != "turn_not_waiting" {
		t.Errorf("after the end: %v", err)
	}
}

func TestWhoMayApprove(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "say a")), words("Done."))
	turn := l.asking(who, hub.NewTurn{})
	for name, test := range map[string]struct {
		who  auth.Principal
		word hub.Word
		want string
	}{
		"another project": {someone("prj_other"), hub.Word{Step: 1, Run: true}, "turn_not_found"},
		"no right to run": {func() auth.Principal { w := who; w.Scopes = []auth.Action{auth.ConversationsWrite}; return w }(), hub.Word{Step: 1, Run: true}, "forbidden"},
		"a note for code": {who, hub.Word{Step: 1, Run: true, Note: "x"}, "turn_invalid"},
		"code to refuse":  {who, hub.Word{Step: 1, Code: "x"}, "turn_invalid"},
		"empty code":      {who, hub.Word{Step: 1, Run: true, Code: "\n"}, "turn_invalid"},
		"a long note":     {who, hub.Word{Step: 1, Note: strings.Repeat("x", 5000)}, "turn_invalid"},
		"much code":       {who, hub.Word{Step: 1, Run: true, Code: strings.Repeat("x", 2<<20)}, "code_too_large"},
	} {
		if _, err := l.ApproveTurn(t.Context(), test.who, turn.ID, test.word); err == nil || problem.Of(err).Code != test.want {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	if _, err := l.ApproveTurn(t.Context(), who, turn.ID, hub.Word{Step: 1, Run: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.hear(who, turn.ID); err != nil {
		t.Fatal(err)
	}
}

// A turn that waits is cancelled like any other, and its session is not in use.
func TestAWaitingTurnIsCancelled(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "say a")))
	turn := l.asking(who, hub.NewTurn{})
	if s, err := l.PauseSession(t.Context(), who, turn.Session); err != nil || s.State != hub.SessionPaused {
		t.Errorf("the session of a turn that waits is %+v, %v", s, err)
	}
	if _, err := l.CancelTurn(t.Context(), who, turn.ID); err != nil {
		t.Fatal(err)
	}
	_, err := l.hear(who, turn.ID)
	fails(t, err, "canceled")
	got, err := l.Turn(t.Context(), who, turn.ID)
	if err != nil || got.State != hub.TurnCanceled || got.Waiting != nil {
		t.Errorf("%+v %v", got, err)
	}
}

// While the user thinks, the session may be paused; it is brought back to run the code.
func TestASessionThatWasPausedWhileItsCodeWaited(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "say a")), words("Done."))
	turn := l.asking(who, hub.NewTurn{})
	if _, err := l.PauseSession(t.Context(), who, turn.Session); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ApproveTurn(t.Context(), who, turn.ID, hub.Word{Step: 1, Run: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.hear(who, turn.ID); err != nil {
		t.Error(err)
	}
}

func TestNobodyApproves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &voice{t: t, lines: []line{calls(python("c1", "say a")), calls(python("c2", "say b"))}}
		l := newLife(t, func(o *hub.Options) { o.Models, o.Limits.Approval, o.Turns.Time = v, 2*time.Hour, time.Minute })
		who := someone(auth.LocalProject)
		turn := l.asking(who, hub.NewTurn{})
		time.Sleep(time.Hour) // the turn's own time does not run meanwhile
		if _, err := l.ApproveTurn(t.Context(), who, turn.ID, hub.Word{Step: 1, Run: true}); err != nil {
			t.Fatal(err)
		}
		l.waiting(who, turn.ID, 2)
		time.Sleep(3 * time.Hour)
		got, err := l.Turn(t.Context(), who, turn.ID)
		if err != nil || got.State != hub.TurnCanceled || got.Steps != 1 || !strings.Contains(string(got.Problem), "approval_late") {
			t.Errorf("%+v %v", got, err)
		}
	})
}

// A server that stops does not wait for its users, and says why their turns ended.
func TestADrainEndsWhatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, _, who := newTalk(t, calls(python("c1", "say a")))
		turn := l.asking(who, hub.NewTurn{})
		began := time.Now()
		if err := l.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the drain took %s", took)
		}
		got, err := l.store.Turn(t.Context(), who.Project, turn.ID)
		if err != nil || got.State != hub.TurnFailed || got.Waiting != nil || !strings.Contains(string(got.Problem), "waited for its user") {
			t.Errorf("%+v %v", got, err)
		}
	})
}

func TestAServerThatWasKilledWhileCodeWaited(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "say a")))
	turn := l.asking(who, hub.NewTurn{})
	n := l.killed()
	got, err := n.Turn(t.Context(), who, turn.ID)
	if err != nil || got.State != hub.TurnLost || got.Waiting != nil || !strings.Contains(string(got.Problem), "waited for its user") {
		t.Errorf("%+v %v", got, err)
	}
	steps, err := n.Executions(t.Context(), who, hub.ExecutionFilter{Turn: turn.ID}, hub.Page{})
	if err != nil || len(steps.Items) != 0 {
		t.Errorf("%+v %v", steps, err)
	}
}

func TestApprovalOfAConversation(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, words("One."), calls(python("c1", "say a")), words("Two."))
	c, err := l.CreateConversation(t.Context(), who, hub.NewConversation{Approval: "sometimes"})
	if err == nil {
		t.Errorf("made %+v", c)
	}
	first := l.ask(who, hub.NewTurn{Input: input("go")})
	_, err = l.StartTurn(t.Context(), who, hub.NewTurn{Conversation: first.Conversation, Input: input("go"), Approval: hub.ApprovalAlways})
	fails(t, err, "turn_invalid")
	always := hub.ApprovalAlways
	if c, err = l.ChangeConversation(t.Context(), who, first.Conversation, hub.ConversationChange{Approval: &always}); err != nil || c.Approval != always {
		t.Fatalf("%+v, %v", c, err)
	}
	_, err = l.RunTurn(t.Context(), who, hub.NewTurn{Conversation: first.Conversation, Input: input("go")}, func(hub.TurnEvent) error { return nil })
	fails(t, err, "turn_invalid")
	turn := l.begin(who, hub.NewTurn{Conversation: first.Conversation, Input: input("go")})
	l.waiting(who, turn.ID, 1)
	if _, err := l.ApproveTurn(t.Context(), who, turn.ID, hub.Word{Step: 1, Run: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.hear(who, turn.ID); err != nil {
		t.Error(err)
	}
}
