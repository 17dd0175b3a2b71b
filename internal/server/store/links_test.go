package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/store"
)

func TestLinks(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddSession(ctx, hub.Session{ID: "ses_1", Project: project, State: hub.SessionActive, Created: at(0), Used: at(0)}))
		must(t, s.AddUser(ctx, auth.User{ID: "usr_a", Name: "ada", Created: at(0)}))
		must(t, s.AddProject(ctx, auth.Project{ID: project, Name: "lab", Created: at(0)}))
		must(t, s.SetMember(ctx, auth.Membership{Project: project, User: "usr_a", Role: auth.Member}))
		must(t, s.AddKey(ctx, auth.Key{ID: "key_1", Project: project, User: "usr_a", Name: "k", Created: at(0)}))
		link := hub.SessionLink{ID: "lnk_1", Hash: "aa", Project: project, User: "usr_a", Key: "key_1", Session: "ses_1", Purpose: hub.LinkRead, Path: "数/a", Created: at(0)}
		must(t, s.AddLink(ctx, link, 2))
		got, role, err := s.LinkOf(ctx, "aa", at(5))
		must(t, err)
		if diff := cmp.Diff(link, got); diff != "" || role != auth.Member {
			t.Errorf("a link differs: %s, %s", role, diff)
		}
		port := link
		port.ID, port.Hash, port.Purpose, port.Path, port.Port, port.Open, port.Wakes, port.Created, port.Expires = "lnk_2", "bb", hub.LinkPort, "", 8000, true, true, at(1), time.Now().Add(time.Hour)
		must(t, s.AddLink(ctx, port, 2))
		third := port
		third.ID, third.Hash = "lnk_3", "cc"
		wantCode(t, s.AddLink(ctx, third, 2), "too_many_links")
		third.Project = "prj_x"
		wantCode(t, s.AddLink(ctx, third, 9), "session_not_found")
		open, _, err := s.OpenPort(ctx, "ses_1", 8000, at(5))
		must(t, err)
		if open.ID != "lnk_2" {
			t.Errorf("open is %+v", open)
		}
		for what, gone := range map[string]error{
			"another port":    second(s.OpenPort(ctx, "ses_1", 8001, at(5))),
			"another session": second(s.OpenPort(ctx, "ses_2", 8000, at(5))),
			"another code":    second(s.LinkOf(ctx, "zz", at(5))),
			"it has ended":    second(s.LinkOf(ctx, "bb", time.Now().Add(2*time.Hour))),
		} {
			t.Log(what)
			wantCode(t, gone, "link_not_found")
		}
		all, err := s.Links(ctx, project, "ses_1")
		must(t, err)
		if len(all) != 2 || all[0].ID != "lnk_2" {
			t.Errorf("listed are %+v", all)
		}
		// A link has the role that its maker has now, and ends with the key and with the membership.
		must(t, s.SetMember(ctx, auth.Membership{Project: project, User: "usr_a", Role: auth.Viewer}))
		if _, role, err = s.LinkOf(ctx, "aa", at(5)); err != nil || role != auth.Viewer {
			t.Errorf("its maker is a %s, %v", role, err)
		}
		_, err = s.ChangeKey(ctx, "key_1", func(k *auth.Key) error { k.Revoked = at(4); return nil })
		must(t, err)
		wantCode(t, second(s.LinkOf(ctx, "aa", at(5))), "link_not_found")
		wantCode(t, second(s.OpenPort(ctx, "ses_1", 8000, at(5))), "link_not_found")
		link.ID, link.Hash, link.Key = "lnk_4", "dd", ""
		must(t, s.AddLink(ctx, link, 9))
		must(t, second(s.LinkOf(ctx, "dd", at(5))))
		wantCode(t, s.DeleteLink(ctx, "prj_x", "ses_1", "lnk_4"), "link_not_found")
		wantCode(t, s.DeleteLink(ctx, project, "ses_2", "lnk_4"), "link_not_found")
		must(t, s.DeleteUser(ctx, "usr_a"))
		wantCode(t, second(s.LinkOf(ctx, "dd", at(5))), "link_not_found")
		must(t, s.DeleteLink(ctx, project, "ses_1", "lnk_4"))
		wantCode(t, s.DeleteLink(ctx, project, "ses_1", "lnk_4"), "link_not_found")
	})
}

// second is the error of what returns a link.
func second(_ hub.SessionLink, _ auth.Role, err error) error { return err }
