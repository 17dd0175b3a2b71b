package front_test

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/compat/dify"
	"cove/internal/http/compat/librechat"
	"cove/internal/http/compat/openai"
	"cove/internal/http/compat/sandboxai"
	"cove/internal/http/front"
	"cove/internal/http/protocol"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/sessions/ondisk"
)

// secretWord is in everything that belongs to the other project; no answer to anybody else may have it.
const secretWord = "kingfisher"

// mute is a model that never answers.
type mute struct{}

func (mute) Name() string                     { return "test/mute" }
func (mute) Capabilities() model.Capabilities { return model.Capabilities{Tools: true} }
func (mute) Stream(context.Context, model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		yield(nil, problem.New(problem.ModelUnavailable, "no model in this test"))
	}
}

type models struct{}

func (models) Open(context.Context, string) (model.Model, error) { return mute{}, nil }
func (models) List(context.Context) ([]hub.ModelInfo, error)     { return nil, nil }

// whole is a server of all parts but sandboxes and models: no code can run, but everything up to it is real.
type whole struct {
	*front.Server
	store    *store.Store
	accounts *auth.Accounts
	root     auth.Principal
}

func newWhole(t *testing.T) *whole {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Database: filepath.Join(t.TempDir(), "cove.db")})
	must(t, err)
	accounts := &auth.Accounts{Store: db, Audit: db}
	first, err := accounts.Found(t.Context(), "")
	must(t, err)
	h, err := hub.New(hub.Options{
		Limits: hub.DefaultLimits(), Turns: loop.DefaultLimits(),
		Store: db, Audit: db, Models: models{}, Contents: t.TempDir(), Sessions: ondisk.Store{Dir: t.TempDir()},
		Prepare: func(context.Context, ondisk.Base) (*ondisk.Ground, error) {
			return nil, problem.Received(problem.Unavailable, "gvisor_unusable", "no sandbox in this test")
		},
	})
	must(t, err)
	must(t, h.Recover(t.Context()))
	s, err := front.New(front.Options{
		Accounts: accounts, Surfaces: append(sandboxai.Surfaces(sandboxai.Options{Hub: h}), api.Surface(api.Options{Hub: h, Accounts: accounts, Audit: db}), dify.Surface(dify.Options{Hub: h}), librechat.Surface(librechat.Options{Hub: h}), openai.Surface(openai.Options{Hub: h})),
		Limits: limited(func(l *front.Limits) { l.KeyRate, l.ProjectRate = 0, 0 }),
	})
	must(t, err)
	root, err := accounts.Authenticate(t.Context(), first)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = h.Drain(ctx)
		accounts.Wait()
		_ = db.Close()
	})
	return &whole{s, db, accounts, root}
}

// tenant is a project with a key of every role.
type tenant struct {
	id   string
	keys map[auth.Role]string
}

func (w *whole) tenant(t *testing.T, name string) tenant {
	t.Helper()
	ctx := t.Context()
	p, err := w.accounts.CreateProject(ctx, w.root, name)
	must(t, err)
	out := tenant{id: p.ID, keys: map[auth.Role]string{}}
	for _, role := range auth.Roles() {
		u, err := w.accounts.CreateUser(ctx, w.root, name+" "+string(role), false)
		must(t, err)
		_, err = w.accounts.SetMember(ctx, w.root, auth.Membership{Project: p.ID, User: u.ID, Role: role})
		must(t, err)
		_, text, err := w.accounts.CreateKey(ctx, w.root, auth.NewKey{Name: name, Project: p.ID, User: u.ID})
		must(t, err)
		out.keys[role] = text
	}
	return out
}

