package daytona

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
)

// fault is an error of the control plane with a status that the problem alone does not tell.
type fault struct {
	status  int
	message string
}

func (f *fault) Error() string { return f.message }

// HTTPStatus implements protocol.Answer.
func (f *fault) HTTPStatus() int { return f.status }

func invalid(message string) error { return &fault{http.StatusBadRequest, message} }

// lacking refuses what cove does not have.
func lacking(message string) error { return &fault{http.StatusNotImplemented, message} }

// absent is what clients are told of a sandbox that is not there, or not theirs.
func absent(id string) error {
	return &fault{http.StatusNotFound, "Sandbox with ID or name " + strconv.Quote(bounded(id)) + " not found"}
}

// bounded is what a client has sent, as it is repeated to it.
func bounded(text string) string {
	if len(text) > 100 {
		return text[:100] + "..."
	}
	return text
}

// refuse writes a problem in the shape of Daytona's API, of which SDKs read message and statusCode.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	code, message, name := said(err)
	if p := problem.Of(err); p != nil {
		if wait := int(math.Ceil(httpstatus.RetryAfter(p).Seconds())); wait > 0 {
			for _, header := range []string{"Retry-After", "Retry-After-Authenticated"} {
				w.Header().Set(header, strconv.Itoa(wait))
			}
		}
	}
	body := map[string]any{
		"path": r.URL.Path, "method": r.Method, "timestamp": stamp(time.Now()), "statusCode": code, "error": http.StatusText(code), "message": message,
	}
	if name != "" {
		body["code"] = name
	}
	reply(w, code, body)
}

// said is an error as a status, a text and the code of a problem.
func said(err error) (code int, message, name string) {
	if f, ok := errors.AsType[*fault](err); ok {
		return f.status, f.message, ""
	}
	p, _ := problem.Public(err)
	code, message = httpstatus.Of(p), p.Message
	if p.Hint != "" {
		message += " (" + p.Hint + ")"
	}
	if code == http.StatusUnprocessableEntity { // Daytona's clients know a class for 400
		code = http.StatusBadRequest
	}
	return code, message, p.Code
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // nobody can be told
}

// stamp is a time as clients read it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
