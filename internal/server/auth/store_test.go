package auth_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
)

// memory is a Store and a Log without a database. asked counts the look-ups of keys, and changed the changes.
type memory struct {
	mu, alone      sync.Mutex
	keys           map[string]auth.Key
	users          map[string]auth.User
	projects       map[string]auth.Project
	members        []auth.Membership
	browsers       map[string]auth.Browser
	codes          map[string]auth.Code
	passwords      map[string]auth.Password
	invitations    map[string]auth.Invitation
	rows           []audit.Row
	asked, changed int
	broken         error // of every look-up of a key
	deaf           error // of every audit row
}

func newMemory() *memory {
	return &memory{keys: map[string]auth.Key{}, users: map[string]auth.User{}, projects: map[string]auth.Project{},
		browsers: map[string]auth.Browser{}, codes: map[string]auth.Code{},
		passwords: map[string]auth.Password{}, invitations: map[string]auth.Invitation{}}
}

func missing(what string) error { return problem.Received(problem.NotFound, what+"_not_found", "none") }

func get[T any](m *memory, things map[string]T, what string, match func(T) bool) (T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range things {
		if match(t) {
			return t, nil
		}
	}
	var none T
	return none, missing(what)
}

func change[T any](m *memory, things map[string]T, what, id string, do func(*T) error) (T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := things[id]
	if !ok {
		return t, missing(what)
	}
	m.changed++
	if err := do(&t); err != nil {
		return t, err
	}
	things[id] = t
	return t, nil
}

func put[T any](m *memory, things map[string]T, id string, t T) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	things[id] = t
	return nil
}

func list[T any](m *memory, things map[string]T, keep func(T) bool) ([]T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []T
	for _, t := range things {
		if keep(t) {
			out = append(out, t)
		}
	}
	return out, nil
}

func (m *memory) AddKey(_ context.Context, k auth.Key) error { return put(m, m.keys, k.ID, k) }
func (m *memory) Key(_ context.Context, id string) (auth.Key, error) {
	m.mu.Lock()
	m.asked++
	broken := m.broken
	m.mu.Unlock()
	if broken != nil {
		return auth.Key{}, broken
	}
	return get(m, m.keys, "key", func(k auth.Key) bool { return k.ID == id })
}
func (m *memory) KeyOf(_ context.Context, subject string) (auth.Key, error) {
	k, err := get(m, m.keys, "key", func(k auth.Key) bool { return k.Subject == subject && k.Revoked.IsZero() })
	if err != nil {
		k, err = get(m, m.keys, "key", func(k auth.Key) bool { return k.Subject == subject })
	}
	return k, err
}
func (m *memory) Keys(_ context.Context, project string) ([]auth.Key, error) {
	return list(m, m.keys, func(k auth.Key) bool { return k.Project == project })
}
func (m *memory) ChangeKey(_ context.Context, id string, do func(*auth.Key) error) (auth.Key, error) {
	return change(m, m.keys, "key", id, do)
}
func (m *memory) AddBrowser(_ context.Context, b auth.Browser) error {
	return put(m, m.browsers, b.ID, b)
}
func (m *memory) Browser(_ context.Context, id string) (auth.Browser, error) {
	return get(m, m.browsers, "browser", func(b auth.Browser) bool { return b.ID == id })
}
func (m *memory) Browsers(_ context.Context, project, user string) ([]auth.Browser, error) {
	return list(m, m.browsers, func(b auth.Browser) bool { return (project == "" || b.Project == project) && b.User == user })
}
func (m *memory) ChangeBrowser(_ context.Context, id string, do func(*auth.Browser) error) (auth.Browser, error) {
	return change(m, m.browsers, "browser", id, do)
}
func (m *memory) DeleteBrowser(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.browsers, id)
	return nil
}
func (m *memory) AddCode(_ context.Context, c auth.Code) error { return put(m, m.codes, c.ID, c) }
func (m *memory) Code(_ context.Context, id string) (auth.Code, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.codes[id], nil
}
func (m *memory) UseCode(_ context.Context, id string, at time.Time) error {
	_, err := change(m, m.codes, "code", id, func(c *auth.Code) error { c.Used = at; return nil })
	return err
}
func (m *memory) SetPassword(_ context.Context, p auth.Password) error {
	return put(m, m.passwords, p.User, p)
}
func (m *memory) Password(_ context.Context, user string) (auth.Password, error) {
	p, _ := get(m, m.passwords, "", func(p auth.Password) bool { return p.User == user })
	return p, nil
}
func (m *memory) PasswordOf(_ context.Context, login string) (auth.Password, error) {
	p, _ := get(m, m.passwords, "", func(p auth.Password) bool { return p.Login == login })
	return p, nil
}
func (m *memory) AddInvitation(_ context.Context, i auth.Invitation) error {
	return put(m, m.invitations, i.ID, i)
}
func (m *memory) Invitation(_ context.Context, id string) (auth.Invitation, error) {
	return get(m, m.invitations, "invitation", func(i auth.Invitation) bool { return i.ID == id })
}
func (m *memory) InvitationOf(_ context.Context, hash string) (auth.Invitation, error) {
	i, _ := get(m, m.invitations, "", func(i auth.Invitation) bool { return i.Hash == hash })
	return i, nil
}
func (m *memory) Invitations(_ context.Context, project string) ([]auth.Invitation, error) {
	return list(m, m.invitations, func(i auth.Invitation) bool { return i.Project == project })
}
func (m *memory) UseInvitation(_ context.Context, id string, at time.Time) error {
	_, err := change(m, m.invitations, "invitation", id, func(i *auth.Invitation) error { i.Used = at; return nil })
	return err
}
func (m *memory) DeleteInvitation(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.invitations, id)
	return nil
}
func (m *memory) Memberships(_ context.Context, user string) ([]auth.Membership, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.members), func(x auth.Membership) bool { return x.User != user }), nil
}
func (m *memory) AddUser(_ context.Context, u auth.User) error { return put(m, m.users, u.ID, u) }
func (m *memory) User(_ context.Context, name string) (auth.User, error) {
	return get(m, m.users, "user", func(u auth.User) bool { return u.ID == name || u.Name == name })
}
func (m *memory) Users(context.Context) ([]auth.User, error) {
	return list(m, m.users, func(auth.User) bool { return true })
}
func (m *memory) ChangeUser(_ context.Context, id string, do func(*auth.User) error) (auth.User, error) {
	return change(m, m.users, "user", id, do)
}
func (m *memory) DeleteUser(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.users, id)
	m.members = slices.DeleteFunc(m.members, func(x auth.Membership) bool { return x.User == id })
	for name, k := range m.keys {
		if k.User == id {
			delete(m.keys, name)
		}
	}
	for name, b := range m.browsers {
		if b.User == id {
			delete(m.browsers, name)
		}
	}
	return nil
}
func (m *memory) AddProject(_ context.Context, p auth.Project) error {
	return put(m, m.projects, p.ID, p)
}
func (m *memory) Project(_ context.Context, name string) (auth.Project, error) {
	return get(m, m.projects, "project", func(p auth.Project) bool { return p.ID == name || p.Name == name })
}
func (m *memory) Projects(context.Context) ([]auth.Project, error) {
	return list(m, m.projects, func(auth.Project) bool { return true })
}
func (m *memory) ChangeProject(_ context.Context, id string, do func(*auth.Project) error) (auth.Project, error) {
	return change(m, m.projects, "project", id, do)
}
func (m *memory) SetMember(_ context.Context, x auth.Membership) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.members = slices.DeleteFunc(m.members, func(o auth.Membership) bool { return o.User == x.User && o.Project == x.Project })
	if x.Role != "" {
		m.members = append(m.members, x)
	}
	return nil
}
func (m *memory) Role(_ context.Context, project, user string) (auth.Role, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.members {
		if x.Project == project && x.User == user {
			return x.Role, nil
		}
	}
	return "", nil
}
func (m *memory) Members(_ context.Context, project string) ([]auth.Membership, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.members), func(x auth.Membership) bool { return x.Project != project }), nil
}