// address fills a pattern's wildcards with new things of a project. named says whether there was anything that belongs to somebody.
func (w *whole) address(t *testing.T, owner tenant, pattern string) (path string, named bool) {
	t.Helper()
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		if !strings.HasPrefix(part, "{") {
			continue
		}
		name := strings.Trim(part, "{}.$")
		if name == "" { // nothing more
			parts[i] = ""
			continue
		}
		switch name {
		case "path", "kernel", "process", "widget", "question", "item", "member", "provider", "space":
			parts[i] = "main"
			continue
		case "storage", "object":
			parts[i] = strings.Repeat("a", 21)
			continue
		case "port":
			parts[i] = "8000"
			continue
		case "id":
			name = parts[i-1] // responses, conversations, containers, files, models
			if name == "models" {
				parts[i] = "none"
				continue
			}
		case "file":
			if slices.Contains(parts, "containers") {
				parts[i] = "cfile_x"
				continue
			}
		}
		parts[i], named = w.thing(t, owner, name), true
	}
	return strings.Join(parts, "/"), named
}

// thing makes one and returns its id as the route's surface has it.
func (w *whole) thing(t *testing.T, owner tenant, kind string) string {
	t.Helper()
	ctx, now := t.Context(), time.Now().UTC()
	session := hub.Session{ID: ident.New(ident.Session), Project: owner.id, User: auth.LocalUser, Name: secretWord, State: hub.SessionPaused, Created: now, Used: now, Expires: now.Add(time.Hour), Idle: time.Hour, Packages: "standard"}
	conversation := hub.Conversation{ID: ident.New(ident.Conversation), Project: owner.id, User: auth.LocalUser, Title: secretWord, Created: now, Used: now, Source: "api"}
	switch kind {
	case "session", "containers":
		must(t, w.store.AddSession(ctx, session))
		return foreign(kind, "containers", "cntr_", session.ID)
	case "name": // of SandboxAI's sandboxes
		session.Metadata = map[string]string{"sandboxai.place": "main/" + ident.Body(session.ID), "sandboxai.spec": "{}"}
		must(t, w.store.AddSession(ctx, session))
		return ident.Body(session.ID)
	case "execution":
		must(t, w.store.AddSession(ctx, session))
		e := hub.Execution{ID: ident.New(ident.Execution), Project: owner.id, User: auth.LocalUser, Session: session.ID, Kernel: "main", Code: secretWord, State: "ok", Created: now}
		must(t, w.store.AddExecution(ctx, e))
		_, err := w.store.FinishExecution(ctx, e, nil)
		must(t, err)
		return e.ID
	case "conversation", "conversations":
		must(t, w.store.AddConversation(ctx, conversation))
		return foreign(kind, "conversations", "conv_", conversation.ID)
	case "turn", "responses":
		must(t, w.store.AddConversation(ctx, conversation))
		turn := hub.Turn{ID: ident.New(ident.Turn), Project: owner.id, User: auth.LocalUser, Conversation: conversation.ID, State: hub.TurnCompleted, Prompt: secretWord, Answer: secretWord, Created: now, Finished: now}
		must(t, w.store.AddTurn(ctx, turn))
		_, err := w.store.FinishTurn(ctx, turn, nil)
		must(t, err)
		return foreign(kind, "responses", "resp_", turn.ID)
	case "file", "files", "uploads":
		f := hub.File{ID: ident.New(ident.File), Project: owner.id, User: auth.LocalUser, Name: secretWord, SHA256: strings.Repeat("0", 64), Created: now}
		if kind == "uploads" {
			f.Purpose = "openai.upload"
		}
		must(t, w.store.AddFile(ctx, f))
		if kind == "uploads" {
			return "upload_" + ident.Body(f.ID)
		}
		return foreign(kind, "files", "file-", f.ID)
	case "upload":
		u := hub.Upload{ID: ident.New(ident.Upload), Project: owner.id, User: auth.LocalUser, Name: secretWord, Size: 5, Created: now, Expires: now.Add(time.Hour)}
		must(t, w.store.AddUpload(ctx, u, hub.UploadBounds{Key: 1000, Project: 1000, Server: 1000}))
		return u.ID
	case "key", "user":
		u, err := w.accounts.CreateUser(ctx, w.root, secretWord+" "+session.ID, false)
		must(t, err)
		_, err = w.accounts.SetMember(ctx, w.root, auth.Membership{Project: owner.id, User: u.ID, Role: auth.Viewer})
		must(t, err)
		k, _, err := w.accounts.CreateKey(ctx, w.root, auth.NewKey{Name: secretWord, Project: owner.id, User: u.ID})
		must(t, err)
		if kind == "user" {
			return u.ID
		}
		return k.ID
	case "browser":
		b, _, err := w.accounts.SignIn(ctx, auth.Principal{Project: owner.id, User: auth.LocalUser, Agent: secretWord}, "in a test")
		must(t, err)
		return b.ID
	case "link":
		session := w.thing(t, owner, "session")
		link := hub.SessionLink{ID: ident.New(ident.Link), Hash: ident.New("hsh"), Project: owner.id, User: auth.LocalUser, Session: session, Purpose: hub.LinkRead, Path: secretWord, Created: now}
		must(t, w.store.AddLink(ctx, link, 10_000))
		return link.ID
	case "share":
		must(t, w.store.AddConversation(ctx, conversation))
		share := hub.Share{ID: ident.New(ident.Share), Hash: conversation.ID, Project: owner.id, User: auth.LocalUser, Conversation: conversation.ID, Title: secretWord, Created: now}
		must(t, w.store.AddShare(ctx, share, []byte("x"), 10_000, 1<<30))
		return share.ID
	case "invitation":
		i, _, err := w.accounts.Invite(ctx, w.root, auth.NewInvitation{Project: owner.id, Role: auth.Viewer, Name: secretWord})
		must(t, err)
		return i.ID
	case "project":
		return owner.id
	case "table":
		return "df"
	case "column":
		return "0"
	case "number", "step":
		return "1"
	}
	t.Fatalf("the test does not know what {%s} is", kind)
	return ""
}

