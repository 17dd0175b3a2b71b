// Package anthropic is Anthropic's HTTP interface as a translation onto the hub: messages with the code execution tool, files, models, and the count
// of tokens. Clients that were written for Anthropic need another base URL, which ends with /anthropic, and nothing else.
//
// A message is a turn that is not kept: the client keeps the conversation. A container is a session, and a file is a stored file; each shows the same
// id under Anthropic's prefix. Without the code execution tool a request is passed on to the model.
//
// Facts about the protocol are those of https://platform.claude.com/docs/en/api/messages and of the vendor's client libraries.
package anthropic

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"cove/internal/http/protocol"
	"cove/internal/llm/model"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/machine/workspace"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Prefix begins every path of this surface, without a slash at its end: a client's base URL ends with it.
const Prefix = "/anthropic"

// Turns are what messages with the code execution tool are made of.
type Turns interface {
	StartTurn(ctx context.Context, who auth.Principal, n hub.NewTurn) (hub.Turn, error)
	Turn(ctx context.Context, who auth.Principal, id string) (hub.Turn, error)
	CancelTurn(ctx context.Context, who auth.Principal, id string) (hub.Turn, error)
	FollowTurn(ctx context.Context, who auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error)
}

// Sessions are what containers are made of.
type Sessions interface {
	Session(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
	Tree(ctx context.Context, who auth.Principal, session string, write bool, use func(context.Context, hub.Tree) error) error
}

// Machine is what commands and files of code_execution_20250825 are made of.
type Machine interface {
	CreateSession(ctx context.Context, who auth.Principal, n hub.NewSession) (hub.Session, error)
	PutFile(ctx context.Context, who auth.Principal, session, file, path string) (workspace.Entry, error)
	UseFiles(ctx context.Context, who auth.Principal, session string, u hub.FilesUse, use func(ctx context.Context, f guestlink.Files) error) error
	CheckProgram(ctx context.Context, who auth.Principal, code string) error
	StartProcess(ctx context.Context, who auth.Principal, session string, start process.Start) (process.Info, error)
	FollowProcess(ctx context.Context, who auth.Principal, session, id string, from int64) (iter.Seq2[process.Event, error], error)
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

// Models are what can be asked.
type Models interface {
	Models(ctx context.Context, who auth.Principal) ([]hub.ModelInfo, error)
	OpenModel(ctx context.Context, who auth.Principal, name string) (model.Model, error)
}

// Hub is what this surface needs of the server. *hub.Hub has it.
type Hub interface {
	Turns
	Sessions
	Machine
	Files
	Models
}

// Options say what the surface stands on. Zero fields but Hub take their defaults.
type Options struct {
	Hub       Hub
	Log       *slog.Logger
	MaxBody   int64         // bytes of a JSON request; 64 MiB
	MaxFile   int64         // bytes of an uploaded file; 512 MiB
	Heartbeat time.Duration // between pings on a silent stream; 10 seconds
	Settle    time.Duration // how long a stream waits for its first event before it begins; 1 second
	Spool     string        // folder for uploads in transit; the system's
	Timeout   time.Duration // of a command; 5 minutes
	Steps     int           // calls of commands and files in a message; 20
	Time      time.Duration // after which such a message pauses; 10 minutes
	Tokens    int64         // as Time; 0: any number
	Now       func() time.Time
}

type server struct{ Options }

// call is one request of an authenticated caller.
type call struct {
	*http.Request
	w   http.ResponseWriter
	who auth.Principal
}

// route is one operation.
type route struct {
	pattern string // of http.ServeMux, without Prefix
	needs   []auth.Action
	handle  func(*server, *call) error
}

func routes() []route {
	asks := []auth.Action{auth.ModelsRead, auth.ConversationsWrite}
	return []route{
		{"POST /v1/messages", asks, (*server).messages},
		{"POST /v1/messages/count_tokens", []auth.Action{auth.ModelsRead}, (*server).countTokens},
		{"GET /v1/models", []auth.Action{auth.ModelsRead}, (*server).listModels},
		{"GET /v1/models/{id...}", []auth.Action{auth.ModelsRead}, (*server).getModel},
		{"POST /v1/files", []auth.Action{auth.FilesWrite}, (*server).addFile},
		{"GET /v1/files", []auth.Action{auth.FilesRead}, (*server).listFiles},
		{"GET /v1/files/{id}", []auth.Action{auth.FilesRead}, (*server).getFile},
		{"DELETE /v1/files/{id}", []auth.Action{auth.FilesWrite}, (*server).deleteFile},
		{"GET /v1/files/{id}/content", []auth.Action{auth.FilesRead}, (*server).fileContent},
	}
}

// New returns the handler of everything below Prefix. The caller must be in the request's context, as auth.With puts it there.
func New(o Options) http.Handler {
	s := &server{Options: o.orDefault()}
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, r := range routes() {
		method, path, _ := strings.Cut(r.pattern, " ")
		methods[path] = append(methods[path], method)
		handle := func(w http.ResponseWriter, q *http.Request, who auth.Principal) error {
			tellRequest(w)
			return r.handle(s, &call{Request: q, w: w, who: who})
		}
		mux.HandleFunc(method+" "+Prefix+path, protocol.Guard(r.needs, "send a key as x-api-key", s.Log, handle, Refuse))
	}
	for path, there := range methods {
		mux.HandleFunc(Prefix+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", strings.Join(there, ", "))
			Refuse(w, &fault{status: http.StatusMethodNotAllowed, kind: invalidRequest, message: "Method Not Allowed"})
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, Prefix+"/v1/messages/batches") {
			Refuse(w, absent("This server has no message batches. Send the messages one by one."))
			return
		}
		Refuse(w, absent("Not Found: "+short(r.Method+" "+r.URL.Path)+". This server has /v1/messages, /v1/messages/count_tokens, /v1/models and /v1/files."))
	})
	return mux
}

func (o Options) orDefault() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 64 << 20
	}
	if o.MaxFile <= 0 {
		o.MaxFile = 512 << 20
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 10 * time.Second
	}
	if o.Settle <= 0 {
		o.Settle = time.Second
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Minute
	}
	if o.Steps <= 0 {
		o.Steps = 20
	}
	if o.Time <= 0 {
		o.Time = 10 * time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// object is a JSON object of an answer.
type object = map[string]any

// reply writes a JSON answer.
func (c *call) reply(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	_, _ = c.w.Write(append(text, '\n'))
	return nil
}
