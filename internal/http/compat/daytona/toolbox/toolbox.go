// Package toolbox is what Daytona's clients say to a sandbox, as a translation onto the hub: code, commands, shells, terminals, files, Git, language servers and ports. It is all
// below {toolbox URL}/{sandbox id}/ there. Nothing of it runs in the sandbox but what a client asks to run: the host answers, and uses the session as a machine.
//
// What is started for a client is a process or a kernel of the session, which is found again by its label or name: a restart of the server loses nothing but what waited for its turn.
//
// Protocol facts are of Daytona's published clients (0.27 to 0.218) and of the specification that these are made from; files name what is not obvious here.
package toolbox

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Sandbox is what the toolbox has to know of one. The caller is in the context of the request, see auth.From.
type Sandbox struct {
	Session  hub.Session
	Language string            // "python", "typescript" or "javascript"
	Env      map[string]string // of the sandbox
	User     string            // "user"
	Home     string            // "/home/user"
	Work     string            // where relative paths begin: "/home/user"
}

// Interpreters run code.
type Interpreters interface {
	StartExecution(ctx context.Context, who auth.Principal, n hub.NewExecution) (hub.Execution, error)
	InterruptExecution(ctx context.Context, who auth.Principal, id string) (hub.Execution, error)
	Follow(ctx context.Context, who auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error)
	Kernels(ctx context.Context, who auth.Principal, session string) ([]hub.Kernel, error)
	StartKernel(ctx context.Context, who auth.Principal, session, name string) (hub.Kernel, error)
	StopKernel(ctx context.Context, who auth.Principal, session, name string) error
}

// Processes run beside the interpreters.
type Processes interface {
	CheckProgram(ctx context.Context, who auth.Principal, code string) error
	StartProcess(ctx context.Context, who auth.Principal, session string, start process.Start) (process.Info, error)
	Processes(ctx context.Context, who auth.Principal, session string) ([]process.Info, error)
	TellProcess(ctx context.Context, who auth.Principal, session, id string, r io.Reader, end bool) (int64, error)
	ResizeProcess(ctx context.Context, who auth.Principal, session, id string, size process.Size) error
	SignalProcess(ctx context.Context, who auth.Principal, session, id, signal string, all bool) error
	FollowProcess(ctx context.Context, who auth.Principal, session, id string, from int64) (iter.Seq2[process.Event, error], error)
}

// Machines have files and ports.
type Machines interface {
	Ports(ctx context.Context, who auth.Principal, session string) ([]process.Port, error)
	UseFiles(ctx context.Context, who auth.Principal, session string, u hub.FilesUse, use func(ctx context.Context, f guestlink.Files) error) error
}

// Hub is what the toolbox needs of the server. *hub.Hub has it.
type Hub interface {
	Interpreters
	Processes
	Machines
}

// Options say what the toolbox stands on.
type Options struct {
	Hub     Hub
	Log     *slog.Logger
	Version string // that GET /version tells
	// SetEnv gives a sandbox other variables than it has, for what is started from then on; nil: a sandbox keeps its variables.
	SetEnv func(ctx context.Context, s Sandbox, env map[string]string) error
	// Stopping is closed when the server begins to stop; nil: it never does.
	Stopping <-chan struct{}
}

// Toolbox answers requests for sandboxes.
type Toolbox struct {
	o        Options
	mux      *http.ServeMux
	shells   shells
	contexts contexts
	ptys     ptys
	servers  servers
	runs     runs

	mu      sync.Mutex
	places  map[string]int // connections of projects
	waiting map[string]int // bytes of projects' commands in sessions
}

// New returns a toolbox.
func New(o Options) *Toolbox {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Toolbox{o: o, mux: http.NewServeMux(), places: map[string]int{}, waiting: map[string]int{}}
	for _, r := range routes() {
		t.mux.HandleFunc(r.pattern, t.serve(r))
	}
	t.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, &fault{http.StatusNotFound, "", "cove does not have " + r.Method + " " + r.URL.Path + " of Daytona's toolbox; docs/daytona.md says what it has"})
	})
	return t
}

// Route is one operation. Pattern is what follows a sandbox's id, as http.ServeMux has it: "/process/session/{session}".
type Route struct {
	Method, Pattern string
	Needs           []auth.Action
	Large           bool // a request's body may be a file
}

// Routes are all operations.
func Routes() []Route {
	var out []Route
	for _, r := range routes() {
		method, pattern, _ := strings.Cut(r.pattern, " ")
		out = append(out, Route{Method: method, Pattern: pattern, Needs: r.needs, Large: r.large})
	}
	return out
}

// call is one request of an authenticated caller for a sandbox.
type call struct {
	*http.Request
	w   http.ResponseWriter
	who auth.Principal
	s   Sandbox
}

type sandboxKey struct{}

// Serve answers one request of an authenticated caller. path is what follows the sandbox's id, beginning with "/".
func (t *Toolbox) Serve(w http.ResponseWriter, r *http.Request, s Sandbox, path string) {
	inner := r.WithContext(context.WithValue(r.Context(), sandboxKey{}, s))
	inner.URL = &url.URL{Path: path, RawQuery: r.URL.RawQuery}
	t.mux.ServeHTTP(w, inner)
}

// serve is the handler of a route.
func (t *Toolbox) serve(one route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, ok := auth.From(r.Context())
		s, known := r.Context().Value(sandboxKey{}).(Sandbox)
		var err error
		if !ok || !known {
			err = problem.New(problem.Unauthenticated, "a key is needed").WithHint("set DAYTONA_API_KEY")
		}
		for _, action := range one.needs {
			if err == nil {
				err = who.Require(action)
			}
		}
		if err == nil {
			err = one.handle(t, &call{Request: r, w: w, who: who, s: s})
		}
		if err == nil || r.Context().Err() != nil {
			return // it was answered, or nobody is there to be told
		}
		if p, less := problem.Public(err); !isFault(err) && (p.Kind == problem.Internal || less) {
			t.o.Log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", strings.ToValidUTF8(r.URL.Path, "?"), "request", who.Request, "error", err)
		}
		refuse(w, r, err)
	}
}

// id is that of the session.
func (c *call) id() string { return c.s.Session.ID }

// lasting is the context of work that goes on when the client has left.
func (c *call) lasting() context.Context { return context.WithoutCancel(c.Context()) }

// mostBody bounds a JSON request, in bytes. Code and commands come so.
const mostBody = 32 << 20

// read reads a JSON request.
func (c *call) read(into any) error {
	text, err := io.ReadAll(bodybudget.Bounded(c.w, c.Body, mostBody))
	if err != nil {
		return &fault{http.StatusRequestEntityTooLarge, "INVALID_REQUEST_BODY", "the request is larger than 32 MiB, or did not come whole"}
	}
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return &fault{http.StatusBadRequest, "INVALID_REQUEST_BODY", "the request is not the JSON that Daytona's toolbox takes: " + bodybudget.WhyNotJSON(err)}
	}
	return nil
}

// absolute returns the path that a client means: relative ones are in the folder of work.
func (s Sandbox) absolute(p string) string {
	switch {
	case p == "":
		return s.Work
	case p == "~":
		return s.Home
	case strings.HasPrefix(p, "~/"):
		return path.Join(s.Home, p[2:])
	case strings.HasPrefix(p, "/"):
		return path.Clean(p)
	}
	return path.Join(s.Work, p)
}
