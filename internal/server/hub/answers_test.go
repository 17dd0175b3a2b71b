package hub_test

import (
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// TestAnswers counts how turns went, also of a conversation that is deleted.
func TestAnswers(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "remember one")), words("First."), calls(python("c2", "fail now")), calls(python("c3", "remember two")), words("Second."))
	first := l.ask(who, hub.NewTurn{Input: input("Go on"), Source: "test"})
	l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("Go on"), Source: "test"})
	if err := l.DeleteConversation(t.Context(), who, first.Conversation); err != nil {
		t.Fatal(err)
	}
	operator := who
	operator.Role, operator.Scopes, operator.Admin = auth.Owner, nil, true
	for _, all := range []bool{false, true} {
		days, err := l.Answers(t.Context(), operator, all, "", "")
		if err != nil || len(days) != 1 {
			t.Fatalf("all: %v: %+v, %v", all, days, err)
		}
		d := days[0]
		counted := 0
		for _, n := range d.Within {
			counted += int(n)
		}
		if d.Model != first.Model || d.Turns != 2 || d.Completed != 2 || d.Failed != 0 || d.Steps != 3 || d.FailedSteps != 1 || d.Repaired != 1 || counted != 2 || d.InputTokens == 0 {
			t.Errorf("all: %v: %+v", all, d)
		}
	}
	weak := who
	weak.Scopes = []auth.Action{auth.SessionsRead}
	if _, err := l.Answers(t.Context(), weak, false, "", ""); !problem.Is(err, problem.Denied) {
		t.Errorf("without the right: %v", err)
	}
}

func TestAnswerDay(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 11, 21, 23, 59, 58, 0, time.UTC)
	d := hub.Turn{State: hub.TurnFailed, Model: "a/b", Created: begun, Finished: begun.Add(5 * time.Second), Work: hub.Work{FailedSteps: 2, Run: 2 * time.Second}}.AnswerDay()
	if d.Day != "2026-11-22" || d.Failed != 1 || d.Repaired != 0 || d.Within != [11]int64{0, 0, 0, 1} || d.Seconds != 5 || d.RunSeconds != 2 {
		t.Errorf("%+v", d)
	}
	if d := (hub.Turn{Created: begun}).AnswerDay(); d.Day != "2026-11-21" || d.Turns != 1 || d.Within[0] != 1 {
		t.Errorf("without an end: %+v", d)
	}
	for _, c := range []struct {
		within      [11]int64
		median, p95 float64
	}{
		{[11]int64{10, 0, 80, 5, 0, 0, 0, 0, 0, 0, 5}, 4, 8}, {[11]int64{10: 3}, 1024, 1024}, {[11]int64{1}, 1, 1}, {[11]int64{}, 0, 0}, {[11]int64{9: 1, 10: 1}, 512, 1024},
	} {
		if d := (hub.AnswerDay{Within: c.within}).Timed(); d.Median != c.median || d.P95 != c.p95 {
			t.Errorf("of %v half take at most %g s, and 95 of 100 %g", c.within, d.Median, d.P95)
		}
	}
}
