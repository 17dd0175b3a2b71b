package dify_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/http/compat/dify"
	"cove/internal/machine/process"
	"cove/internal/machine/workspace"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// fakeHub runs programs that emit what a test says.
type fakeHub struct {
	events  []process.Event
	stays   bool          // the program does not end behind its events
	follows chan struct{} // gets a value when somebody waits for the end of such a program; nil: nobody is told
	network *hub.Network
	refuse  map[string]error // by method

	mu      sync.Mutex
	checked []string
	made    []hub.NewSession
	started []process.Start
	files   map[string]string
	open    int // sessions that were not deleted
}

func (f *fakeHub) CheckProgram(_ context.Context, _ auth.Principal, code string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checked = append(f.checked, code)
	return f.refuse["CheckProgram"]
}

func (f *fakeHub) CreateSession(_ context.Context, _ auth.Principal, n hub.NewSession) (hub.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refuse["CreateSession"]; err != nil {
		return hub.Session{}, err
	}
	f.made = append(f.made, n)
	f.open++
	return hub.Session{ID: "ses_a"}, nil
}

func (f *fakeHub) DeleteSession(ctx context.Context, _ auth.Principal, _ string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
	return nil
}

func (f *fakeHub) Tree(ctx context.Context, _ auth.Principal, _ string, _ bool, use func(context.Context, hub.Tree) error) error {
	return use(ctx, fakeTree{hub: f})
}

type fakeTree struct {
	hub.Tree
	hub *fakeHub
}

func (t fakeTree) Write(_ context.Context, path string, r io.Reader) (workspace.Entry, error) {
	text, err := io.ReadAll(r)
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	t.hub.files = map[string]string{path: string(text)}
	return workspace.Entry{Path: path}, err
}

func (f *fakeHub) Packages(context.Context, auth.Principal, string) (python string, packages map[string]string, err error) {
	return "3.11", map[string]string{"numpy": "2.0", "jinja2": "3.1"}, nil
}

func (f *fakeHub) WidestNetwork(context.Context, auth.Principal) (*hub.Network, error) {
	return f.network, nil
}

func (f *fakeHub) StartProcess(_ context.Context, _ auth.Principal, _ string, s process.Start) (process.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = append(f.started, s)
	return process.Info{ID: "prc_a"}, f.refuse["StartProcess"]
}

func (f *fakeHub) FollowProcess(ctx context.Context, _ auth.Principal, _, _ string, _ int64) (iter.Seq2[process.Event, error], error) {
	return func(yield func(process.Event, error) bool) {
		for _, e := range f.events {
			if !yield(e, nil) {
				return
			}
		}
		if err := f.refuse["FollowProcess"]; err != nil {
			yield(process.Event{}, err)
			return
		}
		if f.stays {
			if f.follows != nil {
				f.follows <- struct{}{}
			}
			<-ctx.Done()
			yield(process.Event{}, ctx.Err())
		}
	}, nil
}

// sessions returns how many sessions were made, and how many of them are there still.
func (f *fakeHub) sessions() (made, open int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.made), f.open
}

func out(text string) process.Event { return process.Event{Kind: process.Stdout, Data: []byte(text)} }
func errs(text string) process.Event {
	return process.Event{Kind: process.Stderr, Data: []byte(text)}
}
func ends(e process.Exit) process.Event { return process.Event{Kind: process.Ended, Exit: &e} }

// reply is what Dify's client reads.
type reply struct {
	status  int
	header  http.Header
	Code    int
	Message string
	Data    struct {
		Stdout, Stderr, Error string
		ExitCode              int `json:"exit_code"`
		Dependencies          []struct{ Name, Version string }
	}
}

// surfaceOf is the surface on a hub.
func surfaceOf(f *fakeHub, change ...func(*dify.Options)) http.Handler {
	o := dify.Options{Hub: f}
	for _, c := range change {
		c(&o)
	}
	return dify.New(o)
}

// ask makes a request as a caller of this role; "": as nobody.
func ask(t *testing.T, h http.Handler, ctx context.Context, role auth.Role, method, path, body string) reply {
	t.Helper()
	if role != "" {
		who := auth.Local()
		who.Role = role
		ctx = auth.With(ctx, who)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, "/v1/sandbox/"+path, strings.NewReader(body)))
	r := reply{status: w.Code, header: w.Header()}
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Errorf("%s %s: %v in %q", method, path, err, w.Body)
	}
	return r
}

// run asks as Dify does.
func run(t *testing.T, f *fakeHub, language, code string, change ...func(*dify.Options)) reply {
	t.Helper()
	body, err := json.Marshal(map[string]any{"language": language, "code": code, "preload": "", "enable_network": true})
	if err != nil {
		t.Fatal(err)
	}
	r := ask(t, surfaceOf(f, change...), t.Context(), auth.Owner, "POST", "run", string(body))
	if _, open := f.sessions(); open != 0 {
		t.Errorf("%d sessions are left", open)
	}
	return r
}

var _ dify.Hub = (*hub.Hub)(nil)

func failed(code problem.Code) error { return problem.New(code, "it did not work") }

// request makes a request whose answer nobody reads.
func request(h http.Handler, ctx context.Context) {
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/sandbox/run", strings.NewReader(`{"language":"python3","code":"1"}`))
	h.ServeHTTP(httptest.NewRecorder(), r)
}
