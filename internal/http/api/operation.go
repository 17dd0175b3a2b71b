package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
)

// Route is one operation of the interface, for checks of who may call what.
type Route struct {
	ID      string      // "session.create"
	Method  string      // "POST"
	Pattern string      // "/api/v1/sessions/{session}", as http.ServeMux has it
	Action  auth.Action // the action that the caller needs the right to; "" with Public false: any key is enough
	Public  bool        // no key is needed
}

// Routes returns every operation, but not the three documents without secrets: /openapi.json, /openapi-3.0.json and /docs. The server that mounts the interface
// decides whether these need a key.
func Routes() []Route { return slices.Clone(build(Options{}).routes) }

// operation declares a route.
type operation struct {
	id, method, path string
	tag, summary     string
	about            string      // Markdown
	action           auth.Action // see Route.Action
	public           bool
	status           int            // status of success; 0: 200, or 204 without a body
	repeat           repeat         // what an Idempotency-Key does
	raw              bool           // the handler reads the body, which is not JSON
	anyQuery         bool           // the address may have parameters that are not ours
	errors           []problem.Code // codes that the document lists
	example          string         // curl, for people
}

// The keys of huma's operation metadata.
const metaOperation = "operation"

// declare makes huma's operation and records the route.
func (s *server) declare(o operation) huma.Operation {
	s.routes = append(s.routes, Route{ID: o.id, Method: o.method, Pattern: Prefix + o.path, Action: o.action, Public: o.public})
	h := huma.Operation{
		OperationID: o.id, Method: o.method, Path: o.path, Summary: o.summary, Tags: []string{o.tag},
		Description: o.text(), DefaultStatus: o.status, MaxBodyBytes: -1, BodyReadTimeout: -1,
		Metadata:   map[string]any{metaOperation: o},
		Responses:  map[string]*huma.Response{"4XX": s.problem("A problem of the request (RFC 9457)"), "default": s.problem("A problem (RFC 9457)")},
		Extensions: map[string]any{}, SkipValidateParams: o.anyQuery,
	}
	if o.action != "" {
		h.Extensions["x-action"] = string(o.action)
	}
	if o.public {
		h.Security = []map[string][]string{{}}
	}
	if o.repeat != repeatNever {
		h.Parameters = append(h.Parameters, &huma.Param{Name: "Idempotency-Key", In: "header", Schema: &huma.Schema{Type: "string", MaxLength: new(maxOnce)},
			Description: "A key that you choose, 1 to 200 characters. A repeated request with the same key is not performed twice."})
	}
	return h
}

func (s *server) problem(about string) *huma.Response {
	return &huma.Response{Description: about, Content: map[string]*huma.MediaType{"application/problem+json": {
		Schema: s.api.OpenAPI().Components.Schemas.Schema(documentType, true, "Problem")}}}
}

// text returns the description, with the right that is needed and the problems that may occur.
func (o operation) text() string {
	out := strings.TrimSpace(o.about)
	switch {
	case o.public:
		out += "\n\nNo key is needed."
	case o.action != "":
		out += "\n\nNeeds the right `" + string(o.action) + "`."
	}
	if len(o.errors) > 0 {
		var names []string
		for _, code := range o.errors {
			names = append(names, code.String())
		}
		out += "\n\nProblems: `" + strings.Join(names, "`, `") + "`."
	}
	if o.example != "" {
		out += "\n\n```sh\n" + strings.TrimSpace(o.example) + "\n```"
	}
	return strings.TrimSpace(out)
}

// answer is an operation's success.
type answer[O any] struct{ Body *O }

// add registers an operation that answers with JSON.
func add[I, O any](s *server, o operation, do func(context.Context, auth.Principal, *I) (O, error)) {
	huma.Register(s.api, s.declare(o), func(ctx context.Context, in *I) (*answer[O], error) {
		who, _ := auth.From(ctx)
		out, err := do(ctx, who, in)
		if err != nil {
			return nil, documentOf(err)
		}
		return &answer[O]{Body: &out}, nil
	})
}

// addSilent registers an operation that answers with nothing (204).
func addSilent[I any](s *server, o operation, do func(context.Context, auth.Principal, *I) error) {
	huma.Register(s.api, s.declare(o), func(ctx context.Context, in *I) (*struct{}, error) {
		who, _ := auth.From(ctx)
		if err := do(ctx, who, in); err != nil {
			return nil, documentOf(err)
		}
		return nil, nil
	})
}

// addRaw registers an operation that writes its answer itself. do returns an error only when it has written nothing.
func addRaw[I any](s *server, o operation, do func(w http.ResponseWriter, r *http.Request, who auth.Principal, in *I) error) {
	huma.Register(s.api, s.declare(o), func(_ context.Context, in *I) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(h huma.Context) {
			r, w := humago.Unwrap(h)
			who, _ := auth.From(r.Context())
			if err := do(w, r, who, in); err != nil {
				s.write(w, r, documentOf(err))
			}
		}}, nil
	})
}

// adapter puts admission in front of every operation.
type adapter struct {
	huma.Adapter
	s *server
}

func (a *adapter) Handle(h *huma.Operation, handler func(huma.Context)) {
	o, _ := h.Metadata[metaOperation].(operation)
	a.Adapter.Handle(h, func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		w.Header().Set("Cache-Control", "no-store") // downloads replace this
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if err := a.s.admit(r, o); err != nil {
			a.s.write(w, r, documentOf(err))
			return
		}
		a.s.deliver(w, r, o, func(w http.ResponseWriter, r *http.Request) { handler(humago.NewContext(h, r, w)) })
	})
}

// admit checks that the caller has the right to the operation. The hub checks it again; here it is checked before anything is read, for every route and in one
// place.
func (s *server) admit(r *http.Request, o operation) error {
	if o.public {
		return nil
	}
	who, ok := auth.From(r.Context())
	if !ok {
		return problem.New(problem.Unauthenticated, "the request has no key, or the key is not valid").
			WithHint("send it in the header 'Authorization: Bearer KEY'")
	}
	if o.action == "" {
		return nil
	}
	err := who.Require(o.action)
	if err != nil && o.method != http.MethodGet {
		s.noteRefusal(r.Context(), who, o, r, err)
	}
	return err
}

// noteRefusal writes the audit row that the hub would have written if it had been called.
func (s *server) noteRefusal(ctx context.Context, who auth.Principal, o operation, r *http.Request, err error) {
	if s.o.Audit == nil {
		return
	}
	row := audit.Row{ID: ident.New(ident.Audit), At: s.o.Now().UTC(), Project: who.Project, User: who.User, Key: who.Key, Action: o.id,
		Target: target(r), Outcome: problem.Of(err).Code, Request: who.Request, IP: who.IP, Agent: who.Agent}
	if err := audit.Add(ctx, s.o.Audit, row); err != nil {
		s.o.Log.Error("audit row not written", "action", o.id, "err", err)
	}
}

// target returns the id in an address, if it is one: anything else in its place is the client's text, of any length.
func target(r *http.Request) string {
	for name, kind := range map[string]string{"session": ident.Session, "execution": ident.Execution, "process": ident.Process, "conversation": ident.Conversation, "turn": ident.Turn, "question": ident.Question,
		"file": ident.File, "key": ident.Key, "browser": ident.Browser, "invitation": ident.Invitation, "share": ident.Share, "link": ident.Link, "upload": ident.Upload, "user": ident.User, "project": ident.Project} {
		if id := r.PathValue(name); ident.Valid(kind, id) {
			return id
		}
	}
	return ""
}
