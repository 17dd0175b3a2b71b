package auth_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

const battery = "correct horse battery"

// invite makes an invitation and returns its code.
func (w *world) invite(t *testing.T, who auth.Principal, n auth.NewInvitation) string {
	t.Helper()
	_, code, err := w.Invite(t.Context(), who, n)
	must(t, err)
	return code
}

// join makes a user with a password, who is a member of the project of who.
func (w *world) join(t *testing.T, who auth.Principal, login string, role auth.Role) auth.Principal {
	t.Helper()
	as, err := w.AcceptInvitation(t.Context(), auth.Principal{IP: "192.0.2.1"}, auth.Acceptance{Code: w.invite(t, who, auth.NewInvitation{Role: role}), Login: login, Password: battery})
	must(t, err)
	return as
}

func TestAnInvitationMakesAUserWhoSignsIn(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	code := w.invite(t, w.who[auth.Owner], auth.NewInvitation{Role: auth.Viewer, Name: "Eve"})
	told, err := w.LookInvitation(ctx, code)
	must(t, err)
	if told.Project != "mine" || told.Role != auth.Viewer || told.Name != "Eve" || told.User != "" || !told.Expires.Equal(w.at.Add(7*24*time.Hour)) {
		t.Errorf("the invitation says %+v", told)
	}
	as, err := w.AcceptInvitation(ctx, auth.Principal{IP: "192.0.2.1"}, auth.Acceptance{Code: code, Login: "Eve@Example.com", Password: battery})
	must(t, err)
	if as.Role != auth.Viewer || as.Project != w.who[auth.Owner].Project || as.IP != "192.0.2.1" || as.Key != "" || as.Admin {
		t.Errorf("who accepted is %+v", as)
	}
	for _, again := range []auth.Acceptance{{Code: code, Login: "other", Password: battery}, {Code: code}} {
		_, err = w.AcceptInvitation(ctx, w.other, again)
		wantCode(t, err, "invitation_used")
	}
	_, err = w.LookInvitation(ctx, code)
	wantCode(t, err, "invitation_used")
	for _, name := range []string{"eve@example.com", "EVE@EXAMPLE.COM", "Ｅve@example.com"} {
		who, err := w.AuthenticatePassword(ctx, auth.Principal{}, name, battery, "")
		must(t, err)
		if who.User != as.User || who.Role != auth.Viewer {
			t.Errorf("%s is %+v", name, who)
		}
	}
	_, err = w.CreateUser(ctx, w.root, "EVE@example.com", false)
	wantCode(t, err, "user_exists")
	for _, i := range w.invitations {
		if strings.Contains(i.Hash, code) || len(i.Hash) != 64 {
			t.Errorf("kept is %+v", i)
		}
	}
	for _, r := range w.rows {
		if strings.Contains(r.Detail+r.Target, code) || strings.Contains(r.Detail+r.Target, battery) {
			t.Errorf("the audit log tells a secret: %+v", r)
		}
	}
}

