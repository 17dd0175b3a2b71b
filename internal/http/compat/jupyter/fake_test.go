package jupyter_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/compat/jupyter"
	"cove/internal/machine/process"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/hub/hubtest"
)

var start = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// fakeHub is a hub in memory whose code says what a test wrote.
type fakeHub struct {
	mu        sync.Mutex
	sessions  map[string]*hub.Session
	asked     []hub.NewExecution
	runs      map[string]*fakeRun
	script    func(n hub.NewExecution, emit func(kernel.Event), stopped <-chan struct{}) // of all code; the Done is its last event
	refuse    error                                                                      // of StartExecution
	restarts  int
	past      []hub.Execution // the newest first
	disk      map[string][]byte
	kernels   []string // beside the main ones
	processes []process.Info
	typed     chan string
}

type fakeRun struct {
	hub.Execution
	events  chan kernel.Event
	stopped chan struct{}
	once    sync.Once
}

func newFake() *fakeHub {
	return &fakeHub{sessions: map[string]*hub.Session{}, runs: map[string]*fakeRun{}, disk: map[string][]byte{}, typed: make(chan string, 100), past: []hub.Execution{{Code: "second"}, {Code: "first"}}, script: func(n hub.NewExecution, emit func(kernel.Event), _ <-chan struct{}) {
		emit(kernel.Stream{Name: "stdout", Data: []byte(n.Code)})
		emit(kernel.Done{Outcome: kernel.OutcomeOK})
	}}
}

func (f *fakeHub) CreateSession(_ context.Context, who auth.Principal, n hub.NewSession) (hub.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &hub.Session{ID: ident.New(ident.Session), Project: who.Project, User: who.User, Name: n.Name, Metadata: n.Metadata, State: hub.SessionActive, Created: start, Used: start}
	f.sessions[s.ID] = s
	return *s, nil
}

func (f *fakeHub) Session(_ context.Context, _ auth.Principal, id string) (hub.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.sessions[id]; s != nil {
		return *s, nil
	}
	return hub.Session{}, problem.New(problem.SessionNotFound, "there is no such session")
}

func (f *fakeHub) Sessions(_ context.Context, _ auth.Principal, filter hub.SessionFilter, _ hub.Page) (out hub.Listing[hub.Session], err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(f.sessions)) {
		s, fits := f.sessions[id], true
		for k, v := range filter.Meta {
			fits = fits && s.Metadata[k] == v
		}
		if fits {
			out.Items = append(out.Items, *s)
		}
	}
	return out, nil
}

func (f *fakeHub) ChangeSession(_ context.Context, _ auth.Principal, id string, c hub.SessionChange) (hub.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions[id].Metadata = c.Metadata
	return *f.sessions[id], nil
}

func (f *fakeHub) DeleteSession(_ context.Context, _ auth.Principal, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, id)
	return nil
}

func (f *fakeHub) RestartKernel(context.Context, auth.Principal, string, string) (hub.Kernel, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.restarts++
	for _, r := range f.runs {
		r.once.Do(func() { close(r.stopped) })
	}
	return hub.Kernel{}, nil
}

func (f *fakeHub) StartExecution(_ context.Context, who auth.Principal, n hub.NewExecution) (hub.Execution, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, n)
	if f.refuse != nil {
		return hub.Execution{}, f.refuse
	}
	r := &fakeRun{Execution: hub.Execution{ID: ident.New(ident.Execution), Project: who.Project, Session: n.Session, Code: n.Code}, events: make(chan kernel.Event), stopped: make(chan struct{})}
	f.runs[r.ID] = r
	script := f.script
	go func() {
		defer close(r.events)
		script(n, func(e kernel.Event) { r.events <- e }, r.stopped)
	}()
	return r.Execution, nil
}

func (f *fakeHub) Follow(_ context.Context, _ auth.Principal, id string, _ int64) (hub.Follower[json.RawMessage], error) {
	f.mu.Lock()
	r := f.runs[id]
	f.mu.Unlock()
	return hubtest.Events(func(yield func(hub.Numbered[kernel.Event], error) bool) {
		for e := range r.events {
			if !yield(hub.Numbered[kernel.Event]{Event: e}, nil) {
				return
			}
		}
	}), nil
}

func (f *fakeHub) Executions(_ context.Context, _ auth.Principal, _ hub.ExecutionFilter, p hub.Page) (hub.Listing[hub.Execution], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, _ := strconv.Atoi(p.After)
	to := min(from+p.Limit, len(f.past))
	list := hub.Listing[hub.Execution]{Items: f.past[from:to]}
	if to < len(f.past) {
		list.Next = strconv.Itoa(to)
	}
	return list, nil
}

func (f *fakeHub) InterruptExecution(_ context.Context, _ auth.Principal, id string) (hub.Execution, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.runs[id]; r != nil {
		r.once.Do(func() { close(r.stopped) })
	}
	return hub.Execution{}, nil
}

func (f *fakeHub) Complete(context.Context, auth.Principal, string, string, string, int) ([]string, int, int, error) {
	return []string{"sqrt"}, 5, 7, nil
}

func (f *fakeHub) IsComplete(context.Context, auth.Principal, string, string, string) (string, error) {
	return "", errors.New("the kernel runs code")
}

func (f *fakeHub) Describe(context.Context, auth.Principal, string, string, string, int) (string, error) {
	return "", nil
}

// keys are known keys.
type keys map[string]auth.Principal

func (k keys) Authenticate(_ context.Context, text string) (auth.Principal, error) {
	if who, ok := k[text]; ok {
		return who, nil
	}
	return auth.Principal{}, problem.New(problem.Unauthenticated, "the key is not valid")
}

var ann = auth.Principal{User: "usr_ann", Project: "prj_1", Key: "key_1", Role: auth.Member}

// rig is a surface on a fake hub, after what a front door does.
type rig struct {
	*fakeHub
	t        *testing.T
	url      string
	revoked  chan struct{} // closed: the key is not valid any more
	stopping chan struct{}
}

func newRig(t *testing.T) *rig {
	t.Helper()
	g := &rig{fakeHub: newFake(), t: t, revoked: make(chan struct{}), stopping: make(chan struct{})}
	known := keys{"annskey": ann, "viewer": {User: "usr_eve", Project: "prj_1", Role: auth.Viewer}}
	s := jupyter.Surface(jupyter.Options{Hub: g, Accounts: known, Version: "1", Secret: []byte("secret"), Stopping: g.stopping})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		texts := s.Keys(r)
		if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			texts = append(texts, bearer)
		}
		if len(texts) > 0 {
			if who, err := known.Authenticate(ctx, texts[0]); err == nil {
				ctx = auth.With(ctx, who)
			}
		}
		ctx = auth.WithAgain(ctx, func(ctx context.Context) (auth.Principal, error) {
			select {
			case <-g.revoked:
				return auth.Principal{}, problem.New(problem.Unauthenticated, "the key was revoked")
			default:
			}
			who, _ := auth.From(ctx)
			return who, nil
		})
		s.Handler.ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(server.Close)
	g.url = server.URL + "/jupyter"
	return g
}
