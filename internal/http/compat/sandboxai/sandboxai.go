// Package sandboxai is the HTTP interface of SandboxAI's server, /v1/spaces, as a translation onto the hub: a sandbox of SandboxAI is a session, its IPython shell the session's
// kernel. Routes and shapes are those of sandboxai-client 0.0.2.
//
// The client knows no keys. It takes one in its base URL, as the password of basic authentication: http://cove:KEY@HOST/v1.
package sandboxai

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
	"cove/internal/http/protocol"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Sessions are what sandboxes are.
type Sessions interface {
	CreateSession(ctx context.Context, who auth.Principal, n hub.NewSession) (hub.Session, error)
	DeleteSession(ctx context.Context, who auth.Principal, id string) error
	Sessions(ctx context.Context, who auth.Principal, f hub.SessionFilter, p hub.Page) (hub.Listing[hub.Session], error)
	WidestNetwork(ctx context.Context, who auth.Principal) (*hub.Network, error)
}

// Code is what runs in a session.
type Code interface {
	StartExecution(ctx context.Context, who auth.Principal, n hub.NewExecution) (hub.Execution, error)
	InterruptExecution(ctx context.Context, who auth.Principal, id string) (hub.Execution, error)
	Follow(ctx context.Context, who auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error)
	CheckProgram(ctx context.Context, who auth.Principal, code string) error
	StartProcess(ctx context.Context, who auth.Principal, session string, start process.Start) (process.Info, error)
	FollowProcess(ctx context.Context, who auth.Principal, session, id string, from int64) (iter.Seq2[process.Event, error], error)
	SignalProcess(ctx context.Context, who auth.Principal, session, id, signal string, all bool) error
}

// Hub is what this surface needs of the server. *hub.Hub has it.
type Hub interface {
	Sessions
	Code
}

// Options say what the surface stands on. Zero fields but Hub take their defaults.
type Options struct {
	Hub       Hub
	Log       *slog.Logger
	MaxBody   int64         // bytes of a request; 8 MiB
	MaxOutput int64         // bytes of output that an answer has; 1 MiB
	Timeout   time.Duration // wall clock of a cell or a command; 5 minutes
}

func (o Options) orDefault() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.MaxBody = cmp.Or(o.MaxBody, 8<<20)
	o.MaxOutput = cmp.Or(o.MaxOutput, 1<<20)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Minute)
	return o
}

type server struct {
	Options
	making [64]chan struct{} // full while a sandbox is made
}

// route is one operation.
type route struct {
	method, path string
	needs        []auth.Action
	handle       func(*server, *call) error
}

const (
	prefix  = "/v1/spaces/"
	keyHint = "put a key of this server into the base URL: http://cove:KEY@HOST/v1"
)

func routes() []route {
	const all, one = prefix + "{space}/sandboxes", prefix + "{space}/sandboxes/{name}"
	reads, writes := []auth.Action{auth.SessionsRead}, []auth.Action{auth.SessionsRead, auth.SessionsWrite}
	runs := []auth.Action{auth.SessionsRead, auth.SessionsExecute}
	return []route{
		{"POST", all, writes, (*server).create},
		{"GET", one, reads, (*server).get},
		{"DELETE", one, writes, (*server).remove},
		{"POST", one + "/tools:run_ipython_cell", runs, (*server).runCell},
		{"POST", one + "/tools:run_shell_command", runs, (*server).runCommand},
	}
}

// call is one request of an authenticated caller.
type call struct {
	*http.Request
	w   http.ResponseWriter
	who auth.Principal
}

// Surfaces returns the interface as the server's front door takes it: sandboxes, and the address at which clients wait for the server.
func Surfaces(o Options) []protocol.Surface {
	s := &server{Options: o.orDefault()}
	for i := range s.making {
		s.making[i] = make(chan struct{}, 1)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, problem.New(problem.RouteNotFound, "there is nothing at this address"))
	})
	var all []protocol.Route
	for _, r := range routes() {
		mux.HandleFunc(r.method+" "+r.path, s.serve(r))
		all = append(all, protocol.Route{Method: r.method, Pattern: r.path, Actions: r.needs})
	}
	refusal := func(w http.ResponseWriter, _ *http.Request, p *problem.Error) { refuse(w, p) }
	health := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, struct{}{}) })
	return []protocol.Surface{
		{About: "SandboxAI's server: a client's base URL ends with /v1", Prefix: prefix, Handler: mux, Routes: all, Refuse: refusal, Keys: keys},
		{
			About: "SandboxAI's health check", Prefix: "/v1/healthz", Only: func(r *http.Request) bool { return r.URL.Path == "/v1/healthz" }, Handler: health, Refuse: refusal,
			Routes: []protocol.Route{{Method: "GET", Pattern: "/v1/healthz", Access: protocol.Public}},
		},
	}
}

// keys returns the key that a client has in its base URL: the password there, or the name where there is no password.
func keys(r *http.Request) []string {
	name, password, ok := r.BasicAuth()
	if key := cmp.Or(password, name); ok && key != "" {
		return []string{key}
	}
	return nil
}

func (s *server) serve(route route) http.HandlerFunc {
	return protocol.Guard(route.needs, keyHint, s.Log, func(w http.ResponseWriter, r *http.Request, who auth.Principal) error {
		return route.handle(s, &call{Request: r, w: w, who: who})
	}, refuse)
}

// refuse answers with a problem. Clients show the whole body.
func refuse(w http.ResponseWriter, err error) {
	p, _ := problem.Public(err)
	message, hint := p.Message, p.Hint
	if problem.Has(p, problem.Unauthenticated) { // which may be the front door's problem, and its hint is a header, which the client cannot send
		hint = keyHint
	}
	if hint != "" {
		message += "; " + hint
	}
	write(w, httpstatus.Of(p), map[string]string{"message": message})
}

func write(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"message":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
