package auth_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
)

func TestTheFirstKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	again, err := w.Found(t.Context(), "")
	must(t, err)
	if again != "" {
		t.Error("a second start made another first key")
	}
	for name, c := range map[string]struct{ first, want string }{
		"the operator's": {auth.NewText(), ""},
		"a bad one":      {"hunter2hunter2", "key_malformed"},
	} {
		a := auth.Accounts{Store: newMemory(), Audit: newMemory()}
		text, err := a.Found(t.Context(), c.first)
		wantCode(t, err, c.want)
		if err != nil {
			if strings.Contains(err.Error(), c.first) {
				t.Errorf("%s: the error repeats it", name)
			}
			continue
		}
		who, err := a.Authenticate(t.Context(), text)
		if text != c.first || err != nil || !who.May(auth.ServerManage) {
			t.Errorf("%s: %v, %v", name, who, err)
		}
		a.Wait()
	}
}

func TestWhoMakesWhichKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	limited := w.who[auth.Member]
	limited.Scopes = []auth.Action{auth.KeysManage, auth.FilesRead}
	_, err := w.CreateUser(t.Context(), w.root, "boss", true)
	must(t, err)
	_, err = w.Accounts.SetMember(t.Context(), w.root, auth.Membership{Project: "mine", User: "boss", Role: auth.Member})
	must(t, err)
	for _, c := range []struct {
		name string
		who  auth.Principal
		key  auth.NewKey
		want string
	}{
		{"a member for himself", w.who[auth.Member], auth.NewKey{}, ""},
		{"a member for himself by name", w.who[auth.Member], auth.NewKey{User: "member"}, ""},
		{"a member for a viewer", w.who[auth.Member], auth.NewKey{User: "viewer"}, "forbidden"},
		{"a viewer", w.who[auth.Viewer], auth.NewKey{}, "forbidden"},
		{"an auditor", w.who[auth.Auditor], auth.NewKey{}, "forbidden"},
		{"an admin for a member", w.who[auth.Admin], auth.NewKey{User: "member"}, ""},
		{"an admin for an owner", w.who[auth.Admin], auth.NewKey{User: "owner"}, "forbidden"},
		{"an owner for an admin", w.who[auth.Owner], auth.NewKey{User: "admin"}, ""},
		{"an owner for an admin of the server", w.who[auth.Owner], auth.NewKey{User: "boss"}, "forbidden"},
		{"an owner for nobody", w.who[auth.Owner], auth.NewKey{User: "nobody"}, "user_not_found"},
		{"an owner for another project's user", w.who[auth.Owner], auth.NewKey{User: "stranger"}, "user_not_found"},
		{"an owner in another project", w.who[auth.Owner], auth.NewKey{Project: "theirs"}, "project_not_found"},
		{"the server's admin in a project", w.root, auth.NewKey{Project: "theirs", User: "stranger"}, ""},
		{"more than the role", w.who[auth.Member], auth.NewKey{Scopes: []auth.Action{auth.AuditRead}}, "forbidden"},
		{"less than the role", w.who[auth.Member], auth.NewKey{Scopes: []auth.Action{auth.FilesRead}}, ""},
		{"more than the key", limited, auth.NewKey{Scopes: []auth.Action{auth.FilesWrite}}, "forbidden"},
		{"an unknown scope", w.who[auth.Owner], auth.NewKey{Scopes: []auth.Action{"all"}}, "scope_unknown"},
		{"a life before now", w.who[auth.Owner], auth.NewKey{Life: -1}, "life_invalid"},
		{"a name for a terminal", w.who[auth.Owner], auth.NewKey{Name: "a\x1b[2J"}, "name_invalid"},
	} {
		if c.key.Name == "" {
			c.key.Name = "key"
		}
		rows := len(w.rows)
		k, text, err := w.CreateKey(t.Context(), c.who, c.key)
		t.Run(c.name, func(t *testing.T) { wantCode(t, err, c.want) })
		if (err == nil) != (text != "") {
			t.Errorf("%s: the text is %q", c.name, text)
		}
		if err == nil && !subset(w.login(t, text), c.who) && c.who.User == k.User {
			t.Errorf("%s: the key may more than its maker", c.name)
		}
		if len(w.rows) != rows+1 || w.rows[rows].Action != "key.create" || (w.rows[rows].Outcome == "ok") != (err == nil) {
			t.Errorf("%s: the audit rows are %+v", c.name, w.rows[rows:])
		}
	}
	k, _, err := w.CreateKey(t.Context(), limited, auth.NewKey{Name: "inherits"})
	must(t, err)
	if !slices.Equal(k.Scopes, limited.Scopes) {
		t.Errorf("a key made with a limited one has the scopes %v", k.Scopes)
	}
}

func subset(a, b auth.Principal) bool {
	return !slices.ContainsFunc(auth.Actions(), func(x auth.Action) bool { return a.May(x) && !b.May(x) })
}

func TestAKeyDoesNotOutliveItsMaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	_, text, err := w.CreateKey(ctx, w.who[auth.Member], auth.NewKey{Name: "a day", Life: 24 * time.Hour})
	must(t, err)
	who := w.login(t, text)
	_, _, err = w.CreateKey(ctx, who, auth.NewKey{Name: "a week", Life: 7 * 24 * time.Hour})
	wantCode(t, err, "forbidden")
	k, _, err := w.CreateKey(ctx, who, auth.NewKey{Name: "for ever"})
	must(t, err)
	if !k.Expires.Equal(w.at.Add(24 * time.Hour)) {
		t.Errorf("the key ends %s", k.Expires)
	}
}

func TestWhoSeesAndRevokesWhichKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	for role, want := range map[auth.Role]int{auth.Owner: 5, auth.Admin: 5, auth.Member: 1} {
		keys, err := w.Accounts.Keys(ctx, w.who[role])
		must(t, err)
		if len(keys) != want {
			t.Errorf("a %s sees %d keys, not %d", role, len(keys), want)
		}
		for _, k := range keys {
			if k.Hash != nil || k.Last4 != "" && !strings.HasSuffix(w.texts[roleOf(w, k)], k.Last4) {
				t.Errorf("the key is shown as %+v", k)
			}
		}
	}
	for _, c := range []struct {
		name string
		who  auth.Principal
		key  string
		want string
	}{
		{"a member another's", w.who[auth.Member], w.who[auth.Viewer].Key, "key_not_found"},
		{"another project's owner", w.other, w.who[auth.Viewer].Key, "key_not_found"},
		{"an admin an owner's", w.who[auth.Admin], w.who[auth.Owner].Key, "forbidden"},
		{"a viewer his own", w.who[auth.Viewer], w.who[auth.Viewer].Key, "forbidden"},
		{"not an id", w.who[auth.Owner], "' OR 1=1", "key_not_found"},
		{"a member his own", w.who[auth.Member], w.who[auth.Member].Key, ""},
		{"twice", w.who[auth.Owner], w.who[auth.Member].Key, ""},
		{"the server's admin", w.root, w.other.Key, ""},
	} {
		k, err := w.RevokeKey(ctx, c.who, c.key)
		t.Run(c.name, func(t *testing.T) { wantCode(t, err, c.want) })
		if err == nil && k.Revoked.IsZero() {
			t.Errorf("%s: the key is not revoked", c.name)
		}
	}
}

func roleOf(w *world, k auth.Key) auth.Role {
	for role, who := range w.who {
		if who.Key == k.ID {
			return role
		}
	}
	return ""
}

func TestMembers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	type set struct {
		who  auth.Role
		user string
		role auth.Role
		want string
	}
	for name, c := range map[string]set{
		"an admin makes a viewer a member": {auth.Admin, "viewer", auth.Member, ""},
		"an admin makes an owner":          {auth.Admin, "viewer", auth.Owner, "forbidden"},
		"an admin makes himself owner":     {auth.Admin, "admin", auth.Owner, "forbidden"},
		"an admin removes an owner":        {auth.Admin, "owner", "", "forbidden"},
		"a member makes himself an admin":  {auth.Member, "member", auth.Admin, "forbidden"},
		"the last owner steps down":        {auth.Owner, "owner", auth.Admin, ""}, // the local user, who made the project, owns it too
		"an unknown role":                  {auth.Owner, "viewer", "king", "role_unknown"},
		"an unknown user":                  {auth.Owner, "nobody", auth.Viewer, "user_not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, err := w.Accounts.SetMember(ctx, w.who[c.who], auth.Membership{User: c.user, Role: c.role})
			wantCode(t, err, c.want)
		})
	}
	w := newWorld(t)
	_, err := w.Accounts.SetMember(ctx, w.who[auth.Owner], auth.Membership{User: "local"})
	must(t, err)
	_, err = w.Accounts.SetMember(ctx, w.who[auth.Owner], auth.Membership{User: "owner", Role: auth.Viewer})
	wantCode(t, err, "last_owner")
	wantCode(t, w.Accounts.DeleteUser(ctx, w.root, "owner"), "last_owner")
	_, err = w.Accounts.SetMember(ctx, w.other, auth.Membership{Project: "mine", User: "stranger", Role: auth.Owner})
	wantCode(t, err, "project_not_found")
	members, err := w.Accounts.Members(ctx, w.who[auth.Admin], "")
	must(t, err)
	if len(members) != 5 {
		t.Errorf("the members are %v", members)
	}
}

