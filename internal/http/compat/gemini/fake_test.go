package gemini_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/compat/gemini"
	"cove/internal/llm/loop"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/hub/hubtest"
)

// fakeHub has turns that say what a test wrote.
type fakeHub struct {
	mu       sync.Mutex
	script   []loop.Event  // of every turn
	ends     error         // what ends a turn behind its script
	refuse   error         // of StartTurn
	gate     chan struct{} // a turn waits for it before its last event; nil: it does not
	asked    []hub.NewTurn
	canceled []string
	session  string // of the turns, also what Session knows
	files    map[string]string
	stored   []hub.File
	data     map[string]string // by id
}

func newFake(script ...loop.Event) *fakeHub {
	return &fakeHub{script: script, session: ident.New(ident.Session), files: map[string]string{}}
}

func (f *fakeHub) StartTurn(_ context.Context, _ auth.Principal, n hub.NewTurn) (hub.Turn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, n)
	return hub.Turn{ID: ident.New(ident.Turn), Model: "test/" + n.Model}, f.refuse
}

func (f *fakeHub) Turn(_ context.Context, _ auth.Principal, id string) (hub.Turn, error) {
	return hub.Turn{ID: id, Session: f.session}, nil
}

func (f *fakeHub) CancelTurn(_ context.Context, _ auth.Principal, id string) (hub.Turn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.canceled = append(f.canceled, id)
	return hub.Turn{}, nil
}

func (f *fakeHub) stopped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.canceled) > 0
}

func (f *fakeHub) FollowTurn(ctx context.Context, _ auth.Principal, _ string, _ int64) (hub.Follower[json.RawMessage], error) {
	return hubtest.TurnEvents(func(yield func(hub.Numbered[hub.TurnEvent], error) bool) {
		for n, e := range f.script {
			if n == len(f.script)-1 && f.gate != nil {
				select {
				case <-f.gate:
				case <-ctx.Done():
					yield(hub.Numbered[hub.TurnEvent]{}, ctx.Err())
					return
				}
			}
			if !yield(hub.Numbered[hub.TurnEvent]{Seq: int64(n + 1), Event: e, Gap: e == nil}, nil) {
				return
			}
		}
		if f.ends != nil {
			yield(hub.Numbered[hub.TurnEvent]{}, f.ends)
		}
	}), nil
}

func (f *fakeHub) Session(_ context.Context, _ auth.Principal, id string) (hub.Session, error) {
	if id != f.session {
		return hub.Session{}, problem.New(problem.SessionNotFound, "there is none")
	}
	return hub.Session{ID: id}, nil
}

func (f *fakeHub) AddFile(_ context.Context, _ auth.Principal, n hub.NewFile, r io.Reader) (hub.File, error) {
	data, err := io.ReadAll(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		return hub.File{}, err
	}
	f.files[n.Name] = string(data)
	if !strings.HasPrefix(n.Purpose, "gemini") {
		return hub.File{ID: "of " + n.Name}, nil
	}
	one := hub.File{ID: ident.New(ident.File), Name: n.Name, Purpose: n.Purpose, Size: int64(len(data)), SHA256: "00ff", Created: time.Now(), Expires: time.Now().Add(n.Life)}
	f.stored = append(f.stored, one)
	if f.data == nil {
		f.data = map[string]string{}
	}
	f.data[one.ID] = string(data)
	return one, nil
}

func (f *fakeHub) File(_ context.Context, _ auth.Principal, id string) (hub.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.stored {
		if one.ID == id {
			return one, nil
		}
	}
	return hub.File{}, problem.New(problem.FileNotFound, "there is none")
}

func (f *fakeHub) Files(_ context.Context, _ auth.Principal, purpose string, _ hub.Page) (l hub.Listing[hub.File], err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.stored {
		if purpose == "" || one.Purpose == purpose {
			l.Items = append(l.Items, one)
		}
	}
	return l, nil
}

type reader struct{ *strings.Reader }

func (reader) Close() error { return nil }

func (f *fakeHub) OpenFile(ctx context.Context, who auth.Principal, id string) (hub.File, io.ReadSeekCloser, error) {
	one, err := f.File(ctx, who, id)
	return one, reader{strings.NewReader(f.data[id])}, err
}

func (f *fakeHub) DeleteFile(_ context.Context, _ auth.Principal, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stored = slices.DeleteFunc(f.stored, func(one hub.File) bool { return one.ID == id })
	return nil
}

func (f *fakeHub) Models(context.Context, auth.Principal) ([]hub.ModelInfo, error) {
	return []hub.ModelInfo{{ID: "test/scripted", Provider: "test", Default: true}, {ID: "test/other", Provider: "test"}}, nil
}

func (f *fakeHub) last(t *testing.T) hub.NewTurn {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		t.Fatal("nothing was asked")
	}
	return f.asked[len(f.asked)-1]
}

// serve has the surface served to an owner.
func serve(t *testing.T, f *fakeHub) *httptest.Server {
	t.Helper()
	return serveWith(t, gemini.New(gemini.Options{Hub: f, Heartbeat: 10 * time.Millisecond}))
}

func serveWith(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(auth.With(r.Context(), auth.Local())))
	}))
	t.Cleanup(s.Close)
	return s
}

const generate = "/gemini/v1beta/models/m:generateContent"

// ask sends a request and returns the status and the body.
func ask(t *testing.T, s *httptest.Server, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// decoded is JSON as an object.
func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

// at walks into decoded JSON: strings are keys, ints are indices.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}
