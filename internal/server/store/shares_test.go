package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/server/hub"
	"cove/internal/server/store"
)

func TestShares(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project, Created: at(0), Used: at(0)}))
		share := hub.Share{ID: "shr_1", Hash: "aa", Project: project, User: "usr_a", Conversation: "cnv_1", Turn: "trn_1", Title: "数\x00", Turns: 2, Code: true, Size: 3, Created: at(0)}
		document := []byte{0x1f, 0, 0xff}
		must(t, s.AddShare(ctx, share, document, 2, 100))
		share.Title = "数\uFFFD"
		got, bytes, err := s.SharedDocument(ctx, "aa")
		must(t, err)
		if diff := cmp.Diff(share, got); diff != "" || string(bytes) != string(document) {
			t.Errorf("a share differs: %v\n%s", bytes, diff)
		}
		other := share
		other.ID, other.Hash, other.Created, other.Expires = "shr_2", "bb", at(1), at(60)
		must(t, s.AddShare(ctx, other, document, 2, 100))
		other.ID, other.Hash, other.Created = "shr_3", "cc", at(2)
		wantCode(t, s.AddShare(ctx, other, document, 2, 100), "too_many_shares")
		wantCode(t, s.AddShare(ctx, other, document, 9, 8), "too_many_shares")
		foreign := other
		foreign.Project = "prj_x"
		wantCode(t, s.AddShare(ctx, foreign, document, 9, 100), "conversation_not_found")
		other.Created = at(61) // one has ended
		other.Expires = time.Now().Add(time.Hour)
		must(t, s.AddShare(ctx, other, document, 2, 100))

		list, err := s.Shares(ctx, project, hub.Page{})
		must(t, err)
		if len(list.Items) == 0 || list.Items[0].ID != "shr_3" {
			t.Errorf("listed are %+v", list)
		}
		wantCode(t, s.DeleteShare(ctx, "prj_x", "shr_1"), "share_not_found")
		must(t, s.DeleteShare(ctx, project, "shr_1"))
		_, _, err = s.SharedDocument(ctx, "aa")
		wantCode(t, err, "share_not_found")
		must(t, s.DeleteConversation(ctx, project, "cnv_1"))
		_, _, err = s.SharedDocument(ctx, "cc")
		wantCode(t, err, "share_not_found")

		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_2", Project: project, Created: at(0), Used: time.Now()}))
		share.Conversation, share.Expires = "cnv_2", time.Now().Add(-time.Second)
		must(t, s.AddShare(ctx, share, document, 2, 100))
		_, err = s.Retain(ctx, time.Time{}, time.Time{})
		must(t, err)
		_, _, err = s.SharedDocument(ctx, "aa")
		wantCode(t, err, "share_not_found")
	})
}
