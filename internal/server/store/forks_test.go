package store_test

import (
	"testing"

	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/server/stream"
)

// TestForksAreCopies has a fork with all that its origin's turns have, which stays when the origin goes.
func TestForksAreCopies(t *testing.T) {
	t.Parallel()
	const printed = `{"type":"output","step":1,"event":{"type":"stream","name":"stdout","text":"parsnip"}}`
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project, Created: at(0), Used: at(0)}))
		original := turn("trn_1", "", 2)
		must(t, s.AddTurn(ctx, original))
		must(t, s.AddExecution(ctx, execution("exe_1", "trn_1")))
		must(t, s.AddEvents(ctx, []stream.Event{event("trn_1", 1, "", `{"type":"text"}`), event("trn_1", 2, "exe_1", printed)}))
		step := execution("exe_1", "trn_1")
		step.State = "completed"
		if _, err := s.FinishExecution(ctx, step, nil); err != nil {
			t.Fatal(err)
		}
		original.State, original.Answer, original.Finished, original.Events = hub.TurnCompleted, "rutabaga", at(9), 3
		if _, err := s.FinishTurn(ctx, original, []stream.Event{event("trn_1", 3, "", `{"type":"answer"}`)}); err != nil {
			t.Fatal(err)
		}
		must(t, s.AddTurn(ctx, turn("trn_2", "trn_1", 3)))
		following, err := s.Following(ctx, project, "trn_1")
		must(t, err)
		if len(following) != 1 || following[0].ID != "trn_2" || following[0].Session != "ses_1" {
			t.Errorf("after the turn come %+v", following)
		}

		copied := original
		copied.ID, copied.Conversation, copied.Session, copied.Foreign = "trn_9", "cnv_9", "ses_9", nil
		copied.Origin = &hub.TurnOrigin{Turn: "trn_1", Session: "ses_1"}
		fork := hub.Conversation{ID: "cnv_9", Project: project, Created: at(20), Used: at(20), Turns: 1, Session: "ses_9",
			Origin: &hub.ConversationOrigin{Conversation: "cnv_1", Turn: "trn_1"}}
		small := hub.TurnCopy{Turn: copied, Of: "trn_1"}
		wantCode(t, s.AddFork(ctx, fork, []hub.TurnCopy{small}, 20), "conversation_too_large")
		wantCode(t, s.AddFork(ctx, fork, []hub.TurnCopy{{Turn: copied, Of: "trn_never"}}, 1<<20), "turn_not_found")
		_, err = s.Conversation(ctx, project, "cnv_9")
		wantCode(t, err, "conversation_not_found")
		must(t, s.AddFork(ctx, fork, []hub.TurnCopy{small}, 1<<20))

		must(t, s.DeleteTurn(ctx, project, "trn_2"))
		must(t, s.DeleteConversation(ctx, project, "cnv_1"))
		got, err := s.Conversation(ctx, project, "cnv_9")
		must(t, err)
		if got.Origin == nil || *got.Origin != *fork.Origin {
			t.Errorf("the fork is %+v", got)
		}
		back, err := s.Turn(ctx, project, "trn_9")
		must(t, err)
		if back.Answer != "rutabaga" || back.Origin == nil || *back.Origin != *copied.Origin {
			t.Errorf("the copy is %+v", back)
		}
		steps, err := s.Executions(ctx, project, hub.ExecutionFilter{Turn: "trn_9"}, hub.Page{})
		must(t, err)
		if len(steps.Items) != 1 || steps.Items[0].ID == "exe_1" || steps.Items[0].Session != "ses_9" {
			t.Fatalf("the steps are %+v", steps.Items)
		}
		output, err := s.Events(ctx, "trn_9", steps.Items[0].ID, 0, 10, 1<<30)
		must(t, err)
		events, err := s.Events(ctx, "trn_9", "", 0, 10, 1<<30)
		must(t, err)
		if len(events) != 3 || len(output) != 1 || string(output[0].Body) != printed {
			t.Errorf("the events are %+v, of the step %+v", events, output)
		}
		for _, word := range []string{"parsnip", "rutabaga", "churn", "pandas"} {
			found, err := s.Search(ctx, project, word, hub.Page{})
			must(t, err)
			if len(found.Items) != 1 || found.Items[0].Conversation != "cnv_9" || found.Items[0].Turn != "trn_9" || found.Items[0].Session != "ses_9" {
				t.Errorf("%q is found at %+v", word, found.Items)
			}
		}
		must(t, s.DeleteConversation(ctx, project, "cnv_9"))
		if found, err := s.Search(ctx, project, "parsnip", hub.Page{}); err != nil || len(found.Items) != 0 {
			t.Errorf("%+v %v", found, err)
		}
	})
}