func TestOneOfManyAcceptsAnInvitation(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	code := w.invite(t, w.who[auth.Owner], auth.NewInvitation{Role: auth.Member})
	var all sync.WaitGroup
	var mu sync.Mutex
	accepted, used := 0, 0
	for _, login := range []string{"a1", "a2", "a3", "a4", "a5", "a6"} {
		all.Go(func() {
			_, err := w.AcceptInvitation(ctx, auth.Principal{}, auth.Acceptance{Code: code, Login: login, Password: battery})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				accepted++
			case problem.Has(err, problem.InvitationUsed):
				used++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if accepted != 1 || used != 5 || len(w.passwords) != 1 {
		t.Errorf("%d accepted, %d were too late, %d passwords", accepted, used, len(w.passwords))
	}
}

// TestWrongPasswordsLookAlike: an unknown name costs what a wrong password does, and looks the same, in the answer and in the audit log.
func TestWrongPasswordsLookAlike(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	w.join(t, w.who[auth.Owner], "eve", auth.Member)
	answers := map[string]error{}
	for _, name := range []string{"eve", "nobody"} {
		hashes, rows := w.Hashes(), len(w.rows)
		_, err := w.AuthenticatePassword(ctx, auth.Principal{IP: "192.0.2.1"}, name, "some other password", "")
		wantCode(t, err, "sign_in_wrong")
		if n := w.Hashes() - hashes; n != 1 {
			t.Errorf("%s costs %d hashes", name, n)
		}
		if n := len(w.rows) - rows; n != 1 {
			t.Errorf("%s leaves %d rows", name, n)
		}
		answers[name] = err
	}
	if answers["eve"].Error() != answers["nobody"].Error() {
		t.Errorf("the answers differ: %v", answers)
	}
	hashes := w.Hashes()
	for _, name := range []string{"", "a b", strings.Repeat("x", 300), "usr_00000000000000000000000000"} {
		_, err := w.AuthenticatePassword(ctx, auth.Principal{}, name, battery, "")
		wantCode(t, err, "sign_in_wrong")
	}
	for _, password := range []string{"", "short", strings.Repeat("x", 10_000), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		_, err := w.AuthenticatePassword(ctx, auth.Principal{}, "eve", password, "")
		wantCode(t, err, "sign_in_wrong")
	}
	if w.Hashes() != hashes {
		t.Error("what can be nobody's is hashed")
	}
}

func TestPasswordsThatAreTaken(t *testing.T) {
	t.Parallel()
	for password, code := range map[string]string{
		"123456789": "password_invalid", "eve.of.the.lab": "password_invalid", "xxxxxxxxxxxx": "password_invalid", "数数数数数数数数数数": "password_invalid",
		strings.Repeat("ab", 101): "password_invalid", "a\x00b\x00c\x00d\x00e\x00f": "password_invalid",
		strings.Repeat("ab", 100): "", "一二三四五六七八九十": "", "1234567890": "", "pass phrase with spaces": "",
	} {
		w := newWorld(t)
		n := auth.Acceptance{Code: w.invite(t, w.who[auth.Owner], auth.NewInvitation{Role: auth.Member}), Login: "eve.of.the.lab", Password: password}
		_, err := w.AcceptInvitation(t.Context(), auth.Principal{}, n)
		wantCode(t, err, code)
		if (err == nil) != (len(w.passwords) == 1) {
			t.Errorf("%q: %d passwords", password, len(w.passwords))
		}
	}
	w := newWorld(t)
	w.join(t, w.who[auth.Owner], "eve", auth.Member)
	for _, p := range w.passwords {
		if !strings.HasPrefix(p.Hash, "$argon2id$v=19$m=19456,t=2,p=1$") || strings.Contains(p.Hash, battery) {
			t.Errorf("kept is %q", p.Hash)
		}
		p.Hash = "$argon2id$v=19$m=4194304,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" // as a database could have that was tampered with
		must(t, w.memory.SetPassword(t.Context(), p))
	}
	_, err := w.AuthenticatePassword(t.Context(), auth.Principal{}, "eve", battery, "")
	wantCode(t, err, "sign_in_wrong")
}

func TestWhoMayInvite(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	for _, c := range []struct {
		who  auth.Principal
		n    auth.NewInvitation
		code string
	}{
		{w.who[auth.Owner], auth.NewInvitation{Role: auth.Owner}, ""},
		{w.who[auth.Admin], auth.NewInvitation{Role: auth.Admin}, ""},
		{w.who[auth.Admin], auth.NewInvitation{Role: auth.Owner}, "forbidden"},
		{w.who[auth.Member], auth.NewInvitation{Role: auth.Viewer}, "forbidden"},
		{w.who[auth.Viewer], auth.NewInvitation{Role: auth.Viewer}, "forbidden"},
		{w.who[auth.Owner], auth.NewInvitation{Role: auth.Member, Project: "theirs"}, "project_not_found"},
		{w.root, auth.NewInvitation{Role: auth.Member, Project: "theirs"}, ""},
		{w.who[auth.Owner], auth.NewInvitation{User: "viewer"}, "forbidden"},
		{w.root, auth.NewInvitation{User: "viewer"}, ""},
		{w.root, auth.NewInvitation{User: "nobody"}, "user_not_found"},
		{w.root, auth.NewInvitation{User: "viewer", Role: auth.Member}, "invalid_request"},
		{w.who[auth.Owner], auth.NewInvitation{Role: "king"}, "role_unknown"},
		{w.who[auth.Owner], auth.NewInvitation{Role: auth.Member, Life: time.Second}, "life_invalid"},
		{w.who[auth.Owner], auth.NewInvitation{Role: auth.Member, Life: 91 * 24 * time.Hour}, "life_invalid"},
		{w.who[auth.Owner], auth.NewInvitation{Role: auth.Member, Name: "a\nb"}, "name_invalid"},
	} {
		before := len(w.rows)
		_, _, err := w.Invite(ctx, c.who, c.n)
		wantCode(t, err, c.code)
		if len(w.rows) != before+1 {
			t.Errorf("%+v leaves no row", c.n)
		}
	}
}

// TestWhatEndsAnInvitation: time, withdrawal, and that who made it may not invite any more.
func TestWhatEndsAnInvitation(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(w *world, i auth.Invitation) error{
		"time": func(w *world, i auth.Invitation) error { w.at = i.Expires; return nil },
		"withdrawn": func(w *world, i auth.Invitation) error {
			return w.Uninvite(t.Context(), w.who[auth.Owner], i.ID)
		},
		"the maker is nothing any more": func(w *world, _ auth.Invitation) error {
			_, err := w.Accounts.SetMember(t.Context(), w.who[auth.Owner], auth.Membership{User: "admin"})
			return err
		},
		"the maker may less": func(w *world, _ auth.Invitation) error {
			_, err := w.Accounts.SetMember(t.Context(), w.who[auth.Owner], auth.Membership{User: "admin", Role: auth.Member})
			return err
		},
	} {
		w := newWorld(t)
		i, code, err := w.Invite(t.Context(), w.who[auth.Admin], auth.NewInvitation{Role: auth.Member})
		must(t, err)
		must(t, do(w, i))
		_, err = w.LookInvitation(t.Context(), code)
		wantCode(t, err, "invitation_unknown")
		hashes := w.Hashes()
		_, err = w.AcceptInvitation(t.Context(), auth.Principal{}, auth.Acceptance{Code: code, Login: "eve", Password: battery})
		wantCode(t, err, "invitation_unknown")
		if list, err := w.Accounts.Invitations(t.Context(), w.who[auth.Owner]); err != nil || name != "the maker may less" && name != "the maker is nothing any more" && len(list) != 0 {
			t.Errorf("%s: listed are %v, %v", name, list, err)
		}
		if w.Hashes() != hashes {
			t.Errorf("%s: an invitation that is worth nothing costs a hash", name)
		}
	}
	w := newWorld(t)
	i, _, err := w.Invite(t.Context(), w.who[auth.Owner], auth.NewInvitation{Role: auth.Owner})
	must(t, err)
	wantCode(t, w.Uninvite(t.Context(), w.who[auth.Admin], i.ID), "forbidden")
	wantCode(t, w.Uninvite(t.Context(), w.other, i.ID), "invitation_not_found")
	wantCode(t, w.Uninvite(t.Context(), w.who[auth.Owner], "inv_x"), "invitation_not_found")
}

func TestAUserJoinsAnotherProject(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	code := w.invite(t, w.who[auth.Owner], auth.NewInvitation{Role: auth.Viewer})
	limited := w.other
	limited.Scopes = []auth.Action{auth.SessionsRead}
	_, err := w.AcceptInvitation(ctx, limited, auth.Acceptance{Code: code})
	wantCode(t, err, "forbidden")
	_, err = w.AcceptInvitation(ctx, w.who[auth.Member], auth.Acceptance{Code: code})
	wantCode(t, err, "member_exists")
	_, err = w.AcceptInvitation(ctx, auth.Principal{}, auth.Acceptance{Code: code})
	wantCode(t, err, "name_invalid")
	as, err := w.AcceptInvitation(ctx, w.other, auth.Acceptance{Code: code})
	must(t, err)
	if as.User != w.other.User || as.Project != w.who[auth.Owner].Project || as.Role != auth.Viewer {
		t.Errorf("joined as %+v", as)
	}
	_, err = w.AcceptInvitation(ctx, auth.Principal{}, auth.Acceptance{Code: w.invite(t, w.who[auth.Owner], auth.NewInvitation{Role: auth.Viewer}), Login: "STRANGER", Password: battery})
	wantCode(t, err, "user_exists")
}

// TestANewPassword signs other browsers out, and only who knows the present one sets it.
func TestANewPassword(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	eve := w.join(t, w.who[auth.Owner], "eve", auth.Member)
	one, other := w.browse(t, eve), w.browse(t, eve)
	who, err := w.look(t, one)
	must(t, err)
	if self, err := w.Self(ctx, who); err != nil || self != (auth.Self{User: "eve", Project: "mine", Login: "eve"}) {
		t.Errorf("eve is told that she is %+v, %v", self, err)
	}
	if self, err := w.Self(ctx, w.root); err != nil || self.Login != "" || self.User == "" {
		t.Errorf("who has no password is told %+v, %v", self, err)
	}
	wantCode(t, w.Accounts.SetPassword(ctx, who, auth.NewPassword{Current: "not it at all", Password: "another horse"}), "password_wrong")
	wantCode(t, w.Accounts.SetPassword(ctx, who, auth.NewPassword{Current: battery, Password: "short"}), "password_invalid")
	must(t, w.Accounts.SetPassword(ctx, who, auth.NewPassword{Current: battery, Password: "another horse"}))
	_, err = w.look(t, one)
	must(t, err)
	_, err = w.look(t, other)
	wantCode(t, err, "unauthenticated")
	_, err = w.AuthenticatePassword(ctx, auth.Principal{}, "eve", battery, "")
	wantCode(t, err, "sign_in_wrong")
	_, err = w.AuthenticatePassword(ctx, auth.Principal{}, "eve", "another horse", "theirs")
	wantCode(t, err, "project_not_found")

	code := w.invite(t, w.root, auth.NewInvitation{User: eve.User})
	told, err := w.LookInvitation(ctx, code)
	must(t, err)
	if told.User != "eve" || told.Login != "eve" || told.Role != "" {
		t.Errorf("the link says %+v", told)
	}
	as, err := w.AcceptInvitation(ctx, w.other, auth.Acceptance{Code: code, Password: "a third horse"})
	must(t, err)
	if as.User != eve.User || as.Project != eve.Project {
		t.Errorf("the link is for %+v", as)
	}
	_, err = w.look(t, one)
	wantCode(t, err, "unauthenticated")
	_, err = w.AuthenticatePassword(ctx, auth.Principal{}, "eve", "a third horse", "mine")
	must(t, err)
}

func TestAFirstPassword(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	n := auth.NewPassword{Login: "Root", Password: battery}
	wantCode(t, w.Accounts.SetPassword(ctx, w.root, n), "forbidden")
	who, err := w.look(t, w.browse(t, w.root)) // with a key
	must(t, err)
	wantCode(t, w.Accounts.SetPassword(ctx, who, n), "forbidden")
	code, err := w.NewCode(ctx, auth.Local(), "", "")
	must(t, err)
	local, err := w.Redeem(ctx, auth.Principal{}, code)
	must(t, err)
	who, err = w.look(t, w.browse(t, local))
	must(t, err)
	wantCode(t, w.Accounts.SetPassword(ctx, who, auth.NewPassword{Login: "Viewer", Password: battery}), "user_exists")
	must(t, w.Accounts.SetPassword(ctx, who, n))
	as, err := w.AuthenticatePassword(ctx, auth.Principal{}, "root", battery, "")
	must(t, err)
	if as.User != auth.LocalUser || !as.Admin {
		t.Errorf("the local user is %+v", as)
	}
	w.deaf = errors.New("full")
	if err := w.Accounts.SetPassword(ctx, who, auth.NewPassword{Current: battery, Password: "another horse"}); err == nil {
		t.Error("a change that the audit log does not have is reported as done")
	}
}
