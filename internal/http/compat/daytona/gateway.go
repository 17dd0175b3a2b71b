package daytona

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/compat/daytona/toolbox"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// Ways to bring the token of a sandbox, which clients call a preview token. Browsers cannot send headers when they open a WebSocket.
const (
	tokenHeader    = "X-Daytona-Preview-Token"
	tokenParameter = "DAYTONA_SANDBOX_AUTH_KEY"
	quietHeader    = "X-Daytona-Skip-Last-Activity-Update"
)

// Why the requests of a sandbox end.
var (
	errDeleted = errors.New("the sandbox was deleted")
	errStopped = errors.New("the sandbox was stopped")
)

// byToken says whether a request for a toolbox brings something else than a key.
func byToken(r *http.Request) bool {
	q := r.URL.Query()
	return r.Header.Get("Authorization") == "" && r.Header.Get("X-Api-Key") == "" && (r.Header.Get(tokenHeader) != "" || q.Get(tokenParameter) != "" || q.Get("signature") != "")
}

// withKey serves the toolbox of a sandbox of the caller's.
func (s *Server) withKey(w http.ResponseWriter, r *http.Request, who auth.Principal) error {
	b, err := s.find(r.Context(), who, r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.toToolbox(w, r, b)
}

// toToolbox has the toolbox answer a request for a sandbox that runs. One that is saved on the disk is loaded.
func (s *Server) toToolbox(w http.ResponseWriter, r *http.Request, b sandbox) error {
	ctx, leave, err := s.enter(r, b)
	if err != nil {
		return err
	}
	defer leave()
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, toolboxPath+"/"), "/")
	if rest, old := strings.CutPrefix(path, "toolbox/"); old {
		path = rest
	}
	s.Toolbox.Serve(w, r.WithContext(ctx), toolbox.Sandbox{
		Session: b.session, Language: b.record.language(), Env: b.record.Env, User: sandboxUser, Home: sandboxHome, Work: cmp.Or(b.record.Dir, sandboxHome),
	}, "/"+path)
	return nil
}

// The user of a sandbox.
const (
	sandboxUser = "user"
	sandboxHome = "/home/user"
)

// enter notes that a request uses a sandbox, unless that does not run.
func (s *Server) enter(r *http.Request, b sandbox) (ctx context.Context, leave func(), err error) {
	l := s.lifeOf(b)
	if l.state != started {
		return nil, nil, invalid("the sandbox is " + l.state + ". Is the Sandbox started? Start it first")
	}
	s.clocks.Know(b.id, l.next(time.Now()))
	quiet := strings.EqualFold(r.Header.Get(quietHeader), "true")
	ctx, over := s.clocks.Enter(r.Context(), b.id, quiet)
	if !quiet && time.Since(b.record.Seen) > seenEvery {
		s.noteSeen(b)
	}
	return ctx, over, nil
}

// gateway serves the toolbox of a sandbox to who brings its token, or an address that is signed.
func (s *Server) gateway(w http.ResponseWriter, r *http.Request) {
	if protocol.Preflight(w, r) {
		return
	}
	id, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, toolboxPath+"/"), "/")
	path = strings.TrimPrefix(path, "toolbox/")
	b, err := s.letIn(r, id, "/"+path)
	if err != nil {
		refuse(w, r, err)
		return
	}
	leave, err := auth.VisitOf(r.Context()).Enter(r.Context(), b.who)
	if err != nil {
		refuse(w, r, err)
		return
	}
	defer leave()
	s.machine(b).ServeHTTP(w, r.WithContext(auth.With(r.Context(), b.who)))
}

// machine serves the operations of one sandbox's toolbox.
func (s *Server) machine(b sandbox) http.Handler {
	mux := http.NewServeMux()
	for _, route := range toolbox.Routes() {
		for _, base := range []string{sandboxToolbox, oldToolbox} {
			mux.HandleFunc(route.Method+" "+base+route.Pattern, s.guard(route.Needs, func(w http.ResponseWriter, r *http.Request, _ auth.Principal) error {
				return s.toToolbox(w, r, b)
			}))
		}
	}
	mux.HandleFunc("/", s.nothing)
	return mux
}

// SetEnv gives a sandbox other variables, which the toolbox does for its clients.
func (s *Server) SetEnv(ctx context.Context, b toolbox.Sandbox, env map[string]string) error {
	who, ok := auth.From(ctx)
	if !ok {
		return problem.New(problem.Unauthenticated, "a key is needed")
	}
	_, err := s.change(ctx, who, b.Session.ID, func(r *record) error {
		r.Env, r.Changed = env, time.Now().UTC()
		return nil
	})
	return err
}

// letIn returns a sandbox whose token a request brings, or whose key has signed its address.
func (s *Server) letIn(r *http.Request, id, path string) (b sandbox, err error) {
	wrong := problem.New(problem.Unauthenticated, "the token of the sandbox is missing or wrong, or the signature is").WithHint("ask for the sandbox with your key: get_preview_link(port).token")
	err = auth.VisitOf(r.Context()).Look(r.Context(), func(context.Context) error {
		if b, err = s.byLink(r, id); err != nil {
			return wrong
		}
		given := r.Header.Get(tokenHeader)
		if given == "" {
			given = r.URL.Query().Get(tokenParameter)
		}
		if given != "" && equal(given, s.token(b.id)) || toolbox.IsSigned(r, path) && toolbox.Signed(r, s.keyOf(b), time.Now()) == nil {
			return nil
		}
		return wrong
	})
	return b, err
}

// byLink returns a sandbox as its own link has it: the caller is who made it, limited to what the link allows.
func (s *Server) byLink(r *http.Request, id string) (sandbox, error) {
	session, ok := sessionOf(id)
	if !ok {
		return sandbox{}, absent(id)
	}
	_, who, err := s.Hub.LinkOf(r.Context(), s.token(session))
	if err != nil {
		return sandbox{}, err
	}
	visitor := auth.VisitOf(r.Context()).Visitor()
	who.Request, who.IP, who.Agent = visitor.Request, visitor.IP, visitor.Agent
	return s.find(r.Context(), who, ident.Body(session))
}

// keyOf is the key with which clients sign addresses of files of a sandbox.
func (s *Server) keyOf(b sandbox) string {
	return auth.DerivedCode(s.Secret, "daytona signing "+b.id+" "+strconv.Itoa(b.record.Rotated))
}
