package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/llm/model"
	"cove/internal/server/hub"
	"cove/internal/server/store"
)

// TestAnswersAddUp counts each turn once, when it ends, and keeps the figures when the conversation is deleted.
func TestAnswersAddUp(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		begun := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
		for n, c := range []struct {
			project, name string
			state         hub.TurnState
			took          time.Duration
		}{{project, "a/one", hub.TurnCompleted, 3 * time.Second}, {project, "a/one", hub.TurnFailed, time.Hour}, {project, "b/two", hub.TurnCanceled, time.Second}, {"prj_b", "a/one", hub.TurnCompleted, time.Second}} {
			id := string(rune('0' + n))
			turn := hub.Turn{ID: "trn_" + id, Project: c.project, User: "usr_1", Conversation: "cnv_" + id, State: hub.TurnRunning, Model: c.name, Created: begun, Owner: "own_1"}
			must(t, s.AddConversation(ctx, hub.Conversation{ID: turn.Conversation, Project: c.project, User: "usr_1", Created: begun, Used: begun}))
			must(t, s.AddTurn(ctx, turn))
			turn.State, turn.Finished, turn.Steps = c.state, begun.Add(c.took), 2
			turn.Work = hub.Work{FailedSteps: 1, Installs: 1, Run: time.Second}
			turn.Usage = model.Usage{InputTokens: 10, OutputTokens: 5}
			for _, first := range []bool{true, false} {
				if got, err := s.FinishTurn(ctx, turn, nil); got != first || err != nil {
					t.Fatalf("%s: %v, %v", turn.ID, got, err)
				}
			}
		}
		must(t, s.DeleteConversation(ctx, project, "cnv_0"))
		one := hub.AnswerDay{Day: "2026-11-21", Model: "a/one", Turns: 2, Completed: 1, Failed: 1, Steps: 4, FailedSteps: 2, Repaired: 1, Installs: 2, InputTokens: 20, OutputTokens: 10,
			Seconds: 3603, RunSeconds: 2, Within: [11]int64{2: 1, 10: 1}}
		two := hub.AnswerDay{Day: "2026-11-21", Model: "b/two", Turns: 1, Canceled: 1, Steps: 2, FailedSteps: 1, Installs: 1, InputTokens: 10, OutputTokens: 5, Seconds: 1, RunSeconds: 1, Within: [11]int64{1}}
		got, err := s.Answers(ctx, project, "2026-11-20", "2026-11-21")
		must(t, err)
		if diff := cmp.Diff([]hub.AnswerDay{one, two}, got); diff != "" {
			t.Error(diff)
		}
		all, err := s.Answers(ctx, "", "2026-11-21", "2026-11-21")
		must(t, err)
		if len(all) != 2 || all[0].Turns != 3 || all[0].Repaired != 2 || all[0].Seconds != 3604 || all[0].Within != [11]int64{0: 1, 2: 1, 10: 1} {
			t.Errorf("all projects: %+v", all)
		}
		if none, err := s.Answers(ctx, project, "2026-11-22", "2026-11-23"); err != nil || len(none) != 0 {
			t.Errorf("other days: %+v, %v", none, err)
		}
		must(t, s.Write(ctx, "UPDATE answer_days SET input_tokens = 9223372036854775807"))
		turn := hub.Turn{ID: "trn_9", Project: project, User: "usr_1", Conversation: "cnv_9", State: hub.TurnRunning, Model: "a/one", Created: begun, Owner: "own_1"}
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_9", Project: project, User: "usr_1", Created: begun, Used: begun}))
		must(t, s.AddTurn(ctx, turn))
		turn.State, turn.Finished = hub.TurnCompleted, begun
		if _, err := s.FinishTurn(ctx, turn, nil); err != nil {
			t.Errorf("after a counter that cannot be: %v", err)
		}
	})
}
