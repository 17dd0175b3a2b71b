// Package jupyter is the interface of a Jupyter Server, /jupyter, as a translation onto the hub: kernels, kernel specifications, sessions, files, terminals, and the WebSockets that
// carry a kernel's channels and a terminal. Programs that run code on a Jupyter server, or that take one as their gateway, need another base URL and a key as the token, and nothing else.
//
// A kernel that is asked for by itself is a session of the hub with its main kernel. Files, terminals and the kernels of documents are in a session that each user has one of, its personal session. Ids
// are UUIDs: what they name is found again by whichever process serves it, also after a restart. A session in Jupyter's sense, the pair of a notebook's path and a kernel, is metadata of the
// hub's session. Idle sessions are paused and go on with their variables at the next request.
//
// The protocol is that of jupyter_client 5.3 and of jupyter_server 2: https://jupyter-client.readthedocs.io/en/stable/messaging.html and
// https://jupyter-server.readthedocs.io/en/latest/developers/websocket-protocols.html.
package jupyter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Prefix begins all addresses of the interface.
const Prefix = "/jupyter"

// Sessions are what kernels are made of.
type Sessions interface {
	CreateSession(ctx context.Context, who auth.Principal, n hub.NewSession) (hub.Session, error)
	Session(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
	Sessions(ctx context.Context, who auth.Principal, f hub.SessionFilter, p hub.Page) (hub.Listing[hub.Session], error)
	ChangeSession(ctx context.Context, who auth.Principal, id string, c hub.SessionChange) (hub.Session, error)
	DeleteSession(ctx context.Context, who auth.Principal, id string) error
}

// Kernels are the further interpreters of a personal session.
type Kernels interface {
	StartKernel(ctx context.Context, who auth.Principal, session, name string) (hub.Kernel, error)
	RestartKernel(ctx context.Context, who auth.Principal, session, name string) (hub.Kernel, error)
	StopKernel(ctx context.Context, who auth.Principal, session, name string) error
}

// Files are those of personal sessions.
type Files interface {
	UseFiles(ctx context.Context, who auth.Principal, session string, u hub.FilesUse, use func(ctx context.Context, f guestlink.Files) error) error
}

// Processes are what terminals are.
type Processes interface {
	StartProcess(ctx context.Context, who auth.Principal, session string, start process.Start) (process.Info, error)
	Processes(ctx context.Context, who auth.Principal, session string) ([]process.Info, error)
	TellProcess(ctx context.Context, who auth.Principal, session, id string, r io.Reader, end bool) (int64, error)
	ResizeProcess(ctx context.Context, who auth.Principal, session, id string, size process.Size) error
	SignalProcess(ctx context.Context, who auth.Principal, session, id, signal string, all bool) error
	FollowProcess(ctx context.Context, who auth.Principal, session, id string, from int64) (iter.Seq2[process.Event, error], error)
	CheckProgram(ctx context.Context, who auth.Principal, code string) error
}

// Executions are what the code that clients send becomes.
type Executions interface {
	StartExecution(ctx context.Context, who auth.Principal, n hub.NewExecution) (hub.Execution, error)
	Follow(ctx context.Context, who auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error)
	Executions(ctx context.Context, who auth.Principal, f hub.ExecutionFilter, p hub.Page) (hub.Listing[hub.Execution], error)
	InterruptExecution(ctx context.Context, who auth.Principal, id string) (hub.Execution, error)
}

// Editing is what a kernel says of code that is being written.
type Editing interface {
	Complete(ctx context.Context, who auth.Principal, session, kernel, code string, cursor int) (matches []string, start, end int, err error)
	IsComplete(ctx context.Context, who auth.Principal, session, kernel, code string) (string, error)
	Describe(ctx context.Context, who auth.Principal, session, kernel, code string, cursor int) (string, error)
}

// Hub is what this surface needs of the server. *hub.Hub has it.
type Hub interface {
	Sessions
	Kernels
	Executions
	Editing
	Files
	Processes
}

// Accounts know whom a key stands for. *auth.Accounts does.
type Accounts interface {
	Authenticate(ctx context.Context, text string) (auth.Principal, error)
}

// Options say what the surface stands on. Only Hub and Accounts must be set.
type Options struct {
	Hub      Hub
	Accounts Accounts
	Log      *slog.Logger
	Version  string        // of cove
	Python   func() string // the interpreter's version
	Secret   []byte        // what browsers keep for the server is sealed with it; nil: one that ends with the process
	Now      func() time.Time
	// Stopping is closed when the server takes nothing new: connections on which nothing runs are ended then. nil: never.
	Stopping <-chan struct{}
}

type server struct {
	Options
	seal        seal
	began       time.Time
	frames      *semaphore.Weighted // bytes of large binary frames that are being read
	making      turns               // while a personal session, or what it says of its kernels, is changed, by its user
	mu          sync.Mutex
	kernels     map[string]*shared // that have clients or work, by their ids
	connections map[string]int     // by project
}

// call is one request of an authenticated caller.
type call struct {
	*http.Request
	w   http.ResponseWriter
	who auth.Principal
}

func newServer(o Options) *server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Python == nil {
		o.Python = func() string { return "3" }
	}
	return &server{Options: o, seal: newSeal(o.Secret), began: o.Now(), frames: semaphore.NewWeighted(framesRoom), kernels: map[string]*shared{}, connections: map[string]int{}}
}

