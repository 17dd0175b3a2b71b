// Package openai is OpenAI's HTTP interface, /v1, as a translation onto the hub: responses with the code interpreter, conversations,
// containers and their files, files, models, and chat completions. Clients that were written for OpenAI need another base URL and nothing else.
//
// A response is a turn, a container is a session, a conversation is a conversation, and each shows the same id under OpenAI's prefix. A stream of
// OpenAI's events is a pure function of a turn's events, so that a stored response, its stream, and any place in that stream can be had again at
// any time, and nothing is stored twice.
//
// A client that goes away cancels a response, as at OpenAI, unless it asked for background: true.
package openai

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"cove/internal/llm/model"
	"cove/internal/machine/workspace"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Turns are what responses are made of.
type Turns interface {
	StartTurn(ctx context.Context, who auth.Principal, n hub.NewTurn) (hub.Turn, error)
	Turn(ctx context.Context, who auth.Principal, id string) (hub.Turn, error)
	CancelTurn(ctx context.Context, who auth.Principal, id string) (hub.Turn, error)
	DeleteTurn(ctx context.Context, who auth.Principal, id string) error
	FollowTurn(ctx context.Context, who auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error)
	Turns(ctx context.Context, who auth.Principal, conversation string, p hub.Page) (hub.Listing[hub.Turn], error)
}

// Conversations bind turns together.
type Conversations interface {
	CreateConversation(ctx context.Context, who auth.Principal, n hub.NewConversation) (hub.Conversation, error)
	Conversation(ctx context.Context, who auth.Principal, id string) (hub.Conversation, error)
	ChangeConversation(ctx context.Context, who auth.Principal, id string, c hub.ConversationChange) (hub.Conversation, error)
	DeleteConversation(ctx context.Context, who auth.Principal, id string) error
}

// Sessions are what containers are made of.
type Sessions interface {
	CreateSession(ctx context.Context, who auth.Principal, n hub.NewSession) (hub.Session, error)
	Session(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
	Sessions(ctx context.Context, who auth.Principal, f hub.SessionFilter, p hub.Page) (hub.Listing[hub.Session], error)
	ChangeSession(ctx context.Context, who auth.Principal, id string, c hub.SessionChange) (hub.Session, error)
	DeleteSession(ctx context.Context, who auth.Principal, id string) error
	Tree(ctx context.Context, who auth.Principal, session string, write bool, use func(context.Context, hub.Tree) error) error
	PutFile(ctx context.Context, who auth.Principal, session, file, path string) (workspace.Entry, error)
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
	Conversations
	Sessions
	Files
	Models
}

// Options say what the surface stands on. Zero fields but Hub take their defaults.
type Options struct {
	Hub       Hub
	Log       *slog.Logger
	MaxBody   int64         // bytes of a JSON request; 64 MiB
	MaxFile   int64         // bytes of an uploaded file; 512 MiB
	Memory    int64         // bytes that a session may have at most; 0: memory_limit is not checked
	Heartbeat time.Duration // between comments on a silent stream; 10 seconds
	Settle    time.Duration // how long a stream waits for its first event before it begins; 1 second
	Spool     string        // folder for uploads in transit; the system's
	Secret    []byte        // what clients keep for the server is sealed with it; nil: one that ends with the process
	Now       func() time.Time
	// Stopping is closed when the server takes nothing new: connections on which nothing runs are ended then. nil: never.
	Stopping <-chan struct{}
}

type server struct {
	Options
	seal    seal
	uploads uploads
}

// Route is one operation, for the table of who may do what.
type Route struct {
	Pattern string        // of http.ServeMux
	Needs   []auth.Action // all of them; running code, putting files into a container and the like take more, which the hub asks for
	handle  func(*server, *call) error
}

// call is one request of an authenticated caller.
type call struct {
	*http.Request
	w   http.ResponseWriter
	who auth.Principal
}

// New returns the handler of everything below /v1. The caller must be in the request's context, as auth.With puts it there.
func New(o Options) http.Handler {
	s := &server{Options: o.orDefault(), seal: newSeal(o.Secret)}
	mux := http.NewServeMux()
	paths := map[string][]string{}
	for _, r := range Routes() {
		mux.HandleFunc(r.Pattern, s.serve(r))
		method, path, _ := strings.Cut(r.Pattern, " ")
		paths[path] = append(paths[path], method)
	}
	for path, methods := range paths {
		if path == "/v1/responses/compact" || path == "/v1/responses/input_tokens" {
			continue // with other methods they are the names of responses, which there are not
		}
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			Refuse(w, noMethod(w, r, methods))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		message := "Invalid URL (" + r.Method + " " + r.URL.Path + ")"
		if feature := lacking(r.URL.Path); feature != "" {
			message = "This server does not have OpenAI's " + feature + " (" + r.Method + " " + r.URL.Path + ")."
		}
		Refuse(w, &fault{status: http.StatusNotFound, kind: invalidRequest, code: "unknown_url", message: message})
	})
	return mux
}

// noMethod refuses a method, and says which there are.
func noMethod(w http.ResponseWriter, r *http.Request, methods []string) *fault {
	w.Header().Set("Allow", strings.Join(methods, ", "))
	return &fault{status: http.StatusMethodNotAllowed, kind: invalidRequest, code: "method_not_supported",
		message: "Not allowed to " + r.Method + " on " + r.URL.Path + ". (HINT: Perhaps you meant to use a different HTTP method?)"}
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
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (s *server) serve(route Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, ok := auth.From(r.Context())
		if !ok {
			Refuse(w, &fault{status: http.StatusUnauthorized, kind: invalidRequest, code: "invalid_api_key", message: "You didn't provide an API key."})
			return
		}
		var err error
		for _, action := range route.Needs {
			if err = who.Require(action); err != nil {
				break
			}
		}
		if err == nil {
			err = route.handle(s, &call{Request: r, w: w, who: who})
		}
		if err == nil || gone(r.Context()) {
			return
		}
		if f := faultOf(err); f.status >= http.StatusInternalServerError {
			s.Log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "request", who.Request, "error", err)
		}
		Refuse(w, err)
	}
}

