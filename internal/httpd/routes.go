package httpd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"cove/internal/auth"
	"cove/internal/problem"
)

// routes is the whole map of addresses. Which need no key is said by public, below.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()

	mux.HandleFunc("GET /{$}", s.welcome)
	mux.HandleFunc("GET /health", s.alive)         // the process answers
	mux.HandleFunc("GET /health/ready", s.isReady) // and can do its work
	mux.HandleFunc("GET /metrics", s.metrics)      // for admins of the server
	for _, own := range []string{"/{$}", "/health", "/health/ready", "/metrics"} {
		mux.HandleFunc(own, onlyGet)
	}

	mux.Handle("/api/", or404(s.o.API))   // see package api
	mux.Handle("/v1/", or404(s.o.OpenAI)) // see package compat/openai

	mux.HandleFunc("/", notFound)
	return plainly(mux)
}

// plainly refuses addresses that the mux would send somewhere else: few programs follow that with a body, and those who do not would take an
// upload for done.
func plainly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := strings.TrimSuffix(r.URL.EscapedPath(), "/"); p != "" && path.Clean(p) != p {
			refuse(w, r, problem.New(problem.NotFound, "route_not_found", "there is nothing at this address").
				WithHint("write it without empty parts (//) and without . and .."))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// public says whether a request needs no key: health, and the documentation where the operator wants it so.
func (s *Server) public(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch r.URL.Path {
	case "/health", "/health/ready", "/api/v1/health", "/api/v1/health/ready":
		return true
	}
	return s.o.PublicDocs && isDocumentation(r)
}

// isDocumentation says whether a request is for the pages that people open in a browser, and for nothing that is anybody's own.
func isDocumentation(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch r.URL.Path {
	case "/api/v1/docs", "/api/v1/openapi.json", "/api/v1/openapi-3.0.json":
		return true
	}
	return false
}

// uploads says whether a request's body may be a file or a part of one: all of them have that word in their address.
func uploads(r *http.Request) bool {
	words := strings.Split(r.URL.Path, "/")
	return (r.Method == http.MethodPost || r.Method == http.MethodPut) && (slices.Contains(words, "files") || slices.Contains(words, "parts"))
}

// Route is one thing that can be asked of the server.
type Route struct {
	Method, Pattern string        // "GET", "/api/v1/sessions/{id}"
	Actions         []auth.Action // all that it takes; none for public ones and those that any key may ask
}

// Routes returns every route, for tests of who may do what: those of Options.Routes and the server's own.
func (s *Server) Routes() []Route {
	return append([]Route{
		{Method: "GET", Pattern: "/"},
		{Method: "GET", Pattern: "/health"},
		{Method: "GET", Pattern: "/health/ready"},
		{Method: "GET", Pattern: "/metrics", Actions: []auth.Action{auth.UsageRead}}, // and an admin of the server
	}, s.o.Routes...)
}

// Public says whether a route needs no key.
func (s *Server) Public(route Route) bool {
	r, err := http.NewRequestWithContext(context.Background(), route.Method, "http://localhost"+route.Pattern, nil)
	return err == nil && s.public(r)
}

func (s *Server) welcome(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "cove %s\n\n%s", s.o.Version, whereThingsAre)
}

const whereThingsAre = `/api/v1        cove's own API; its documentation is at /api/v1/docs
/v1            OpenAI's API: a client's base URL ends here
/health        whether the server is alive; /health/ready: whether it can work
/metrics       for Prometheus

Send a key as Authorization: Bearer cove_... (cove key create makes one).
`

func (s *Server) alive(w http.ResponseWriter, _ *http.Request) { state(w, http.StatusOK, "ok") }

func (s *Server) isReady(w http.ResponseWriter, r *http.Request) {
	err := s.Ready(r.Context())
	switch {
	case err == nil:
		state(w, http.StatusOK, "ok")
	case problem.Of(err).Code == "draining":
		state(w, http.StatusServiceUnavailable, "draining")
	default:
		state(w, http.StatusServiceUnavailable, "unavailable") // why is in the log, not for everybody
	}
}

// Ready says whether the server can work. It may be asked as often as anybody likes.
func (s *Server) Ready(ctx context.Context) error {
	if s.draining.Load() {
		return stopping()
	}
	if s.o.Ready == nil {
		return nil
	}
	return s.ready.ask(ctx, s.o.Ready)
}

func state(w http.ResponseWriter, status int, word string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": word})
}

// readiness asks at most once a second: anybody may ask the server.
type readiness struct {
	mu    sync.Mutex
	asked time.Time
	err   error
}

func (c *readiness) ask(ctx context.Context, ready func(context.Context) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked.IsZero() || time.Since(c.asked) > time.Second {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		c.err = ready(ctx)
		c.asked = time.Now()
	}
	return c.err
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	who, _ := auth.From(r.Context())
	if err := who.Require(auth.UsageRead); err != nil || !who.Admin {
		refuse(w, r, problem.New(problem.Denied, "forbidden", "the metrics are for admins of the server").
			WithHint("or have them served on a listener of their own: the setting metrics_listen, or COVE_METRICS_LISTEN"))
		return
	}
	s.o.Telemetry.Metrics().ServeHTTP(w, r)
}

func or404(h http.Handler) http.Handler {
	if h == nil {
		return http.HandlerFunc(notFound)
	}
	return h
}

func onlyGet(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", "GET, HEAD")
	refuse(w, r, problem.New(problem.Invalid, "method_not_allowed", "this address can only be read").WithHint("it knows GET, HEAD"))
}

func notFound(w http.ResponseWriter, r *http.Request) {
	refuse(w, r, problem.New(problem.NotFound, "route_not_found", "there is nothing at this address").WithHint("GET / says where things are"))
}
