// Package dify is the HTTP interface of Dify's sandbox, /v1/sandbox, as a translation onto the hub: what Dify's code nodes and templates run, runs here. Dify needs two other
// variables and nothing else.
//
// Each run is a program of its own, started in a session that is made for it and deleted afterwards: nothing is left of one for the next. Dify wraps its users' code in a template
// that prints the result between two markers, so what the program prints is handed back as it is.
//
// The client takes a text from an answer in two cases alone: status 200 with a "code" other than 0, and status 200 with an "error" that is not empty. It shows its own words for all
// other statuses. So what the user of Dify can do something about has the status 200.
package dify

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/protocol"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Sessions are where programs run.
type Sessions interface {
	CreateSession(ctx context.Context, who auth.Principal, n hub.NewSession) (hub.Session, error)
	DeleteSession(ctx context.Context, who auth.Principal, id string) error
	Tree(ctx context.Context, who auth.Principal, session string, write bool, use func(context.Context, hub.Tree) error) error
	Packages(ctx context.Context, who auth.Principal, session string) (python string, packages map[string]string, err error)
	WidestNetwork(ctx context.Context, who auth.Principal) (*hub.Network, error)
}

// Programs are what is run.
type Programs interface {
	CheckProgram(ctx context.Context, who auth.Principal, code string) error
	StartProcess(ctx context.Context, who auth.Principal, session string, start process.Start) (process.Info, error)
	FollowProcess(ctx context.Context, who auth.Principal, session, id string, from int64) (iter.Seq2[process.Event, error], error)
}

// Hub is what this surface needs of the server. *hub.Hub has it.
type Hub interface {
	Sessions
	Programs
}

// Options say what the surface stands on. Zero fields but Hub take their defaults.
type Options struct {
	Hub       Hub
	Log       *slog.Logger
	MaxBody   int64         // bytes of a request; 8 MiB
	MaxOutput int64         // bytes that a program may print, on both streams together; 4 MiB
	Timeout   time.Duration // wall clock of a program; 45 seconds, as Dify waits for a minute
	AtOnce    int           // programs that run at the same time; 8
	Patience  time.Duration // how long a request waits for its turn; 10 seconds
	Startup   time.Duration // how long a program may take to be started; 30 seconds
}

func (o Options) orDefault() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.MaxBody = above(o.MaxBody, 8<<20)
	o.MaxOutput = above(o.MaxOutput, 4<<20)
	o.Timeout = above(o.Timeout, 45*time.Second)
	o.AtOnce = above(o.AtOnce, 8)
	o.Patience = above(o.Patience, 10*time.Second)
	o.Startup = above(o.Startup, 30*time.Second)
	return o
}

// above returns n, or the default where n is not above 0.
func above[T int | int64 | time.Duration](n, standard T) T { return cmp.Or(max(n, 0), standard) }

type server struct {
	Options
	places *places
}

// route is one operation.
type route struct {
	pattern string // of http.ServeMux
	needs   []auth.Action
	handle  func(*server, *call) error
}

func routes() []route {
	runs := []auth.Action{auth.SessionsWrite, auth.SessionsRead, auth.SessionsExecute, auth.FilesWrite}
	lists := []auth.Action{auth.SessionsWrite, auth.SessionsRead}
	return []route{
		{"POST /v1/sandbox/run", runs, (*server).run},
		{"GET /v1/sandbox/dependencies", lists, (*server).listDependencies},
		{"GET /v1/sandbox/dependencies/refresh", lists, (*server).listDependencies},
		{"POST /v1/sandbox/dependencies/update", lists, (*server).updateDependencies},
	}
}

// call is one request of an authenticated caller.
type call struct {
	*http.Request
	w   http.ResponseWriter
	who auth.Principal
}

// New returns the handler of everything below /v1/sandbox. The caller must be in the request's context, as auth.With puts it there.
func New(o Options) http.Handler {
	s := &server{Options: o.orDefault()}
	s.places = newPlaces(s.AtOnce)
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.HandleFunc(r.pattern, s.serve(r))
		method, path, _ := strings.Cut(r.pattern, " ")
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", method)
			Refuse(w, problem.New(problem.MethodNotAllowed, r.Method+" is not for this address").WithHint("use "+method))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		Refuse(w, problem.New(problem.RouteNotFound, "there is nothing at "+strconv.Quote(r.URL.Path)))
	})
	return mux
}

func (s *server) serve(route route) http.HandlerFunc {
	return protocol.Guard(route.needs, "give Dify a key of this server, as the key of its code execution", s.Log, func(w http.ResponseWriter, r *http.Request, who auth.Principal) error {
		return route.handle(s, &call{Request: r, w: w, who: who})
	}, Refuse)
}

// answer is the form of every answer.
type answer struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

// reply answers with data. The client has all of the answer when it returns, whatever the handler does then.
func (c *call) reply(data any) error {
	text, err := json.Marshal(answer{Message: "success", Data: data})
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	c.w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = c.w.Write(text)
	_ = http.NewResponseController(c.w).Flush()
	return nil
}
