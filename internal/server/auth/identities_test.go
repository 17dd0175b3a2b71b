package auth_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

func holder(name string) auth.Identity {
	return auth.Identity{Issuer: "https://id.example.com", Claim: "sub", Value: name}
}

// link makes a key for somebody's tokens.
func (w *world) link(t *testing.T, who auth.Principal, user string, of auth.Identity, scopes ...auth.Action) (auth.Key, error) {
	t.Helper()
	k, text, err := w.CreateKey(t.Context(), who, auth.NewKey{Name: "tokens", Project: "mine", User: user, Holder: &of, Scopes: scopes})
	if text != "" {
		t.Errorf("a key for tokens has the text %q", text)
	}
	return k, err
}

// TestHolders: a token's holder is the user that an admin has linked, with the rights of the key, and never rules.
func TestHolders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	_, err := w.AuthenticateHolder(ctx, holder("ada"), nil)
	wantCode(t, err, "holder_unknown")
	k, err := w.link(t, w.root, "owner", holder("ada"))
	must(t, err)
	if k.Last4 != "" || w.keys[k.ID].Subject != "sub=ada https://id.example.com" || len(w.keys[k.ID].Hash) != 0 {
		t.Errorf("%+v", w.keys[k.ID])
	}
	who, err := w.AuthenticateHolder(ctx, holder("ada"), nil)
	must(t, err)
	w.Wait()
	if who.Key != k.ID || who.Role != auth.Owner || who.Project != k.Project || who.User != k.User || w.keys[k.ID].Used.IsZero() {
		t.Errorf("%+v", who)
	}
	for _, a := range auth.Actions() {
		if rules := a == auth.KeysManage || a == auth.UsersManage || a == auth.AuditRead || a == auth.ServerManage; who.May(a) == rules {
			t.Errorf("with a token of an owner: %s is %v", a, who.May(a))
		}
	}
	_, err = w.link(t, w.root, "member", holder("ada"))
	wantCode(t, err, "holder_exists")
	for _, other := range []auth.Identity{holder("Ada"), holder("ada "), {Issuer: "https://id.example.com/", Claim: "sub", Value: "ada"}, {Issuer: "https://id.example.com", Claim: "email", Value: "ada"}, holder(""), holder(strings.Repeat("a", 300)), holder("a\nb")} {
		_, err := w.AuthenticateHolder(ctx, other, nil)
		wantCode(t, err, "holder_unknown")
	}
	_, err = w.link(t, w.root, "viewer", holder("vera"))
	must(t, err)
	_, err = w.link(t, w.root, "member", holder("bob"), auth.SessionsRead, auth.KeysManage)
	must(t, err)
	vera, err := w.AuthenticateHolder(ctx, holder("vera"), nil)
	must(t, err)
	bob, err := w.AuthenticateHolder(ctx, holder("bob"), nil)
	must(t, err)
	if vera.May(auth.SessionsExecute) || !vera.May(auth.SessionsRead) || bob.May(auth.SessionsExecute) || !bob.May(auth.SessionsRead) || bob.May(auth.KeysManage) {
		t.Errorf("%+v, %+v", vera, bob)
	}
	k, err = w.link(t, w.root, "", holder("root"))
	must(t, err)
	admin, err := w.AuthenticateHolder(ctx, holder("root"), nil)
	must(t, err)
	if admin.Key != k.ID || admin.Admin || admin.May(auth.ServerManage) {
		t.Errorf("a token of the server's admin: %+v", admin)
	}
}

// TestWhoLinks: only an admin of the server; others would have tokens of anybody lead into their own projects.
func TestWhoLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, role := range auth.Roles() {
		_, err := w.link(t, w.who[role], "", holder("eve"))
		wantCode(t, err, "forbidden")
	}
	_, err := w.link(t, w.root, "member", auth.Identity{Claim: "sub", Value: "ada"})
	wantCode(t, err, "config_invalid")
	_, err = w.link(t, w.root, "member", holder("a\x00b"))
	wantCode(t, err, "name_invalid")
}

// TestHoldersEnd: what ends a key, a membership or a user ends tokens at once, and a link can be made anew.
func TestHoldersEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	in := func(code string) {
		t.Helper()
		_, err := w.AuthenticateHolder(ctx, holder("ada"), nil)
		wantCode(t, err, code)
	}
	k, err := w.link(t, w.root, "member", holder("ada"))
	must(t, err)
	in("")
	_, err = w.RevokeKey(ctx, w.root, k.ID)
	must(t, err)
	in("holder_unknown")
	_, err = w.AuthenticateHolder(ctx, holder("ada"), &auth.Membership{Project: "theirs", Role: auth.Member})
	wantCode(t, err, "holder_unknown") // who was put out does not join
	k, err = w.link(t, w.root, "member", holder("ada"))
	must(t, err)
	in("")
	_, err = w.Accounts.SetMember(ctx, w.root, auth.Membership{Project: k.Project, User: k.User})
	must(t, err)
	in("holder_unknown")
	_, err = w.Accounts.SetMember(ctx, w.root, auth.Membership{Project: k.Project, User: k.User, Role: auth.Viewer})
	must(t, err)
	in("")
	must(t, w.Accounts.DeleteUser(ctx, w.root, k.User))
	in("holder_unknown")
	k, _, err = w.CreateKey(ctx, w.root, auth.NewKey{Name: "n", Project: "mine", User: "viewer", Life: time.Minute, Holder: &auth.Identity{Issuer: "https://id.example.com", Claim: "sub", Value: "ada"}})
	must(t, err)
	in("")
	w.at = w.at.Add(2 * time.Minute)
	in("holder_unknown")
}

// TestNewcomers: where the operator has it so, a holder becomes a user once, and takes nobody's place.
func TestNewcomers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	join := &auth.Membership{Project: "mine", Role: auth.Member}
	var all sync.WaitGroup
	var mu sync.Mutex
	keys := map[string]bool{}
	for range 8 {
		all.Go(func() {
			who, err := w.AuthenticateHolder(ctx, holder("ada@example.com"), join)
			mu.Lock()
			defer mu.Unlock()
			if keys[who.Key] = true; err != nil || who.Role != auth.Member {
				t.Errorf("%+v %v", who, err)
			}
		})
	}
	all.Wait()
	w.Wait()
	if len(keys) != 1 {
		t.Errorf("the keys %v", keys)
	}
	u, err := w.memory.User(ctx, "ada@example.com")
	must(t, err)
	if u.Admin {
		t.Error("a newcomer is an admin")
	}
	made := 0
	for _, r := range w.rows {
		if r.User == u.ID && r.Action == "user.create" {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d audit rows", made)
	}
	for _, name := range []string{"local", "member", auth.LocalUser, u.ID} {
		_, err := w.AuthenticateHolder(ctx, holder(name), join)
		wantCode(t, err, "holder_unknown")
	}
	_, err = w.AuthenticateHolder(ctx, holder("bob"), &auth.Membership{Project: "none", Role: auth.Member})
	if err == nil || problem.Of(err).Kind != problem.Internal {
		t.Errorf("a project that is not there: %v", err)
	}
}