func TestUsersAndProjectsAreTheServersMatter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	for _, role := range auth.Roles() {
		who := w.who[role]
		_, err := w.CreateUser(ctx, who, "u", false)
		wantCode(t, err, "forbidden")
		_, err = w.CreateProject(ctx, who, "p")
		wantCode(t, err, "forbidden")
		_, err = w.SetQuota(ctx, who, "", []byte(`{}`))
		wantCode(t, err, "forbidden")
		_, err = w.SetAdmin(ctx, who, "owner", true)
		wantCode(t, err, "forbidden")
		_, err = w.Accounts.Users(ctx, who)
		wantCode(t, err, "forbidden")
		wantCode(t, w.Accounts.DeleteUser(ctx, who, "viewer"), "forbidden")
		seen, err := w.Accounts.Projects(ctx, who)
		must(t, err)
		if len(seen) != 1 || seen[0].Name != "mine" {
			t.Errorf("a %s sees the projects %v", role, seen)
		}
		_, err = w.Accounts.Project(ctx, who, "theirs")
		wantCode(t, err, "project_not_found")
	}
	_, err := w.CreateUser(ctx, w.root, "owner", false)
	wantCode(t, err, "user_exists")
	_, err = w.CreateUser(ctx, w.root, w.root.User, false)
	wantCode(t, err, "name_invalid")
	_, err = w.CreateProject(ctx, w.root, "mine")
	wantCode(t, err, "project_exists")
	_, err = w.SetAdmin(ctx, w.root, "local", false)
	wantCode(t, err, "last_admin")
	_, err = w.SetAdmin(ctx, w.root, "owner", true)
	must(t, err)
	wantCode(t, w.Accounts.DeleteUser(ctx, w.root, "local"), "user_local")
	_, err = w.SetAdmin(ctx, w.root, "local", false)
	must(t, err)
	_, err = w.CreateUser(ctx, w.login(t, w.first), "x", false)
	wantCode(t, err, "forbidden")
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	quota := []byte(`{"live_sessions":3}`)
	_, err := w.SetQuota(ctx, w.root, "mine", quota)
	must(t, err)
	_, err = w.SetKeyQuota(ctx, w.who[auth.Admin], w.who[auth.Member].Key, quota)
	must(t, err)
	_, err = w.SetKeyQuota(ctx, w.who[auth.Member], w.who[auth.Member].Key, nil)
	wantCode(t, err, "forbidden")
	_, err = w.SetKeyQuota(ctx, w.who[auth.Admin], w.who[auth.Owner].Key, quota)
	wantCode(t, err, "forbidden")
	_, err = w.SetKeyQuota(ctx, w.other, w.who[auth.Member].Key, quota)
	wantCode(t, err, "key_not_found")
	ofProject, ofKey, err := w.Quotas(ctx, w.who[auth.Member].Project, w.who[auth.Member].Key)
	must(t, err)
	if !bytes.Equal(ofProject, quota) || !bytes.Equal(ofKey, quota) {
		t.Errorf("the quotas are %s and %s", ofProject, ofKey)
	}
	for _, bad := range []string{"", "1", "null", "[]", `{"a":"b"}`, `{"live_sessions":-1}`, `{"a":{}}`, `{"network":7}`, `{"code":7}`, `{"redact":7}`, `{"network":{"allow":"x"}}`, "{" + strings.Repeat(" ", 70_000) + "}"} {
		_, err := w.SetQuota(ctx, w.root, "mine", []byte(bad))
		wantCode(t, err, "quota_invalid")
	}
}

// TestTheLogKnowsEverythingButKeys: every change has a row, refused ones too, and no row has a key.
func TestTheLogKnowsEverythingButKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text, err := json.Marshal(w.rows)
	must(t, err)
	for _, key := range append([]string{w.first, w.alien}, w.texts[auth.Owner], w.texts[auth.Member]) {
		if bytes.Contains(text, []byte(key[32:64])) {
			t.Error("the audit log has a key's secret")
		}
	}
	w.deaf = errors.New("disk full")
	_, key, err := w.CreateKey(t.Context(), w.root, auth.NewKey{Name: "unseen"})
	if err == nil || key != "" {
		t.Error("a key was given out that the log does not know")
	}
	_, err = w.CreateUser(t.Context(), w.who[auth.Viewer], "x", false)
	wantCode(t, err, "forbidden")
}

func TestWhoReadsTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, _, err := w.CreateKey(t.Context(), w.who[auth.Member], auth.NewKey{Name: "one"})
	must(t, err)
	for _, role := range auth.Roles() {
		rows, err := w.Accounts.Rows(t.Context(), w.who[role], false, audit.Query{Limit: 100})
		if role == auth.Member || role == auth.Viewer {
			wantCode(t, err, "forbidden")
			continue
		}
		must(t, err)
		if len(rows) != 1+len(auth.Roles()) || rows[0].Action != "key.create" || rows[1].Action != "member.set" {
			t.Errorf("a %s reads %v", role, rows) // the project's own changes, those by the server's admin too
		}
		_, err = w.Accounts.Rows(t.Context(), w.who[role], true, audit.Query{Limit: 100})
		wantCode(t, err, "forbidden")
	}
	all, err := w.Accounts.Rows(t.Context(), w.root, true, audit.Query{Limit: 100})
	must(t, err)
	if len(all) < 10 {
		t.Errorf("the server's admin reads %d rows", len(all))
	}
	_, err = w.Accounts.Rows(t.Context(), w.root, true, audit.Query{Before: "nonsense", Limit: 100})
	if !problem.Is(err, problem.Invalid) {
		t.Errorf("a cursor that is none: %v", err)
	}
}
