package store_test

import (
	"testing"

	"cove/internal/server/hub"
	"cove/internal/server/store"
)

// TestMarksOfTurns keeps what people did after a turn, whatever else is written of it, and forgets it when it is taken back.
func TestMarksOfTurns(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project, Created: at(0), Used: at(0)}))
		must(t, s.AddTurn(ctx, turn("trn_1", "", 0)))
		mark := func(change func(*hub.TurnMarks)) (*hub.TurnMarks, error) {
			return s.MarkTurn(ctx, project, "trn_1", func(m *hub.TurnMarks) error {
				change(m)
				return nil
			})
		}
		want := hub.TurnMarks{Undone: &hub.Undone{From: "trn_1", Session: "ses_2", At: at(3)}, Reruns: []hub.Rerun{{Step: 2, Execution: "exe_1", At: at(4)}}}
		_, err := mark(func(m *hub.TurnMarks) { m.Undone = want.Undone })
		must(t, err)
		got, err := mark(func(m *hub.TurnMarks) { m.Reruns = want.Reruns })
		if err != nil || written(t, got) != written(t, &want) {
			t.Fatalf("%+v %v", got, err)
		}
		ended := turn("trn_1", "", 0)
		ended.State, ended.Finished = hub.TurnCompleted, at(9)
		_, err = s.FinishTurn(ctx, ended, nil)
		must(t, err)
		if kept, err := s.Turn(ctx, project, "trn_1"); err != nil || written(t, kept.Marks) != written(t, &want) {
			t.Errorf("%+v %v", kept.Marks, err)
		}
		_, err = s.MarkTurn(ctx, "prj_other", "trn_1", func(*hub.TurnMarks) error { return nil })
		wantCode(t, err, "turn_not_found")
		_, err = mark(func(m *hub.TurnMarks) { *m = hub.TurnMarks{} })
		must(t, err)
		if kept, err := s.Turn(ctx, project, "trn_1"); err != nil || kept.Marks != nil {
			t.Errorf("%+v %v", kept.Marks, err)
		}
	})
}
