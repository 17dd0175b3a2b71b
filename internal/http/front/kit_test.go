package front_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/http/api"
	"cove/internal/http/compat/openai"
	"cove/internal/http/front"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// accounts are keys by text.
type accounts map[string]auth.Principal

func (a accounts) Authenticate(_ context.Context, text string) (auth.Principal, error) {
	switch who, ok := a[text]; {
	case ok:
		return who, nil
	case text == "broken":
		return auth.Principal{}, problem.New(problem.DatabaseUnavailable, "the database is down")
	}
	return auth.Principal{}, problem.New(problem.Unauthenticated, "the key is not valid")
}

// browsers are the cookies of the people, by text.
func (a accounts) AuthenticateBrowser(_ context.Context, text string) (who auth.Principal, until time.Time, err error) {
	key, ok := strings.CutPrefix(text, "browser-of-")
	switch who, known := a[key]; {
	case ok && known:
		who.Key, who.Browser = "", "brw_06f1k3t3y4m0v8s2k5r7w9x1z4"
		return who, until, nil
	case text == "broken":
		return who, until, problem.New(problem.DatabaseUnavailable, "the database is down")
	case text == "old-of-ann":
		return a[anns], time.Now().Add(30 * 24 * time.Hour), nil
	}
	return auth.Principal{}, until, problem.New(problem.Unauthenticated, "the browser is not signed in")
}

const (
	anns  = "cove_06f1k3t3y4m0v8s2k5r7w9x1z4_0v8s2k5r7w9x1z406f1k3t3y4m0v8s2k_annkey0"
	bobs  = "cove_06f1k3t3y4m0v8s2k5r7w9x1z5_0v8s2k5r7w9x1z406f1k3t3y4m0v8s2k_bobkey0"
	eves  = "cove_06f1k3t3y4m0v8s2k5r7w9x1z6_0v8s2k5r7w9x1z406f1k3t3y4m0v8s2k_evekey0"
	annID = "key_06f1k3t3y4m0v8s2k5r7w9x1z4"
)

func people() accounts {
	return accounts{
		anns: {User: "usr_ann", Project: "prj_1", Key: annID, Role: auth.Owner, Admin: true},
		bobs: {User: "usr_bob", Project: "prj_1", Key: "key_06f1k3t3y4m0v8s2k5r7w9x1z5", Role: auth.Member},
		eves: {User: "usr_eve", Project: "prj_2", Key: "key_06f1k3t3y4m0v8s2k5r7w9x1z6", Role: auth.Owner},
	}
}

// buffer is a log that several goroutines write.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// rig is a server with a surface of the test's making.
type rig struct {
	*front.Server
	people accounts
	log    *buffer
	tel    *telemetry.Telemetry
	url    string // of a listening server, after listen
}

// surfaces are two of the test's own making, at the addresses of the real ones and with their routes, and with what the tests need besides.
func surfaces(more map[string]http.HandlerFunc) []protocol.Surface {
	native, theirs := api.Surface(api.Options{}), openai.Surface(openai.Options{})
	for _, s := range []*protocol.Surface{&native, &theirs} {
		s.Handler = things(more)
		prefix := strings.TrimSuffix(s.Prefix, "/")
		if s == &native {
			prefix = api.Prefix
		}
		s.Routes = append(s.Routes, protocol.Route{Method: "GET", Pattern: prefix + "/things/{thing}", Actions: []auth.Action{auth.FilesRead}},
			protocol.Route{Method: "PUT", Pattern: prefix + "/files/{name}", Large: true})
	}
	return []protocol.Surface{native, theirs}
}

// things has what the tests need below both prefixes.
func things(more map[string]http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	for _, prefix := range []string{"/api/v1", "/v1"} {
		mux.HandleFunc("GET "+prefix+"/things/{thing}", func(w http.ResponseWriter, r *http.Request) {
			who, _ := auth.From(r.Context())
			_ = json.NewEncoder(w).Encode(who)
		})
		mux.HandleFunc("POST "+prefix+"/things", func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
				return
			}
			_ = json.NewEncoder(w).Encode(n)
		})
		mux.HandleFunc("PUT "+prefix+"/files/{name}", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
		mux.HandleFunc("GET "+prefix+"/health", func(http.ResponseWriter, *http.Request) {})
		mux.HandleFunc("GET "+prefix+"/docs", func(http.ResponseWriter, *http.Request) {})
		mux.HandleFunc("GET "+prefix+"/panic", func(http.ResponseWriter, *http.Request) { panic("the secret is " + eves) })
		mux.HandleFunc("GET "+prefix+"/half", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half an answer")
			_ = http.NewResponseController(w).Flush()
			panic("half")
		})
	}
	for pattern, h := range more {
		mux.HandleFunc(pattern, h)
	}
	return mux
}

// limited are limits of which some are others than the defaults.
func limited(change func(l *front.Limits)) front.Limits {
	l := front.DefaultLimits()
	change(&l)
	return l
}

func newRig(t *testing.T, o front.Options, more map[string]http.HandlerFunc) *rig {
	t.Helper()
	tel, err := telemetry.New(t.Context(), telemetry.Options{})
	must(t, err)
	log, known := &buffer{}, people()
	o.Accounts, o.Surfaces, o.Telemetry = known, append(surfaces(more), o.Surfaces...), tel
	o.Log = slog.New(telemetry.NewHandler(log, telemetry.LogOptions{Level: slog.LevelDebug}))
	if o.Limits == (front.Limits{}) {
		o.Limits = front.DefaultLimits()
	}
	s, err := front.New(o)
	must(t, err)
	return &rig{Server: s, people: known, log: log, tel: tel}
}

// listen has the server answer on a real socket.
func (g *rig) listen(t *testing.T) *rig {
	t.Helper()
	s := httptest.NewServer(g.Server)
	t.Cleanup(s.Close)
	g.url = s.URL
	return g
}

func (g *rig) ask(t *testing.T, method, path, key string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return g.send(t, method, path, key, "", headers...)
}

func (g *rig) send(t *testing.T, method, path, key, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, what string, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	if w.Code != status {
		t.Errorf("%s is a %d, not a %d: %s", what, w.Code, status, w.Body)
	}
}

func codeOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var body struct {
		Code  string
		Error struct{ Code string }
	}
	must(t, json.Unmarshal(w.Body.Bytes(), &body))
	return body.Code + body.Error.Code
}
