// Package gemini is Google's Gemini API, /v1beta/models/MODEL:generateContent with the tool codeExecution, as a translation onto the hub. Programs that were written for Google's SDKs need
// another base URL and nothing else; which model answers is the server's to say.
//
// A request is a turn that is not kept: the client sends the whole conversation each time. What keeps the variables of its Python from one request to the next is the id of the code parts in
// that conversation, which names the session.
//
// The shapes are those of https://ai.google.dev/api/generate-content and of what the SDKs send (google-genai 3.6.1 for Python, @google/genai 2.32.0, google.golang.org/genai 1.77.0).
package gemini

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

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
	StartTurn(ctx context.Context, who auth.Principal, n hub.NewTurn) (hub.Turn, error)
	Turn(ctx context.Context, who auth.Principal, id string) (hub.Turn, error)
	CancelTurn(ctx context.Context, who auth.Principal, id string) (hub.Turn, error)
	FollowTurn(ctx context.Context, who auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error)
	Session(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
	Files
	Models(ctx context.Context, who auth.Principal) ([]hub.ModelInfo, error)
}

// Options say what the surface stands on. Zero fields but Hub take their defaults.
type Options struct {
	Hub       Hub
	Log       *slog.Logger
	MaxBody   int64         // bytes of a request; 64 MiB
	MaxFile   int64         // bytes of a file that is uploaded; 512 MiB
	Secret    []byte        // what clients keep of an upload is sealed with it; nil: with one that ends with the process
	Heartbeat time.Duration // between signs of life on a silent stream; 10 seconds
}

type server struct {
	Options
	sealed sealed
}

// call is one request of an authenticated caller.
type call struct {
	*http.Request
	w   http.ResponseWriter
	who auth.Principal
}

type route struct {
	pattern string // of http.ServeMux
	needs   []auth.Action
	handle  func(*server, *call) error
}

const prefix = "/gemini/"

func routes() []route {
	asks := []auth.Action{auth.ModelsRead, auth.ConversationsWrite, auth.ConversationsRead}
	reads := []auth.Action{auth.ModelsRead}
	var out []route
	for _, version := range []string{"v1beta", "v1"} {
		models := prefix + version + "/models"
		out = append(out,
			route{"GET " + models, reads, (*server).listModels},
			route{"GET " + models + "/{name...}", reads, (*server).getModel},
			route{"POST " + models + "/{name...}", asks, (*server).method},
			route{"POST " + uploads + version + "/files", []auth.Action{auth.FilesWrite}, (*server).upload},
			route{"GET " + prefix + version + "/files", []auth.Action{auth.FilesRead}, (*server).listFiles},
			route{"GET " + prefix + version + "/files/{id}", []auth.Action{auth.FilesRead}, (*server).getFile},
			route{"DELETE " + prefix + version + "/files/{id}", []auth.Action{auth.FilesWrite}, (*server).deleteFile})
	}
	return out
}

// Surface returns the interface as the server's front door takes it.
func Surface(o Options) protocol.Surface {
	s := newServer(o)
	var all []protocol.Route
	for _, r := range routes() {
		method, pattern, _ := strings.Cut(r.pattern, " ")
		all = append(all, protocol.Route{Method: method, Pattern: pattern, Actions: r.needs, Large: strings.HasPrefix(pattern, uploads)})
	}
	return protocol.Surface{
		About: "Google's Gemini API with code execution: GOOGLE_GEMINI_BASE_URL ends here", Prefix: prefix,
		Handler: s.handler(), Routes: all, Keys: s.keys,
		Refuse: func(w http.ResponseWriter, _ *http.Request, p *problem.Error) { refuse(w, p) },
	}
}

// keys are a request's keys as Google's clients send them. That of an upload which was begun is in its address.
func (s *server) keys(r *http.Request) []string {
	all := append(append([]string(nil), r.Header.Values("X-Goog-Api-Key")...), r.URL.Query()["key"]...)
	if p, ok := s.planOf(r); ok {
		all = append(all, p.Key)
	}
	return all
}

// key is the key that a request brings, in whichever way.
func (c *call) key() string {
	scheme, bearer, _ := strings.Cut(c.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		bearer = ""
	}
	return cmp.Or(c.Header.Get("X-Goog-Api-Key"), c.URL.Query().Get("key"), c.Header.Get("X-Api-Key"), bearer)
}

// New returns the handler of everything below /gemini/. The caller must be in the request's context, as auth.With puts it there.
func New(o Options) http.Handler { return newServer(o).handler() }

func newServer(o Options) *server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 64 << 20
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 10 * time.Second
	}
	if o.MaxFile <= 0 {
		o.MaxFile = 512 << 20
	}
	return &server{o, newSealed(o.Secret)}
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.HandleFunc(r.pattern, protocol.Guard(r.needs, "send it as the header x-goog-api-key", s.Log,
			func(w http.ResponseWriter, req *http.Request, who auth.Principal) error {
				return r.handle(s, &call{Request: req, w: w, who: who})
			}, refuse))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { refuse(w, notThere(r)) })
	return mux
}

// notThere names what Google has and this server has not.
func notThere(r *http.Request) error {
	what, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, prefix), "upload/"), ":")
	_, what, _ = strings.Cut(what, "/") // after the version
	what, _, _ = strings.Cut(what, "/")
	for _, known := range []string{"cachedContents", "batches", "tunedModels", "fileSearchStores", "interactions", "auth_tokens", "operations", "corpora", "agents"} {
		if what != known {
			continue
		}
		instead := "There is generateContent, streamGenerateContent and countTokens of models"
		return &fault{http.StatusNotImplemented, "This server does not have '" + what + "'. " + instead + ".", "METHOD_NOT_SUPPORTED", 0}
	}
	return &fault{http.StatusNotFound, "There is no " + short(r.Method+" "+r.URL.Path) + " at this server. Addresses begin with /gemini/v1beta/models.", "NOT_FOUND", 0}
}

// method is POST .../models/MODEL:METHOD.
func (s *server) method(c *call) error {
	path := c.PathValue("name")
	at := strings.LastIndexByte(path, ':')
	if at < 1 {
		return notThere(c.Request)
	}
	name := path[:at]
	switch method := path[at+1:]; method {
	case "generateContent":
		return s.generate(c, name, whole)
	case "streamGenerateContent":
		if c.URL.Query().Get("alt") == "sse" {
			return s.generate(c, name, events)
		}
		return s.generate(c, name, array)
	case "countTokens":
		return s.countTokens(c)
	default:
		return &fault{http.StatusNotImplemented, "The method '" + short(method) + "' is not supported by this server. Supported are generateContent, streamGenerateContent and countTokens.",
			"METHOD_NOT_SUPPORTED", 0}
	}
}

// reply writes a JSON answer.
func (c *call) reply(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_, _ = c.w.Write(append(text, '\n'))
	return nil
}