// handler answers everything below /jupyter.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, r := range routes() {
		mux.HandleFunc(r.method+" "+r.pattern, s.serve(r))
		methods[r.pattern] = append(methods[r.pattern], r.method)
	}
	for pattern, known := range methods {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(known, ", "))
			Refuse(w, problem.New(problem.MethodNotAllowed, r.Method+" is not supported at this address"))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		Refuse(w, problem.New(problem.RouteNotFound, "there is nothing at this address").WithHint("this server has kernels, files and terminals; the pages of JupyterLab are those of a Jupyter server of yours, with this one as its gateway"))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// What is answered here is for programs: a browser must not take it for a page.
		w.Header().Set("Content-Security-Policy", "frame-ancestors 'self'; report-uri "+Prefix+"/api/security/csp-report; default-src 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		mux.ServeHTTP(w, r)
	})
}

func (s *server) serve(route route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, known := auth.From(r.Context())
		var err error
		if !known && !route.public {
			err = problem.New(problem.Unauthenticated, "a key is needed")
		}
		for _, action := range route.needs {
			if err == nil {
				err = who.Require(action)
			}
		}
		if err == nil {
			err = route.handle(s, &call{Request: r, w: w, who: who})
		}
		if err == nil || r.Context().Err() != nil {
			return
		}
		if p := problem.Of(err); p.Kind == problem.Internal {
			s.Log.ErrorContext(r.Context(), "request failed", "method", r.Method, "route", route.pattern, "request", who.Request, "error", err)
		}
		Refuse(w, err)
	}
}

// reply writes a JSON answer.
func (c *call) reply(status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(append(text, '\n'))
	return nil
}

// read decodes the body into v. An empty body says nothing, which some clients send.
func (c *call) read(v any) error {
	text, err := c.body(longestBody)
	if err != nil {
		return err
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		return nil
	}
	if json.Unmarshal(text, v) != nil {
		return problem.New(problem.InvalidRequest, "the body is not the JSON object that was expected")
	}
	return nil
}

// body returns a body of JSON that has so many bytes at most.
func (c *call) body(most int64) ([]byte, error) {
	text, err := bodybudget.Read(c.Context(), bodybudget.Bounded(c.w, c.Body, most))
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return nil, problem.New(problem.BodyTooLarge, fmt.Sprintf("the body has more than %d MiB", most>>20)).WithHint("send a large file in chunks")
	}
	if err != nil {
		return nil, problem.Of(err)
	}
	return text, nil
}

// longestBody bounds a request's body, in bytes.
const longestBody = 1 << 20
