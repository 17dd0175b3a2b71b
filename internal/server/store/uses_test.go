package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/server/hub"
	"cove/internal/server/store"
)

func TestSessionsAreKnownByTheirConversations(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		for i, c := range []hub.Conversation{
			{ID: "cnv_1", Project: project, Session: "ses_1", Title: "销售"},
			{ID: "cnv_2", Project: project, Session: "ses_1", Title: "Growth"},
			{ID: "cnv_3", Project: project, Session: "ses_2", Title: "Other"},
			{ID: "cnv_4", Project: "prj_other", Session: "ses_1", Title: "Of another project"},
		} {
			c.Created, c.Used = at(i), at(i+100)
			must(t, s.AddConversation(ctx, c))
		}
		for i, files := range [][]hub.TurnFile{{{Name: "sales.csv"}}, nil, {{Name: "b.csv"}, {Name: "c.csv"}}, {{Name: "later.csv"}}} {
			id := "trn_" + string(rune('a'+i))
			must(t, s.AddTurn(ctx, hub.Turn{ID: id, Project: project, Conversation: "cnv_1", Session: "ses_1", State: hub.TurnCompleted, Files: files, Created: at(0).Add(time.Duration(i) * time.Second)}))
		}
		hidden := hub.Turn{ID: "trn_0", Project: project, Conversation: "cnv_1", Session: "ses_1", State: hub.TurnCompleted, Files: []hub.TurnFile{{Name: "hidden.csv"}}, Hidden: true, Created: at(0).Add(-time.Second)}
		must(t, s.AddTurn(ctx, hidden))
		uses, err := s.SessionUses(ctx, project, []string{"ses_1", "ses_2", "ses_none"}, 4)
		must(t, err)
		want := map[string][]hub.SessionUse{
			"ses_1": {{Conversation: "cnv_2", Title: "Growth"}, {Conversation: "cnv_1", Title: "销售", Files: []string{"sales.csv", "b.csv", "c.csv"}}},
			"ses_2": {{Conversation: "cnv_3", Title: "Other"}},
		}
		if diff := cmp.Diff(want, uses); diff != "" {
			t.Errorf("what uses the session differs:\n%s", diff)
		}
		if uses, err = s.SessionUses(ctx, project, []string{"ses_1"}, 1); err != nil || len(uses["ses_1"]) != 1 || uses["ses_1"][0].Conversation != "cnv_2" {
			t.Errorf("one at most: %+v, %v", uses, err)
		}
		if uses, err = s.SessionUses(ctx, project, []string{"ses_1\x00"}, 4); err != nil || len(uses) != 0 {
			t.Errorf("no session: %+v, %v", uses, err)
		}
	})
}
