package auth_test

import (
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// browse signs a browser in and returns its text.
func (w *world) browse(t *testing.T, who auth.Principal) string {
	t.Helper()
	who.Agent, who.IP = "Mozilla", "192.0.2.7"
	_, text, err := w.SignIn(t.Context(), who, "in a test")
	must(t, err)
	return text
}

func (w *world) look(t *testing.T, text string) (auth.Principal, error) {
	t.Helper()
	who, _, err := w.AuthenticateBrowser(t.Context(), text)
	w.Wait()
	return who, err
}

func TestABrowserIsItsUserWithTheKeysRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, role := range auth.Roles() {
		who, err := w.look(t, w.browse(t, w.who[role]))
		must(t, err)
		if who.Role != role || who.User != w.who[role].User || who.Project != w.who[role].Project || who.Key != w.who[role].Key || who.Browser == "" {
			t.Errorf("the browser of the %s is %+v", role, who)
		}
	}
	_, limited, err := w.CreateKey(t.Context(), w.who[auth.Member], auth.NewKey{Name: "one", Scopes: []auth.Action{auth.SessionsRead}})
	must(t, err)
	who, err := w.look(t, w.browse(t, w.login(t, limited)))
	must(t, err)
	if !who.May(auth.SessionsRead) || who.May(auth.SessionsExecute) {
		t.Errorf("a browser of a limited key has %v", who.Scopes)
	}
	for _, b := range w.browsers {
		if len(b.Hash) != 32 || b.Agent != "Mozilla" || b.IP != "192.0.2.7" || !b.Expires.Equal(w.at.Add(30*24*time.Hour)) {
			t.Errorf("kept is %+v", b)
		}
	}
}

// TestWhatEndsABrowser: what ends a key or a user ends the browser at once, and what changes a role changes the browser's.
func TestWhatEndsABrowser(t *testing.T) {
	t.Parallel()
	owner := func(w *world) auth.Principal { return w.who[auth.Owner] }
	for name, do := range map[string]func(t *testing.T, w *world, b auth.Principal) error{
		"signed out": func(t *testing.T, w *world, b auth.Principal) error { return w.SignOut(t.Context(), b) },
		"revoked": func(t *testing.T, w *world, b auth.Principal) error {
			return w.RevokeBrowser(t.Context(), w.who[auth.Viewer], b.Browser)
		},
		"key revoked": func(t *testing.T, w *world, b auth.Principal) error {
			_, err := w.RevokeKey(t.Context(), owner(w), b.Key)
			return err
		},
		"no member any more": func(t *testing.T, w *world, _ auth.Principal) error {
			_, err := w.Accounts.SetMember(t.Context(), owner(w), auth.Membership{User: "viewer"})
			return err
		},
		"user deleted": func(t *testing.T, w *world, _ auth.Principal) error {
			return w.Accounts.DeleteUser(t.Context(), w.root, "viewer")
		},
		"unused for 30 days": func(_ *testing.T, w *world, _ auth.Principal) error {
			w.at = w.at.Add(30 * 24 * time.Hour)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			text := w.browse(t, w.who[auth.Viewer])
			who, err := w.look(t, text)
			must(t, err)
			must(t, do(t, w, who))
			_, err = w.look(t, text)
			wantCode(t, err, "unauthenticated")
		})
	}
	w := newWorld(t)
	text := w.browse(t, w.who[auth.Viewer])
	_, err := w.look(t, text)
	must(t, err)
	_, err = w.Accounts.SetMember(t.Context(), owner(w), auth.Membership{User: "viewer", Role: auth.Auditor})
	must(t, err)
	if who, err := w.look(t, text); err != nil || who.Role != auth.Auditor {
		t.Errorf("after a change of role: %+v, %v", who, err)
	}
	_, short, err := w.CreateKey(t.Context(), w.who[auth.Member], auth.NewKey{Name: "short", Life: 2 * time.Second})
	must(t, err)
	text = w.browse(t, w.login(t, short))
	_, err = w.look(t, text)
	must(t, err)
	w.at = w.at.Add(2 * time.Second)
	_, err = w.look(t, text)
	wantCode(t, err, "unauthenticated")
}

func TestBadBrowsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := w.browse(t, w.root)
	other := w.browse(t, w.other)
	for _, bad := range []string{"", "_", text[:len(text)-1], text + "0", "brw_" + text, text[:27] + other[27:], strings.ToUpper(text), w.first, strings.Repeat("x", 1<<20),
		text[:30] + "\x00" + text[31:], text[:26] + "__" + text[28:], "\xff\xfe", text + "\n"} {
		_, err := w.look(t, bad)
		wantCode(t, err, "unauthenticated")
	}
	if _, err := w.look(t, text); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

func TestABrowserInUseStaysSignedIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := w.browse(t, w.root)
	for day := range 100 {
		_, until, err := w.AuthenticateBrowser(t.Context(), text)
		if err != nil {
			t.Fatalf("day %d: %v", day, err)
		}
		w.Wait()
		if day > 0 && !until.Equal(w.at.Add(30*24*time.Hour)) {
			t.Fatalf("on day %d the browser is told %v", day, until)
		}
		w.at = w.at.Add(24 * time.Hour)
	}
	_, until, err := w.AuthenticateBrowser(t.Context(), text)
	must(t, err)
	w.Wait()
	w.at = w.at.Add(time.Minute)
	if _, again, err := w.AuthenticateBrowser(t.Context(), text); err != nil || until.IsZero() || !again.IsZero() {
		t.Errorf("a minute later the browser is told %v, %v", again, err)
	}
	w.Wait()
}

func TestCodesWorkOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	visitor := auth.Principal{IP: "192.0.2.9", Agent: "Mozilla", Request: "req_x"}
	text, err := w.NewCode(ctx, auth.Local(), "", "")
	must(t, err)
	who, err := w.Redeem(ctx, visitor, text)
	must(t, err)
	if who.User != auth.LocalUser || who.Project != auth.LocalProject || !who.Admin || who.Role != auth.Owner || who.Key != "" || who.IP != visitor.IP {
		t.Errorf("the code is for %+v", who)
	}
	b, err := w.look(t, w.browse(t, who))
	must(t, err)
	if b.Key != "" || b.Scopes != nil || b.Browser == "" {
		t.Errorf("its browser is %+v", b)
	}
	_, err = w.Redeem(ctx, visitor, text)
	wantCode(t, err, "sign_in_code_used")
	if p := problem.Of(err); !strings.Contains(p.Hint, "cove open") {
		t.Errorf("the hint is %q", p.Hint)
	}
	late, err := w.NewCode(ctx, auth.Local(), "mine", "viewer")
	must(t, err)
	w.at = w.at.Add(15 * time.Minute)
	_, err = w.Redeem(ctx, visitor, late)
	wantCode(t, err, "sign_in_code_unknown")
	for _, bad := range []string{"", "x", strings.Repeat("0", 32), strings.Repeat("\x00", 32), text + "0", strings.Repeat("a", 1<<20), w.first} {
		_, err = w.Redeem(ctx, visitor, bad)
		wantCode(t, err, "sign_in_code_unknown")
	}
	tried := 0
	for _, r := range w.rows {
		if r.Action == "browser.sign_in" && r.Outcome != "ok" && r.IP == visitor.IP && r.User != "" {
			tried++
		}
	}
	if tried != 2 {
		t.Errorf("%d refused codes are in the audit log, not 2", tried)
	}
}

func TestWhoMakesCodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	for _, who := range []auth.Principal{w.root, w.who[auth.Owner], w.who[auth.Viewer]} {
		_, err := w.NewCode(ctx, who, "", "")
		wantCode(t, err, "forbidden")
	}
	who, err := w.look(t, w.browse(t, w.root))
	must(t, err)
	who.Key = ""
	_, err = w.NewCode(ctx, who, "", "")
	wantCode(t, err, "forbidden")
	_, err = w.NewCode(ctx, auth.Local(), "mine", "stranger")
	wantCode(t, err, "user_not_found")
	text, err := w.NewCode(ctx, auth.Local(), "mine", "viewer")
	must(t, err)
	_, err = w.Accounts.SetMember(ctx, w.who[auth.Owner], auth.Membership{User: "viewer"})
	must(t, err)
	_, err = w.Redeem(ctx, auth.Principal{}, text)
	wantCode(t, err, "unauthenticated")
}

func TestTheCallersBrowsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	member := w.who[auth.Member]
	mine, err := w.look(t, w.browse(t, member))
	must(t, err)
	theirs, err := w.look(t, w.browse(t, w.who[auth.Owner]))
	must(t, err)
	gone, err := w.look(t, w.browse(t, member))
	must(t, err)
	must(t, w.RevokeBrowser(ctx, member, gone.Browser))
	must(t, w.RevokeBrowser(ctx, member, gone.Browser))
	_, limited, err := w.CreateKey(ctx, member, auth.NewKey{Name: "one", Scopes: []auth.Action{auth.SessionsRead}})
	must(t, err)
	narrow := w.login(t, limited)
	for _, c := range []struct {
		who  auth.Principal
		want int
	}{{member, 1}, {mine, 1}, {w.who[auth.Owner], 1}, {w.other, 0}, {narrow, 0}} {
		got, err := w.Accounts.Browsers(ctx, c.who)
		must(t, err)
		if len(got) != c.want || len(got) > 0 && got[0].Hash != nil {
			t.Errorf("%s sees %+v", c.who.User, got)
		}
	}
	for _, id := range []string{theirs.Browser, "brw_x", "", "key_06f1k3t3y4m0v8s2k5r7w9x1z4", "brw_06f1k3t3y4m0v8s2k5r7w9x1z4"} {
		wantCode(t, w.RevokeBrowser(ctx, member, id), "browser_not_found")
	}
	wantCode(t, w.RevokeBrowser(ctx, narrow, mine.Browser), "browser_not_found")
	must(t, w.SignOut(ctx, member)) // with a key: nothing
	if _, err := w.look(t, w.browse(t, member)); err != nil {
		t.Error(err)
	}
	for range 60 {
		w.at = w.at.Add(time.Minute)
		w.browse(t, member)
	}
	if got, err := w.Accounts.Browsers(ctx, member); err != nil || len(got) != 50 {
		t.Errorf("%d browsers, %v", len(got), err)
	}
	actions := map[string]int{}
	for _, r := range w.rows {
		actions[r.Action+" "+r.Outcome]++
	}
	if actions["browser.revoke ok"] != 2 || actions["browser.revoke browser_not_found"] != 6 || actions["browser.sign_in ok"] < 60 {
		t.Errorf("the audit log has %v", actions)
	}
}
