package gateway_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/pyindex"
)

const kindJSON = "application/vnd.pypi.simple.v1+json"

// noon is the time of tests, unless they say otherwise.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// server is an index whose answers a test decides on, and which remembers the requests.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	routes   map[string]http.HandlerFunc
}

func serve(t *testing.T) *server {
	t.Helper()
	s := prepare()
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func prepare() *server {
	s := &server{routes: map[string]http.HandlerFunc{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r)
		route := s.routes[r.URL.Path]
		s.mu.Unlock()
		if route == nil {
			http.NotFound(w, r)
			return
		}
		route(w, r)
	}))
	return s
}

func (s *server) on(path string, route http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes[path] = route
}

// page answers for a project with a body of that type.
func (s *server) page(project, kind, body string) {
	s.on("/simple/"+project+"/", text(kind, body))
}

// asked returns the requests for a path.
func (s *server) asked(path string) []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*http.Request
	for _, r := range s.requests {
		if r.URL.Path == path {
			out = append(out, r)
		}
	}
	return out
}

func (s *server) source() pyindex.Source {
	return pyindex.Source{Name: "test", URL: s.URL + "/simple"}
}

func text(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, body)
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// sum returns a text's SHA-256.
func sum(content string) string {
	s := sha256.Sum256([]byte(content))
	return hex.EncodeToString(s[:])
}

// listed is one file of a page in JSON, with the fields of PEP 691.
type listed map[string]any

// file lists a file below /files of the same server, uploaded long ago.
func file(name, content string) listed {
	return listed{"filename": name, "url": "../../files/" + name, "hashes": map[string]string{"sha256": sum(content)}, "size": len(content),
		"upload-time": "2026-01-01T00:00:00Z"}
}

func (l listed) with(name string, value any) listed {
	out := listed{}
	for k, v := range l {
		out[k] = v
	}
	out[name] = value
	return out
}

func inJSON(t *testing.T, files ...listed) string {
	t.Helper()
	out, err := json.Marshal(map[string]any{"meta": map[string]string{"api-version": "1.1"}, "name": "demo", "files": files})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// options are those of a gateway before servers.
func options(t *testing.T, sources ...pyindex.Source) gateway.Options {
	t.Helper()
	return gateway.Options{Cache: t.TempDir(), Sources: sources, Now: func() time.Time { return noon }, Times: gateway.Times{Pause: time.Millisecond}}
}

func open(t *testing.T, o gateway.Options) *gateway.Gateway {
	t.Helper()
	g, err := gateway.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// wantProblem fails unless err is a problem of that code with a hint.
func wantProblem(t *testing.T, err error, code string) {
	t.Helper()
	p := problem.Of(err)
	if p == nil || p.Code != code || p.Message == "" || p.Hint == "" && code != "canceled" {
		t.Fatalf("got %v (%+v), want a problem %s with a hint", err, p, code)
	}
}

// names returns the names of the files that pass, and of those that do not with the reason.
func names(p gateway.Project) (passing []string, withheld map[string]string) {
	withheld = map[string]string{}
	for _, f := range p.Files {
		if f.Withheld == "" {
			passing = append(passing, f.Name)
		} else {
			withheld[f.Name] = f.Withheld
		}
	}
	return passing, withheld
}

func join(words []string) string { return strings.Join(words, " ") }
