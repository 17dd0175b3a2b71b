package front

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// routes is the whole map of addresses. Which need no key is said by public, below.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()

	mux.HandleFunc("GET /{$}", s.welcome)
	mux.HandleFunc("GET /health", s.alive)         // the process answers
	mux.HandleFunc("GET /health/ready", s.isReady) // and can do its work
	mux.HandleFunc("GET /metrics", s.metrics)      // for admins of the server
	for _, r := range own() {
		mux.HandleFunc(r.Pattern, s.onlyGet)
	}

	mux.HandleFunc("/", s.surfaces) // what they are is said where the server is put together
	return s.foreign(s.plainly(s.byHost(mux)))
}

// own are the server's own routes.
func own() []protocol.Route {
	return []protocol.Route{
		{Method: "GET", Pattern: "/{$}"},
		{Method: "GET", Pattern: "/health", Access: protocol.Public},
		{Method: "GET", Pattern: "/health/ready", Access: protocol.Public},
		{Method: "GET", Pattern: "/metrics", Actions: []auth.Action{auth.UsageRead}}, // and an admin of the server
	}
}

// routeTable tells which of some routes a request is for, also where that is refused before its surface sees it.
type routeTable struct {
	mux    *http.ServeMux
	routes map[string]protocol.Route // by their pattern in mux
}

func tableOf(routes []protocol.Route) routeTable {
	t := routeTable{http.NewServeMux(), map[string]protocol.Route{}}
	for _, r := range routes {
		pattern := r.Method + " " + r.Pattern
		t.mux.Handle(pattern, http.NotFoundHandler())
		t.routes[pattern] = r
	}
	return t
}

func (t routeTable) find(r *http.Request) protocol.Route {
	_, pattern := t.mux.Handler(r)
	return t.routes[pattern]
}

// routeOf returns the route that a request is for; the zero value where it is for none, or is written so that a mux would send it elsewhere.
func (s *Server) routeOf(r *http.Request) protocol.Route {
	f := s.surfaceOf(r)
	if f != nil && f.Foreign {
		return protocol.Route{Pattern: f.Host + f.Prefix, Access: protocol.ByCode, Large: true}
	}
	if clean := path.Clean(r.URL.Path); r.URL.Path != clean && r.URL.Path != clean+"/" {
		return protocol.Route{}
	}
	if f == nil || f.Host == "" && !pageAt(f, r) {
		if own := s.own.find(r); own.Pattern != "" {
			return own
		}
	}
	if f == nil {
		return protocol.Route{}
	}
	return s.theirs[f].find(r)
}

// pageAt says whether a surface shows a browser a page where the server itself has something for other programs, which is at the root.
func pageAt(f *protocol.Surface, r *http.Request) bool {
	return f != nil && r.URL.Path == "/" && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// surfaceOf returns the surface that a request is for; nil where it is for none.
func (s *Server) surfaceOf(r *http.Request) *protocol.Surface {
	var best *protocol.Surface
	host := hostOf(r.Host)
	for i := range s.o.Surfaces {
		f := &s.o.Surfaces[i]
		if f.Serves(host, r) && (best == nil || closer(f, best)) {
			best = f
		}
	}
	return best
}

// closer says whether a surface is made for a request more than another one that serves it, too.
func closer(f, than *protocol.Surface) bool {
	if (f.Host == "") != (than.Host == "") {
		return f.Host != ""
	}
	if f.Foreign != than.Foreign {
		return f.Foreign
	}
	return len(f.Prefix) > len(than.Prefix)
}

// foreign sends a request for a surface that shows what is not the server's past everything that the server says of addresses.
func (s *Server) foreign(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := s.surfaceOf(r); f != nil && f.Foreign {
			r.Pattern = f.Host + f.Prefix
			f.Handler.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// byHost sends a request to a surface that names the host it is for: all addresses there are that one's, also those that the server has elsewhere.
func (s *Server) byHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := s.surfaceOf(r); f != nil && f.Host != "" {
			f.Handler.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) surfaces(w http.ResponseWriter, r *http.Request) {
	if f := s.surfaceOf(r); f != nil {
		f.Handler.ServeHTTP(w, r)
		return
	}
	s.notFound(w, r)
}

// plainly refuses addresses that the mux would send somewhere else: few programs follow that with a body, and those who do not would take an
// upload for done.
func (s *Server) plainly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := strings.TrimSuffix(r.URL.EscapedPath(), "/"); p != "" && path.Clean(p) != p {
			s.refuse(w, r, problem.New(problem.RouteNotFound, "there is nothing at this address").
				WithHint("write it without empty parts (//) and without . and .."))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// public says whether a request needs no key: health, and the documentation where the operator wants it so.
func (s *Server) public(r *http.Request) bool {
	switch noteOf(r).asked.Access {
	case protocol.Public, protocol.ByCode:
		return true
	case protocol.Documentation:
		return s.o.PublicDocs
	}
	return false
}

// Routes returns every route, for tests of who may do what: the server's own and those of the surfaces.
func (s *Server) Routes() []protocol.Route {
	out := own()
	for _, f := range s.o.Surfaces {
		out = append(out, f.Routes...)
	}
	return out
}

func (s *Server) welcome(w http.ResponseWriter, r *http.Request) {
	if f := s.surfaceOf(r); pageAt(f, r) {
		f.Handler.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "cove %s\n\n%s", s.o.Version, s.whereThingsAre())
}

// whereThingsAre is the server's first page.
func (s *Server) whereThingsAre() string {
	var places [][2]string
	for _, f := range s.o.Surfaces {
		places = append(places, [2]string{cmpOr(f.Host+strings.TrimSuffix(f.Prefix, "/"), "/"), f.About})
	}
	places = append(places, [2]string{"/health", "whether the server is alive; /health/ready: whether it can work"}, [2]string{"/metrics", "for Prometheus"})
	longest := 0
	for _, p := range places {
		longest = max(longest, len(p[0]))
	}
	var out strings.Builder
	for _, p := range places {
		fmt.Fprintf(&out, "%-*s  %s\n", longest, p[0], p[1])
	}
	return out.String() + "\nSend a key as Authorization: Bearer cove_... (cove key create makes one).\n"
}

func (s *Server) alive(w http.ResponseWriter, _ *http.Request) { state(w, http.StatusOK, "ok") }

func (s *Server) isReady(w http.ResponseWriter, r *http.Request) {
	err := s.Ready(r.Context())
	switch {
	case err == nil:
		state(w, http.StatusOK, "ok")
	case problem.Has(err, problem.Draining):
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
		s.refuse(w, r, problem.New(problem.Forbidden, "the metrics are for admins of the server").
			WithHint("or have them served on a listener of their own: the setting serve.metrics_listen, or COVE_METRICS_LISTEN"))
		return
	}
	s.o.Telemetry.Metrics().ServeHTTP(w, r)
}

func (s *Server) onlyGet(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", "GET, HEAD")
	s.refuse(w, r, problem.New(problem.MethodNotAllowed, "this address can only be read").WithHint("it knows GET, HEAD"))
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, r, problem.New(problem.RouteNotFound, "there is nothing at this address").WithHint("GET / says where things are"))
}
