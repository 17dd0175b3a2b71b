package store_test

import (
	"testing"

	"cove/internal/server/hub"
	"cove/internal/server/store"
)

// TestRatingsOfTurns keeps what people say of answers, lists it by project, and forgets it when it is taken back.
func TestRatingsOfTurns(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project, Created: at(0), Used: at(0)}))
		for n, id := range []string{"trn_1", "trn_2", "trn_3"} {
			must(t, s.AddTurn(ctx, turn(id, "", n)))
		}
		bad := &hub.Rating{Reason: "the sum is wrong", User: "usr_1", At: at(5)}
		must(t, s.SetRating(ctx, project, "trn_1", bad))
		must(t, s.SetRating(ctx, project, "trn_3", &hub.Rating{Good: true, User: "usr_1", At: at(6)}))
		wantCode(t, s.SetRating(ctx, "prj_other", "trn_1", bad), "turn_not_found")
		ended := turn("trn_1", "", 0)
		ended.State, ended.Finished, ended.Answer = hub.TurnCompleted, at(9), "It is 41."
		_, err := s.FinishTurn(ctx, ended, nil) // which leaves the rating
		must(t, err)
		l, err := s.RatedTurns(ctx, project, hub.Page{Limit: 1})
		must(t, err)
		if len(l.Items) != 1 || l.Items[0].ID != "trn_3" || !l.Items[0].Rating.Good || l.Next == "" {
			t.Fatalf("%+v", l)
		}
		if l, err = s.RatedTurns(ctx, project, hub.Page{After: l.Next}); err != nil || len(l.Items) != 1 || written(t, l.Items[0].Rating) != written(t, bad) || l.Items[0].Answer != "It is 41." || l.Items[0].Prompt == "" {
			t.Errorf("%+v %v", l, err)
		}
		if l, err = s.RatedTurns(ctx, "prj_other", hub.Page{}); err != nil || len(l.Items) != 0 {
			t.Errorf("another project has %+v %v", l, err)
		}
		must(t, s.SetRating(ctx, project, "trn_3", nil))
		if got, err := s.Turn(ctx, project, "trn_3"); err != nil || got.Rating != nil {
			t.Errorf("%+v %v", got.Rating, err)
		}
		if l, err = s.RatedTurns(ctx, project, hub.Page{}); err != nil || len(l.Items) != 1 {
			t.Errorf("after it was taken back: %+v %v", l, err)
		}
	})
}