// Routes lists every operation.
func Routes() []Route {
	writes := []auth.Action{auth.ConversationsWrite}
	reads := []auth.Action{auth.ConversationsRead}
	asks := []auth.Action{auth.ConversationsWrite, auth.ConversationsRead}
	return append(append([]Route{
		{"POST /v1/responses", asks, (*server).createResponse},
		{"GET /v1/responses", asks, (*server).connect}, // a WebSocket
		{"POST /v1/responses/compact", []auth.Action{auth.ModelsRead, auth.ConversationsWrite, auth.ConversationsRead}, (*server).compact},
		{"POST /v1/responses/input_tokens", reads, (*server).inputTokens},
		{"GET /v1/responses/{id}", reads, (*server).getResponse},
		{"DELETE /v1/responses/{id}", asks, (*server).deleteResponse},
		{"POST /v1/responses/{id}/cancel", asks, (*server).cancelResponse},
		{"GET /v1/responses/{id}/input_items", reads, (*server).inputItems},
		{"POST /v1/conversations", writes, (*server).createConversation},
		{"GET /v1/conversations/{id}", reads, (*server).getConversation},
		{"POST /v1/conversations/{id}", asks, (*server).changeConversation},
		{"DELETE /v1/conversations/{id}", writes, (*server).deleteConversation},
		{"GET /v1/conversations/{id}/items", reads, (*server).listItems},
		{"POST /v1/conversations/{id}/items", asks, (*server).addItems},
		{"GET /v1/conversations/{id}/items/{item}", reads, (*server).getItem},
		{"DELETE /v1/conversations/{id}/items/{item}", asks, (*server).deleteItem},
	}, containerRoutes()...), fileRoutes()...)
}

func containerRoutes() []Route {
	return []Route{
		{"POST /v1/containers", []auth.Action{auth.SessionsWrite}, (*server).createContainer},
		{"GET /v1/containers", []auth.Action{auth.SessionsRead}, (*server).listContainers},
		{"GET /v1/containers/{id}", []auth.Action{auth.SessionsRead}, (*server).getContainer},
		{"DELETE /v1/containers/{id}", []auth.Action{auth.SessionsWrite}, (*server).deleteContainer},
		{"POST /v1/containers/{id}/files", []auth.Action{auth.SessionsRead, auth.FilesWrite}, (*server).addContainerFile},
		{"GET /v1/containers/{id}/files", []auth.Action{auth.SessionsRead, auth.FilesRead}, (*server).listContainerFiles},
		{"GET /v1/containers/{id}/files/{file}", []auth.Action{auth.SessionsRead, auth.FilesRead}, (*server).getContainerFile},
		{"DELETE /v1/containers/{id}/files/{file}", []auth.Action{auth.SessionsRead, auth.FilesWrite}, (*server).deleteContainerFile},
		{"GET /v1/containers/{id}/files/{file}/content", []auth.Action{auth.SessionsRead, auth.FilesRead}, (*server).containerFileContent},
	}
}

func fileRoutes() []Route {
	return []Route{
		{"POST /v1/files", []auth.Action{auth.FilesWrite}, (*server).addFile},
		{"GET /v1/files", []auth.Action{auth.FilesRead}, (*server).listFiles},
		{"GET /v1/files/{id}", []auth.Action{auth.FilesRead}, (*server).getFile},
		{"DELETE /v1/files/{id}", []auth.Action{auth.FilesWrite}, (*server).deleteFile},
		{"GET /v1/files/{id}/content", []auth.Action{auth.FilesRead}, (*server).fileContent},
		{"POST /v1/uploads", []auth.Action{auth.FilesWrite}, (*server).createUpload},
		{"POST /v1/uploads/{id}/parts", []auth.Action{auth.FilesRead, auth.FilesWrite}, (*server).addPart},
		{"POST /v1/uploads/{id}/complete", []auth.Action{auth.FilesRead, auth.FilesWrite}, (*server).completeUpload},
		{"POST /v1/uploads/{id}/cancel", []auth.Action{auth.FilesRead, auth.FilesWrite}, (*server).cancelUpload},
		{"GET /v1/models", []auth.Action{auth.ModelsRead}, (*server).listModels},
		{"GET /v1/models/{id...}", []auth.Action{auth.ModelsRead}, (*server).getModel},
		{"POST /v1/chat/completions", []auth.Action{auth.ModelsRead, auth.ConversationsWrite}, (*server).chat}, // an answer costs what a response costs,
	}
}

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

// lacking names the part of OpenAI's API that a path belongs to and that is not here, or "".
func lacking(path string) string {
	part, _, _ := strings.Cut(strings.TrimPrefix(path, "/v1/"), "/")
	return map[string]string{
		"batches": "Batch API: `cove batch` asks many questions", "embeddings": "embeddings", "moderations": "moderations", "images": "images API", "audio": "audio API", "videos": "videos API",
		"fine_tuning": "fine-tuning", "assistants": "Assistants API: use Responses", "threads": "Assistants API: use Responses", "vector_stores": "vector stores", "uploads": "uploads in parts: use /v1/files",
		"evals": "evals: `cove eval` has some", "realtime": "Realtime API", "completions": "old completions: use Responses or Chat Completions", "prompts": "prompt templates", "skills": "skills",
		"organization": "administration: `cove` has commands for it", "chatkit": "ChatKit",
	}[part]
}
