package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/server/auth"
	"cove/internal/server/store"
)

func TestPasswordsAndInvitations(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddUser(ctx, auth.User{ID: "usr_a", Name: "ada", Created: at(0)}))
		must(t, s.AddUser(ctx, auth.User{ID: "usr_b", Name: "bob", Created: at(0)}))
		p := auth.Password{User: "usr_a", Login: "ada\x00数", Hash: "$argon2id$v=19$", Changed: at(1)}
		must(t, s.SetPassword(ctx, p))
		p.Login, p.Hash = "ada", "$argon2id$v=20$"
		must(t, s.SetPassword(ctx, p))
		for _, look := range []func() (auth.Password, error){
			func() (auth.Password, error) { return s.Password(ctx, "usr_a") },
			func() (auth.Password, error) { return s.PasswordOf(ctx, "ada") },
		} {
			got, err := look()
			must(t, err)
			if diff := cmp.Diff(p, got); diff != "" {
				t.Errorf("a password differs:\n%s", diff)
			}
		}
		wantCode(t, s.SetPassword(ctx, auth.Password{User: "usr_b", Login: "ada"}), "user_exists")
		if none, err := s.PasswordOf(ctx, "no\x00body"); err != nil || none != (auth.Password{}) {
			t.Errorf("nobody's password is %+v, %v", none, err)
		}

		i := auth.Invitation{ID: "inv_1", Hash: "aa", Project: project, User: "usr_a", Role: auth.Viewer, Name: "数", Maker: "usr_b", Created: at(0), Expires: at(9)}
		must(t, s.AddInvitation(ctx, i))
		must(t, s.AddInvitation(ctx, auth.Invitation{ID: "inv_2", Hash: "bb", Project: project, Maker: "usr_b", Created: at(1), Expires: time.Now().Add(time.Hour)}))
		must(t, s.AddInvitation(ctx, auth.Invitation{ID: "inv_3", Hash: "cc", Project: "prj_x", Maker: "usr_x", Created: at(1), Expires: time.Now().Add(time.Hour)}))
		if err := s.AddInvitation(ctx, auth.Invitation{ID: "inv_4", Hash: "aa"}); err == nil {
			t.Error("two invitations have one code")
		}
		must(t, s.UseInvitation(ctx, "inv_1", at(5)))
		i.Used = at(5)
		got, err := s.InvitationOf(ctx, "aa")
		must(t, err)
		if diff := cmp.Diff(i, got); diff != "" {
			t.Errorf("an invitation differs:\n%s", diff)
		}
		if none, err := s.InvitationOf(ctx, "dd"); err != nil || none != (auth.Invitation{}) {
			t.Errorf("an invitation that is not there is %+v, %v", none, err)
		}
		list, err := s.Invitations(ctx, project)
		must(t, err)
		if len(list) != 2 || list[0].ID != "inv_1" {
			t.Errorf("the project's invitations are %+v", list)
		}
		must(t, s.DeleteInvitation(ctx, "inv_1"))
		_, err = s.Invitation(ctx, "inv_1")
		wantCode(t, err, "invitation_not_found")

		must(t, s.AddBrowser(ctx, auth.Browser{ID: "brw_1", Project: project, User: "usr_a"}))
		must(t, s.AddBrowser(ctx, auth.Browser{ID: "brw_2", Project: "prj_x", User: "usr_a"}))
		if all, err := s.Browsers(ctx, "", "usr_a"); err != nil || len(all) != 2 {
			t.Errorf("browsers of all projects are %+v, %v", all, err)
		}
		must(t, s.DeleteUser(ctx, "usr_a"))
		must(t, s.DeleteUser(ctx, "usr_b"))
		if none, err := s.Password(ctx, "usr_a"); err != nil || none != (auth.Password{}) {
			t.Errorf("a deleted user's password is %+v, %v", none, err)
		}
		_, err = s.Invitation(ctx, "inv_2")
		wantCode(t, err, "invitation_not_found")
		must(t, s.AddInvitation(ctx, auth.Invitation{ID: "inv_5", Hash: "ee", Expires: time.Now().Add(-48 * time.Hour)}))
		_, err = s.Retain(ctx, time.Time{}, time.Time{})
		must(t, err)
		_, err = s.Invitation(ctx, "inv_5")
		wantCode(t, err, "invitation_not_found")
		if _, err := s.Invitation(ctx, "inv_3"); err != nil {
			t.Error(err)
		}
	})
}

func TestMemberships(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddUser(ctx, auth.User{ID: "usr_a", Name: "ada", Created: at(0)}))
		for k, id := range []string{"prj_b", "prj_a", "prj_c"} {
			must(t, s.AddProject(ctx, auth.Project{ID: id, Name: id, Created: at(k)}))
			must(t, s.SetMember(ctx, auth.Membership{Project: id, User: "usr_a", Role: auth.Viewer}))
		}
		of, err := s.Memberships(ctx, "usr_a")
		must(t, err)
		if len(of) != 3 || of[0].Project != "prj_b" || of[2].Project != "prj_c" {
			t.Errorf("the memberships are %+v", of)
		}
	})
}
