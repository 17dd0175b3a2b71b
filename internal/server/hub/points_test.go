package hub_test

import (
	"fmt"
	"testing"

	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// TestPointsOfTurns has turns begin with points, and sessions return to them and branch there.
func TestPointsOfTurns(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t,
		calls(python("c1", "remember one")), words("First."), calls(python("c2", "remember two")), words("Second."), words("Third."), words("Fourth."))
	var turns []hub.Turn
	conversation := ""
	for range 4 {
		turn := l.ask(who, hub.NewTurn{Conversation: conversation, Input: input("Go on"), Source: "test"})
		turns, conversation = append(turns, turn), turn.Conversation
	}
	session := turns[0].Session
	points, err := l.Points(t.Context(), who, session)
	if err != nil || len(points) < 3 || points[0].ID != "start" || points[0].Before[0] != turns[0].ID || !points[len(points)-1].Present {
		t.Fatalf("%+v %v", points, err)
	}
	has := func(session, want string) {
		t.Helper()
		if got, _ := l.run(who, session, "recall"); fmt.Sprint(got) != "["+want+"]" {
			t.Errorf("it has %q, not %q", got, want)
		}
	}
	for n, want := range []string{"", "one", "one two", "one two"} {
		fork, err := l.ForkSession(t.Context(), who, session, hub.NewSession{Point: turns[n].ID})
		if err != nil {
			t.Fatal(err)
		}
		has(fork.ID, want)
	}
	has(session, "one two")
	back, err := l.ReturnSession(t.Context(), who, session, turns[1].ID)
	if err != nil || back.Rollback == nil || len(back.Rollback.Executions) != 2 || back.Rollback.Executions[1] == "" {
		t.Fatalf("%+v %v", back, err)
	}
	has(session, "one")
	_, err = l.ReturnSession(t.Context(), who, session, turns[2].ID)
	fails(t, err, "point_unknown")
	_, err = l.ForkSession(t.Context(), who, session, hub.NewSession{Point: "snp_never"})
	fails(t, err, "point_unknown")
	_, err = l.ReturnSession(t.Context(), someone("prj_other"), session, turns[1].ID)
	fails(t, err, "session_not_found")
	kept, err := l.KeepPoint(t.Context(), who, session)
	if err != nil || !kept.Present {
		t.Fatalf("%+v %v", kept, err)
	}
	l.run(who, session, "remember three")
	if _, err := l.ReturnSession(t.Context(), who, session, ""); err != nil {
		t.Fatal(err)
	}
	has(session, "one")
}

// TestWithoutPoints has a server that keeps none by itself.
func TestWithoutPoints(t *testing.T) {
	t.Parallel()
	l := newLife(t, func(o *hub.Options) {
		o.Models = &voice{t: t, lines: []line{calls(python("c1", "remember one")), words("First."), words("Second.")}}
		o.Limits.Points = 0
	})
	who := someone(auth.LocalProject)
	first := l.ask(who, hub.NewTurn{Input: input("Go on"), Source: "test"})
	l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("Go on"), Source: "test"})
	if points, err := l.Points(t.Context(), who, first.Session); err != nil || len(points) > 0 {
		t.Errorf("%+v %v", points, err)
	}
	_, err := l.ReturnSession(t.Context(), who, first.Session, "")
	fails(t, err, "nothing_to_undo")
}
