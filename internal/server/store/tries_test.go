package store_test

import (
	"encoding/json"
	"testing"

	"cove/internal/server/hub"
	"cove/internal/server/store"
)

// TestTriesOfATurn keeps what turns have to do with tries, and counts tries with the turn that they are tries of. A search does not find them.
func TestTriesOfATurn(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project, Created: at(0), Used: at(0)}))
		asked := turn("trn_1", "", 0)
		asked.Tries = &hub.TurnTries{Number: 2, Request: &hub.Asked{Turn: hub.NewTurn{Prompt: "churn", Tries: &hub.Tries{Number: 2, Check: "x > 0"}}}}
		must(t, s.AddTurn(ctx, asked))
		try := turn("trn_2", "", 1)
		try.Tries, try.Model = &hub.TurnTries{Of: "trn_1", Place: 1}, "another"
		must(t, s.AddTurn(ctx, try))
		passed := true
		about := hub.TurnTries{Of: "trn_1", Place: 1, Passed: &passed, Saved: true}
		must(t, s.SetTries(ctx, project, "trn_2", about))
		wantCode(t, s.SetTries(ctx, "prj_other", "trn_2", about), "turn_not_found")
		for id, want := range map[string]*hub.TurnTries{"trn_1": asked.Tries, "trn_2": &about} {
			got, err := s.Turn(ctx, project, id)
			must(t, err)
			if has, wanted := written(t, got.Tries), written(t, want); has != wanted {
				t.Errorf("%s has %s, want %s", id, has, wanted)
			}
		}
		counted := func(want int) {
			t.Helper()
			c, err := s.Conversation(ctx, project, "cnv_1")
			if err != nil || c.Turns != want || c.Model == "another" {
				t.Errorf("the conversation is %+v, %v", c, err)
			}
		}
		counted(1)
		if l, err := s.Search(ctx, project, "churn", hub.Page{}); err != nil || len(l.Items) != 1 {
			t.Errorf("found are %+v, %v", l.Items, err)
		}
		must(t, s.DeleteTurn(ctx, project, "trn_2"))
		counted(1)
		must(t, s.DeleteTurn(ctx, project, "trn_1"))
		counted(0)
	})
}

func written(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return string(text)
}
