package hub_test

import (
	"testing"
	"testing/synctest"

	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// TestTurnWaitsForRoom has a turn whose caller runs as much as it may when the model's code comes: the code waits, as long as it does for room, and no longer.
func TestTurnWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &voice{t: t, lines: []line{calls(python("c1", "say a")), words("Done."), calls(python("c2", "say b"))}}
		l, who := newLife(t, func(o *hub.Options) { o.Models, o.Limits.Project.Executions = v, 1 }), someone(auth.LocalProject)
		s := l.session(who)
		before := l.start(who, s.ID, "say on\nwait go")
		l.began(who, before.ID)
		first := l.begin(who, hub.NewTurn{Input: input("a?")})
		synctest.Wait()
		if turn, err := l.Turn(t.Context(), who, first.ID); err != nil || turn.State.Final() {
			t.Errorf("it did not wait: %+v %v", turn, err)
		}
		l.toys.open("go")
		l.wait(who, before.ID)
		if _, err := l.hear(who, first.ID); err != nil {
			t.Error(err)
		}
		steps, err := l.Executions(t.Context(), who, hub.ExecutionFilter{Turn: first.ID}, hub.Page{})
		if err != nil || len(steps.Items) != 1 || steps.Items[0].State != hub.ExecutionState(kernel.OutcomeOK) {
			t.Errorf("%+v %v", steps, err)
		}
		l.start(who, s.ID, "say on\nwait never")
		_, err = l.hear(who, l.begin(who, hub.NewTurn{Input: input("b?")}).ID)
		fails(t, err, "quota_executions")
	})
}