func (m *memory) Alone(ctx context.Context, do func(context.Context, auth.Store) error) error {
	m.alone.Lock()
	defer m.alone.Unlock()
	return do(ctx, m)
}

func (m *memory) AddRow(_ context.Context, r audit.Row) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.deaf != nil {
		return m.deaf
	}
	m.rows = append(m.rows, r)
	return nil
}
func (m *memory) Rows(_ context.Context, q audit.Query) ([]audit.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := slices.DeleteFunc(slices.Clone(m.rows), func(r audit.Row) bool { return q.Project != "" && r.Project != q.Project })
	slices.Reverse(rows)
	return rows[:min(q.Limit, len(rows))], nil
}

// world is a server with one project that has a user of every role, another project, and an admin of the server (the local user).
type world struct {
	*memory
	auth.Accounts
	at    time.Time
	first string // the first key
	root  auth.Principal
	who   map[auth.Role]auth.Principal // by key
	texts map[auth.Role]string
	other auth.Principal // owner of another project
	alien string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{memory: newMemory(), at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), who: map[auth.Role]auth.Principal{}, texts: map[auth.Role]string{}}
	w.Store, w.Audit, w.Now = w.memory, w.memory, func() time.Time { return w.at }
	ctx := t.Context()
	var err error
	if w.first, err = w.Found(ctx, ""); err != nil {
		t.Fatal(err)
	}
	w.root = w.login(t, w.first)
	mine, err := w.CreateProject(ctx, w.root, "mine")
	must(t, err)
	theirs, err := w.CreateProject(ctx, w.root, "theirs")
	must(t, err)
	for _, role := range auth.Roles() {
		w.texts[role] = w.member(t, mine.ID, string(role), role)
		w.who[role] = w.login(t, w.texts[role])
	}
	w.alien = w.member(t, theirs.ID, "stranger", auth.Owner)
	w.other = w.login(t, w.alien)
	return w
}

// member makes a user with a key in a project.
func (w *world) member(t *testing.T, project, name string, role auth.Role) string {
	t.Helper()
	u, err := w.CreateUser(t.Context(), w.root, name, false)
	must(t, err)
	_, err = w.Accounts.SetMember(t.Context(), w.root, auth.Membership{Project: project, User: u.ID, Role: role})
	must(t, err)
	_, text, err := w.CreateKey(t.Context(), w.root, auth.NewKey{Name: name, Project: project, User: u.ID})
	must(t, err)
	return text
}

func (w *world) login(t *testing.T, text string) auth.Principal {
	t.Helper()
	who, err := w.Authenticate(t.Context(), text)
	must(t, err)
	w.Wait() // the tests look into the store
	return who
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantCode checks the code of a problem; "" is no problem.
func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	got := ""
	if err != nil {
		got = problem.Of(err).Code
	}
	if got != code {
		t.Errorf("the problem's code is %q, not %q: %v", got, code, err)
	}
}
