// Package librechat is the HTTP interface of LibreChat's code interpreter, /librechat, as a translation onto the hub. LibreChat needs another base URL and a key.
//
// A conversation of LibreChat's (runtime_session_hint) is a session: Python goes on with the variables of the last execution. Other languages are programs of their own in the same session.
// An execution without a hint goes on in the session that session_id names, or has a new one. What users upload is kept as stored files, and is put into a session when an execution names it.
//
// The client takes ids of 21 characters alone, see ids.go.
package librechat

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/protocol"
	"cove/internal/machine/process"
	"cove/internal/machine/workspace"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Sessions are where code runs.
type Sessions interface {
	CreateSession(ctx context.Context, who auth.Principal, n hub.NewSession) (hub.Session, error)
	Session(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
	Sessions(ctx context.Context, who auth.Principal, f hub.SessionFilter, p hub.Page) (hub.Listing[hub.Session], error)
	Tree(ctx context.Context, who auth.Principal, session string, write bool, use func(context.Context, hub.Tree) error) error
	PutFile(ctx context.Context, who auth.Principal, session, file, path string) (workspace.Entry, error)
}

// Code is what runs in a session's kernel.
type Code interface {
	StartExecution(ctx context.Context, who auth.Principal, n hub.NewExecution) (hub.Execution, error)
	InterruptExecution(ctx context.Context, who auth.Principal, id string) (hub.Execution, error)
	Follow(ctx context.Context, who auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error)
}

// Programs are what runs beside a session's kernel.
type Programs interface {
	CheckProgram(ctx context.Context, who auth.Principal, code string) error
	StartProcess(ctx context.Context, who auth.Principal, session string, start process.Start) (process.Info, error)
	FollowProcess(ctx context.Context, who auth.Principal, session, id string, from int64) (iter.Seq2[process.Event, error], error)
	TellProcess(ctx context.Context, who auth.Principal, session, id string, r io.Reader, end bool) (n int64, err error)
	SignalProcess(ctx context.Context, who auth.Principal, session, id, signal string, all bool) error
}

// Files are stored files.
type Files interface {
	AddFile(ctx context.Context, who auth.Principal, n hub.NewFile, r io.Reader) (hub.File, error)
	File(ctx context.Context, who auth.Principal, id string) (hub.File, error)
	Files(ctx context.Context, who auth.Principal, purpose string, p hub.Page) (hub.Listing[hub.File], error)
	OpenFile(ctx context.Context, who auth.Principal, id string) (hub.File, io.ReadSeekCloser, error)
	DeleteFile(ctx context.Context, who auth.Principal, id string) error
}

// Hub is what this surface needs of the server. *hub.Hub has it.
type Hub interface {
	Sessions
	Code
	Programs
	Files
}

// Options say what the surface stands on. Zero fields but Hub take their defaults.
type Options struct {
	Hub       Hub
	Log       *slog.Logger
	MaxBody   int64         // bytes of a JSON request; 8 MiB
	MaxFiles  int64         // bytes of a request with files; 513 MiB
	MaxOutput int64         // bytes of output that an answer has; 1 MiB
	Timeout   time.Duration // wall clock of an execution; 5 minutes
}

func (o Options) orDefault() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.MaxBody = cmp.Or(o.MaxBody, 8<<20)
	o.MaxFiles = cmp.Or(o.MaxFiles, 513<<20)
	o.MaxOutput = cmp.Or(o.MaxOutput, 1<<20)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Minute)
	return o
}

type server struct {
	Options
	finding [16]chan struct{} // full while the session of a conversation is looked for, so that there is one
	runs    runs
}

// route is one operation.
type route struct {
	pattern string // of http.ServeMux
	needs   []auth.Action
	handle  func(*server, *call) error
	large   bool
}

func routes() []route {
	runs := []auth.Action{auth.SessionsRead, auth.SessionsWrite, auth.SessionsExecute, auth.FilesRead, auth.FilesWrite}
	reads := []auth.Action{auth.SessionsRead, auth.FilesRead}
	return []route{
		{"POST /librechat/exec", runs, (*server).exec, false},
		{"POST /librechat/exec/programmatic", runs, (*server).execProgrammatic, false},
		{"POST /librechat/upload", []auth.Action{auth.FilesWrite}, (*server).upload, true},
		{"POST /librechat/upload/batch", []auth.Action{auth.FilesWrite}, (*server).upload, true},
		{"GET /librechat/files/{storage}", reads, (*server).list, false},
		{"GET /librechat/sessions/{storage}/objects/{object}", reads, (*server).look, false},
		{"GET /librechat/download/{storage}/{object}", reads, (*server).download, false},
		{"DELETE /librechat/files/{storage}/{object}", []auth.Action{auth.SessionsRead, auth.FilesWrite}, (*server).remove, false},
	}
}

// call is one request of an authenticated caller.
type call struct {
	*http.Request
	w   http.ResponseWriter
	who auth.Principal
}

// New returns the handler of everything below /librechat. The caller must be in the request's context, as auth.With puts it there.
func New(o Options) http.Handler {
	s := &server{Options: o.orDefault()}
	for i := range s.finding {
		s.finding[i] = make(chan struct{}, 1)
	}
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.HandleFunc(r.pattern, s.serve(r))
	}
	mux.HandleFunc("GET /librechat/health", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		Refuse(w, problem.New(problem.RouteNotFound, "there is nothing at this address"))
	})
	return mux
}

func (s *server) serve(route route) http.HandlerFunc {
	return protocol.Guard(route.needs, "give LibreChat a key of this server", s.Log, func(w http.ResponseWriter, r *http.Request, who auth.Principal) error {
		return route.handle(s, &call{Request: r, w: w, who: who})
	}, Refuse)
}

func write(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":"fault"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func (c *call) reply(v any) error {
	write(c.w, http.StatusOK, v)
	return nil
}