func foreign(kind, surface, prefix, id string) string {
	if kind == surface {
		return prefix + ident.Body(id)
	}
	return id
}

func (w *whole) ask(t *testing.T, method, path, key string) *httptest.ResponseRecorder {
	t.Helper()
	var body io.Reader = http.NoBody
	if method != "GET" && method != "DELETE" {
		body = strings.NewReader(bodyFor(path))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, path, body)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	out := &begun{ResponseRecorder: httptest.NewRecorder(), end: cancel}
	w.ServeHTTP(out, r)
	return out.ResponseRecorder
}

// begun records an answer, and ends the request when a stream of events has begun: that has no end of its own, and its status is known then.
type begun struct {
	*httptest.ResponseRecorder
	end func()
}

func (b *begun) Flush() {
	b.ResponseRecorder.Flush()
	if strings.HasPrefix(b.Header().Get("Content-Type"), "text/event-stream") {
		b.end()
	}
}

// bodyFor is a body that gets a request past the reading of it, where there is one.
func bodyFor(path string) string {
	switch {
	case strings.HasSuffix(path, "/executions"):
		return `{"code":"1"}`
	case strings.HasSuffix(path, "/move"):
		return `{"from":"a","to":"b"}`
	case strings.HasSuffix(path, "/folders"):
		return `{"path":"a"}`
	case strings.HasSuffix(path, "/kernels"):
		return `{"name":"second"}`
	case strings.HasSuffix(path, "/processes"):
		return `{"line":"true"}`
	case strings.HasSuffix(path, "/terminal"):
		return `{"columns":80,"rows":24}`
	case strings.HasSuffix(path, "/signal"):
		return `{"signal":"INT"}`
	case strings.HasSuffix(path, "/packages"):
		return `{"packages":["six"],"requirements":["six"]}`
	case strings.Contains(path, "/kernels/") && strings.HasSuffix(path, "/complete"), strings.HasSuffix(path, "/describe"):
		return `{"code":"x","cursor":1}`
	case strings.HasSuffix(path, "/is-complete"):
		return `{"code":"x"}`
	case strings.HasSuffix(path, "/complete"):
		return `{"part_ids":[]}`
	case strings.HasSuffix(path, "/connections/try"):
		return `{"provider":"mars"}`
	case strings.Contains(path, "/connections/"):
		return `{"models":["m"]}`
	case strings.Contains(path, "/executions/") && strings.HasSuffix(path, "/approve"):
		return `{"run":true}`
	case strings.Contains(path, "/inputs/"):
		return `{"text":"x"}`
	case strings.HasSuffix(path, "/undone"):
		return `{"from":"trn_x"}`
	case strings.Contains(path, "/reruns/"):
		return `{"execution":"exe_x"}`
	case strings.HasSuffix(path, "/approve"):
		return `{"step":1,"run":true}`
	case strings.HasSuffix(path, "/turns"), strings.HasSuffix(path, "/queue"):
		return `{"prompt":"x"}`
	case strings.Contains(path, "/members/"):
		return `{"role":"member"}`
	}
	return `{}`
}

