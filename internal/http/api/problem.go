package api

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
	"cove/internal/server/auth"
)

// Problem is the JSON of every error (RFC 9457).
type Problem struct {
	Type      string       `json:"type" doc:"Where the kind of problem is described" example:"/api/v1/docs#problem-not_found"`
	Title     string       `json:"title" doc:"The status in words"`
	Status    int          `json:"status" doc:"The HTTP status"`
	Detail    string       `json:"detail" doc:"One sentence about what went wrong"`
	Kind      problem.Kind `json:"kind" doc:"Who has to act: invalid, not_found, denied, unavailable, timeout, exhausted, canceled, internal"`
	Code      string       `json:"code" doc:"Stable; meant for programs" example:"session_not_found"`
	Hint      string       `json:"hint,omitempty" doc:"The next step"`
	RequestID string       `json:"request_id,omitempty" doc:"Say it when you ask the operator"`
	Errors    []FieldError `json:"errors,omitempty" doc:"The fields that are wrong"`

	wait  int // seconds until it may work; 0: not said
	cause error
	less  bool // the client is told less than the error says
}

// FieldError says what is wrong with a field.
type FieldError struct {
	Field   string `json:"field" example:"body.code"`
	Message string `json:"message"`
}

var documentType = reflect.TypeFor[Problem]()

func (d *Problem) Error() string { return d.Detail }

// GetStatus implements huma.StatusError.
func (d *Problem) GetStatus() int { return d.Status }

// ContentType implements huma.ContentTypeFilter.
func (d *Problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders implements huma.HeadersError.
func (d *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if d.wait > 0 {
		h.Set("Retry-After", strconv.Itoa(d.wait))
	}
	if d.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="cove"`)
	}
	return h
}

// Refuse answers with a problem, for the server in front of this package when it refuses a request.
func Refuse(w http.ResponseWriter, r *http.Request, p *problem.Error) {
	writeDocument(w, r, documentOf(p))
}

// documentOf returns the JSON document of an error. The text of an error that is not a problem, or is a fault of cove's own, is not shown.
func documentOf(err error) *Problem {
	if d, ok := errors.AsType[*Problem](err); ok {
		return d
	}
	p, less := problem.Public(err)
	switch unknown := problem.Has(p, problem.Fault); {
	case unknown && errors.Is(err, context.Canceled):
		p, less = problem.New(problem.GivenUp, "the client gave up the request"), false
	case unknown && errors.Is(err, context.DeadlineExceeded):
		p, less = problem.New(problem.TimedOut, "it took too long"), false
	}
	d := &Problem{Detail: p.Message, Kind: p.Kind, Code: p.Code, Hint: p.Hint, cause: err, less: less}
	d.Status, d.wait = httpstatus.Of(p), int(math.Ceil(httpstatus.RetryAfter(p).Seconds()))
	d.Type = Prefix + "/docs#problem-" + string(p.Kind)
	d.Title = titleOf(d.Status)
	return d
}

const statusGaveUp = 499 // nginx's status for a client that has gone

func titleOf(status int) string {
	if status == statusGaveUp {
		return "Client Closed Request"
	}
	return http.StatusText(status)
}

func noRoute() *Problem {
	return documentOf(problem.New(problem.RouteNotFound, "there is nothing at this address").WithHint("see " + Prefix + "/docs"))
}

func noMethod(method, allow string) *Problem {
	return documentOf(problem.New(problem.MethodNotAllowed, "this address does not know "+method).WithHint("it knows " + allow))
}

// write answers with a problem. Faults of cove's own are logged here, once, with the details that the client does not get.
func (s *server) write(w http.ResponseWriter, r *http.Request, d *Problem) {
	s.logFault(r, d)
	writeDocument(w, r, d)
}

func (s *server) logFault(r *http.Request, d *Problem) {
	if d.Kind == problem.Internal || d.less {
		s.o.Log.ErrorContext(r.Context(), "request failed", "route", r.Pattern, "code", d.Code, "err", d.cause)
	}
}

func writeDocument(w http.ResponseWriter, r *http.Request, d *Problem) {
	c := *d
	c.RequestID = requestID(w, r)
	for name, values := range c.GetHeaders() {
		if w.Header().Get(name) == "" { // the server that refuses knows better
			w.Header()[name] = values
		}
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(c.Status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // hints contain signs such as >=
	_ = e.Encode(&c)       // an error means that the client has gone
}

// requestID returns the id that the server gave the request.
func requestID(w http.ResponseWriter, r *http.Request) string {
	if id := w.Header().Get("X-Request-Id"); id != "" {
		return id
	}
	who, _ := auth.From(r.Context())
	return who.Request
}

// transform is called for everything that huma writes: it replaces huma's errors by ours, and adds the request's id to errors.
func (s *server) transform(ctx huma.Context, _ string, v any) (any, error) {
	r, w := humago.Unwrap(ctx)
	switch d := v.(type) {
	case *huma.ErrorModel:
		out := invalidRequest(d)
		out.RequestID = requestID(w, r)
		s.logFault(r, out)
		return out, nil
	case *Problem:
		c := *d
		c.RequestID = requestID(w, r)
		s.logFault(r, &c)
		return &c, nil
	}
	return v, nil
}

// invalidRequest returns huma's validation error as a problem. It does not repeat the values.
func invalidRequest(m *huma.ErrorModel) *Problem {
	codes := map[int]problem.Code{http.StatusBadRequest: problem.InvalidBody, http.StatusRequestEntityTooLarge: problem.BodyTooLarge,
		http.StatusUnsupportedMediaType: problem.UnsupportedMediaType, http.StatusUnprocessableEntity: problem.InvalidRequest}
	code := codes[m.Status]
	if code == nil {
		d := documentOf(errors.New(m.Detail))
		return d
	}
	d := documentOf(problem.New(code, m.Detail))
	d.Status, d.Title = m.Status, titleOf(m.Status)
	for _, e := range m.Errors {
		if e != nil {
			d.Errors = append(d.Errors, fieldError(e))
		}
	}
	if len(d.Errors) > 0 {
		d.Detail = "the request is not valid: " + d.Errors[0].Message
		if d.Errors[0].Field != "" {
			d.Detail += " (" + d.Errors[0].Field + ")"
		}
	}
	return d
}

// fieldError rewrites the decoder's message, which repeats the value and names our types. After the validation, the decoder only fails for numbers that do not
// fit into their field.
func fieldError(e *huma.ErrorDetail) FieldError {
	theirs, ok := strings.CutPrefix(e.Message, "json: cannot unmarshal ")
	if !ok {
		return FieldError{Field: e.Location, Message: e.Message}
	}
	out := FieldError{Field: e.Location, Message: "the value is out of range"}
	if _, name, ok := strings.Cut(theirs, " into Go struct field "); ok {
		name, _, _ = strings.Cut(name, " ")
		if _, name, ok = strings.Cut(name, "."); ok {
			out.Field += "." + name
		}
	}
	return out
}
