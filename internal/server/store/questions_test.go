package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/store"
)

// queue returns the ids of a conversation's queue.
func queue(t *testing.T, s *store.Store, conversation string) string {
	t.Helper()
	all, err := s.Questions(t.Context(), project, conversation)
	must(t, err)
	out := ""
	for _, q := range all {
		out += q.ID + " "
	}
	return out
}

func waits(id, conversation string) hub.Question {
	said := []model.Message{{Role: model.RoleUser, Content: []model.Content{model.Text{Text: "and 数?"}, model.Image{MIME: "image/png", Data: []byte{1, 2}}}}}
	hot := 0.5
	return hub.Question{
		ID: id, Project: project, User: "usr_a", Key: "key_a", Scopes: []auth.Action{auth.ConversationsWrite}, Conversation: conversation,
		Turn: hub.NewTurn{Prompt: "and 数?", Input: said, Model: "a/b", Files: []string{"fil_1"}, Temperature: &hot, Check: true, Source: "web",
			Foreign: []byte("null"), Format: model.Format{Schema: []byte("null")}}, // as JSON has what is not there
		Files: []hub.TurnFile{{ID: "fil_1", Name: "a.csv", Size: 3}}, Size: 10, Created: at(1), Changed: at(1),
	}
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	roomy := hub.QuestionBounds{Conversation: 9, Key: 9, Project: 9, Room: 1000}
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		for _, id := range []string{"cnv_1", "cnv_2"} {
			must(t, s.AddConversation(ctx, hub.Conversation{ID: id, Project: project, Created: at(0), Used: at(0)}))
		}
		first := waits("qst_2", "cnv_1")
		must(t, s.AddQuestion(ctx, first, roomy))
		must(t, s.AddQuestion(ctx, waits("qst_1", "cnv_1"), roomy)) // the order is that of coming
		must(t, s.AddQuestion(ctx, waits("qst_3", "cnv_2"), roomy))
		for name, most := range map[string]hub.QuestionBounds{"conversation": {Conversation: 2, Key: 9, Project: 9, Room: 1000}, "key": {Conversation: 9, Key: 3, Project: 9, Room: 1000}, "project": {Conversation: 9, Key: 9, Project: 3, Room: 1000}, "room": {Conversation: 9, Key: 9, Project: 9, Room: 39}} {
			t.Log(name)
			wantCode(t, s.AddQuestion(ctx, waits("qst_9", "cnv_1"), most), "too_many_questions")
		}
		wantCode(t, s.AddQuestion(ctx, waits("qst_9", "cnv_9"), roomy), "conversation_not_found")
		all, err := s.Questions(ctx, project, "cnv_1")
		must(t, err)
		if diff := cmp.Diff(first, all[0], cmpopts.IgnoreFields(hub.Question{}, "Place"), cmpopts.IgnoreUnexported(hub.NewTurn{})); diff != "" || queue(t, s, "cnv_1") != "qst_2 qst_1 " {
			t.Errorf("the queue is %s\n%s", queue(t, s, "cnv_1"), diff)
		}
		c, err := s.Conversation(ctx, project, "cnv_1")
		must(t, err)
		if !c.Used.After(at(0)) {
			t.Error("the queue changed, and nobody who looks at the conversation is told")
		}
		if others, err := s.Questions(ctx, "prj_x", "cnv_1"); len(others) != 0 || err != nil {
			t.Errorf("another project sees %v, %v", others, err)
		}
		wantCode(t, s.DeleteQuestion(ctx, "prj_x", "cnv_1", "qst_1"), "conversation_not_found")
		wantCode(t, s.DeleteQuestion(ctx, project, "cnv_2", "qst_1"), "question_not_found")
		must(t, s.DeleteQuestion(ctx, project, "cnv_1", "qst_1"))
		must(t, s.AddQuestion(ctx, waits("qst_4", "cnv_1"), roomy))
		must(t, s.DeleteConversation(ctx, project, "cnv_2"))
		if got := queue(t, s, "cnv_1") + queue(t, s, "cnv_2"); got != "qst_2 qst_4 " {
			t.Errorf("what is left is %s", got)
		}
	})
}

// TestATurnTakesItsQuestion: a question is in its queue or a turn, and is taken once, as it is.
func TestATurnTakesItsQuestion(t *testing.T) {
	t.Parallel()
	roomy := hub.QuestionBounds{Conversation: 9, Key: 9, Project: 9, Room: 1000}
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project, Created: at(0), Used: at(0)}))
		for _, id := range []string{"qst_1", "qst_2"} {
			must(t, s.AddQuestion(ctx, waits(id, "cnv_1"), roomy))
		}
		due := func(now time.Time, want int) {
			t.Helper()
			got, err := s.DueQuestions(ctx, now)
			if must(t, err); len(got) != want || want == 1 && (got[0].Conversation != "cnv_1" || got[0].Project != project) {
				t.Errorf("due are %+v, not %d", got, want)
			}
		}
		due(at(5), 1)
		hold := func(held *hub.Held, again time.Time) hub.Question {
			t.Helper()
			q, err := s.UpdateQuestion(ctx, project, "cnv_1", "qst_1", func(q *hub.Question) error { q.Held, q.Again = held, again; return nil })
			must(t, err)
			return q
		}
		held := hub.Held{Kind: problem.Exhausted, Code: "quota_tokens", Message: "used up", Since: at(5)}
		hold(&held, at(9))
		due(at(8), 0)
		due(at(9), 1)
		hold(&held, time.Time{})
		due(at(99), 0)
		hold(nil, time.Time{})
		due(at(5), 1)
		changed, err := s.UpdateQuestion(ctx, project, "cnv_1", "qst_1", func(q *hub.Question) error { q.Turn.Prompt, q.Changed = "other", at(6); return nil })
		must(t, err)

		asked := turn("trn_1", "", 2)
		asked.Taken = hub.Taken{ID: "qst_1", Changed: at(1)}
		wantCode(t, s.AddTurn(ctx, asked), "question_not_found") // as it was before it was changed
		_, err = s.Turn(ctx, project, "trn_1")
		wantCode(t, err, "turn_not_found")
		asked.Taken.Changed = at(6)
		must(t, s.AddTurn(ctx, asked))
		again := asked
		again.ID = "trn_2"
		wantCode(t, s.AddTurn(ctx, again), "question_not_found")
		due(at(99), 0) // a turn runs
		if got := queue(t, s, "cnv_1"); got != "qst_2 " {
			t.Errorf("left are %s", got)
		}
		taken := asked
		taken.Owner = "own_another"
		must(t, s.UndoTurn(ctx, taken, changed)) // which is not the turn of that process
		if got := queue(t, s, "cnv_1"); got != "qst_2 " {
			t.Errorf("another process's turn is undone: %s", got)
		}
		must(t, s.UndoTurn(ctx, asked, changed))
		must(t, s.UndoTurn(ctx, asked, changed)) // and not twice
		if got := queue(t, s, "cnv_1"); got != "qst_1 qst_2 " {
			t.Errorf("after it did not begin, the queue is %s", got)
		}
		due(at(5), 1)
	})
}