// TestEveryRouteByEveryRole asks for every route of both surfaces without a key, with one of every role, and with every role for a thing of
// another project. A route that is added is asked for as well.
func TestEveryRouteByEveryRole(t *testing.T) {
	t.Parallel()
	w := newWhole(t)
	mine, theirs := w.tenant(t, "mine"), w.tenant(t, secretWord)
	routes := w.Routes()
	if len(routes) < 60 {
		t.Errorf("there are only %d routes", len(routes))
	}
	asked, found := 0, 0
	for _, route := range routes {
		if route.Pattern == "/metrics" || route.Access == protocol.Public || route.Access == protocol.ByCode {
			continue // see the tests of these
		}
		name := route.Method + " " + route.Pattern
		foreignPath, named := w.address(t, theirs, route.Pattern)
		if got := w.ask(t, route.Method, foreignPath, "").Code; got != 401 {
			t.Errorf("%s without a key is a %d", name, got)
		}
		for _, role := range auth.Roles() {
			asked++
			may := !slices.ContainsFunc(route.Actions, func(a auth.Action) bool { return !auth.Principal{Role: role}.May(a) })
			own, _ := w.address(t, mine, route.Pattern)
			answer := w.ask(t, route.Method, own, mine.keys[role])
			w.checkOwn(t, name+" by a "+string(role), may, answer)
			// That others' things are not there says something only where one's own are.
			if record := strings.HasSuffix(route.Pattern, "}") && !strings.Contains(own, "/main") && !strings.Contains(own, "cfile_") && !strings.Contains(own, "/ports/") && named; record && may && route.Method == "GET" {
				found++
				want(t, name+" by a "+string(role), answer, 200)
			}
			if named && !strings.Contains(route.Pattern, "/users/{user}") {
				w.checkTheirs(t, name+" of others by a "+string(role), may, w.ask(t, route.Method, foreignPath, mine.keys[role]))
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d times a record of one's own was asked for", found)
	}
	t.Logf("%d routes, %d pairs of a route and a role, %d records found", len(routes), asked, found)
}

func (w *whole) checkOwn(t *testing.T, what string, may bool, got *httptest.ResponseRecorder) {
	t.Helper()
	switch {
	case may && (got.Code == 401 || got.Code == 403):
		t.Errorf("%s, who may, is a %d: %s", what, got.Code, got.Body)
	case !may && (got.Code < 400 || got.Code >= 500):
		t.Errorf("%s, who may not, is a %d: %s", what, got.Code, got.Body)
	case !may && strings.Contains(what, " /api/") && got.Code != 403:
		t.Errorf("%s, who may not, is a %d and not a 403: %s", what, got.Code, got.Body)
	}
}

// checkTheirs: what belongs to others is not there. A body that is not right for the route may be said first.
func (w *whole) checkTheirs(t *testing.T, what string, may bool, got *httptest.ResponseRecorder) {
	t.Helper()
	fine := []int{404, 400, 415, 422}
	if !may {
		fine = append(fine, 403)
	}
	if !slices.Contains(fine, got.Code) {
		t.Errorf("%s is a %d: %s", what, got.Code, got.Body)
	}
	if strings.Contains(got.Body.String(), secretWord) {
		t.Errorf("%s tells what it is: %s", what, got.Body)
	}
	if may && strings.HasPrefix(what, "GET ") && got.Code != 404 {
		t.Errorf("%s is a %d and not a 404", what, got.Code)
	}
}
