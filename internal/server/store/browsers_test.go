package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/server/auth"
	"cove/internal/server/store"
)

func TestBrowsersAndCodes(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddUser(ctx, auth.User{ID: "usr_a", Name: "ada", Created: at(0)}))
		b := auth.Browser{ID: "brw_1", Project: project, User: "usr_a", Key: "key_1", Hash: []byte{0, 1, 255}, Created: at(0), Used: at(1), Expires: at(60),
			Agent: "Mozilla \x00\xff 数", IP: "::1"}
		must(t, s.AddBrowser(ctx, b))
		b.Agent = "Mozilla \uFFFD\uFFFD 数"
		got, err := s.Browser(ctx, "brw_1")
		must(t, err)
		if diff := cmp.Diff(b, got); diff != "" {
			t.Errorf("a browser differs:\n%s", diff)
		}
		must(t, s.AddBrowser(ctx, auth.Browser{ID: "brw_2", Project: "prj_x", User: "usr_a"}))
		must(t, s.AddBrowser(ctx, auth.Browser{ID: "brw_3", Project: project, User: "usr_b", Expires: time.Now().Add(time.Hour)}))
		list, err := s.Browsers(ctx, project, "usr_a")
		must(t, err)
		if len(list) != 1 || list[0].ID != "brw_1" {
			t.Errorf("the user's browsers are %+v", list)
		}
		_, err = s.ChangeBrowser(ctx, "brw_1", func(b *auth.Browser) error { b.Revoked = at(5); return nil })
		must(t, err)
		if got, err := s.Browser(ctx, "brw_1"); err != nil || !got.Revoked.Equal(at(5)) || string(got.Hash) != string(b.Hash) {
			t.Errorf("changed is %+v, %v", got, err)
		}
		_, err = s.ChangeBrowser(ctx, "brw_x", func(*auth.Browser) error { return nil })
		wantCode(t, err, "browser_not_found")

		must(t, s.AddCode(ctx, auth.Code{ID: "c1", Project: project, User: "usr_a", Created: at(0), Expires: at(900)}))
		must(t, s.AddCode(ctx, auth.Code{ID: "c2", User: "usr_b", Expires: time.Now().Add(-time.Hour)}))
		must(t, s.UseCode(ctx, "c1", at(3)))
		c, err := s.Code(ctx, "c1")
		if err != nil || !c.Used.Equal(at(3)) || c.User != "usr_a" || !c.Expires.Equal(at(900)) {
			t.Errorf("the code is %+v, %v", c, err)
		}
		if c, err := s.Code(ctx, "none\x00"); err != nil || c != (auth.Code{}) {
			t.Errorf("a code that is not there is %+v, %v", c, err)
		}

		must(t, s.DeleteUser(ctx, "usr_a"))
		_, err = s.Browser(ctx, "brw_2")
		wantCode(t, err, "browser_not_found")
		if c, err := s.Code(ctx, "c1"); err != nil || c.ID != "" {
			t.Errorf("a deleted user's code is %+v, %v", c, err)
		}
		must(t, s.AddBrowser(ctx, auth.Browser{ID: "brw_4", Project: project, User: "usr_b", Expires: at(0).Add(-10 * 365 * 24 * time.Hour)}))
		_, err = s.Retain(ctx, time.Time{}, time.Time{})
		must(t, err)
		_, err = s.Browser(ctx, "brw_4")
		wantCode(t, err, "browser_not_found")
		if _, err := s.Browser(ctx, "brw_3"); err != nil {
			t.Error(err)
		}
		if c, err := s.Code(ctx, "c2"); err != nil || c.ID == "" {
			t.Errorf("a code that has just expired is forgotten: %v", err)
		}
		must(t, s.DeleteBrowser(ctx, "brw_3"))
		_, err = s.Browser(ctx, "brw_3")
		wantCode(t, err, "browser_not_found")
	})
}
