package toolbox

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

// source is what clients look for beside a code, to make an exception of a class of its own.
const source = "DAYTONA_DAEMON"

// fault is an error with a status and one of Daytona's codes that the problem alone does not tell; code "": the one of the status.
type fault struct {
	status  int
	code    string
	message string
}

func (f *fault) Error() string { return f.message }

// HTTPStatus implements protocol.Answer.
func (f *fault) HTTPStatus() int { return f.status }

func isFault(err error) bool {
	_, ok := errors.AsType[*fault](err)
	return ok
}

func invalid(message string) error { return &fault{http.StatusBadRequest, "", message} }

// codes are those of statuses, and of the problems that have one of their own.
var codes = map[int]string{
	400: "BAD_REQUEST", 401: "UNAUTHORIZED", 403: "FORBIDDEN", 404: "NOT_FOUND", 408: "REQUEST_TIMEOUT", 409: "CONFLICT", 410: "GONE", 413: "BAD_REQUEST", 422: "UNPROCESSABLE_ENTITY", 500: "INTERNAL_SERVER_ERROR",
}

// said is an error as a status, a code and a text.
func said(err error) (code int, word, message string) {
	if f, ok := errors.AsType[*fault](err); ok {
		word = f.code
		if word == "" {
			word = codes[f.status]
		}
		return f.status, word, f.message
	}
	p, _ := problem.Public(err)
	code, message = httpstatus.Of(p), p.Message
	if p.Hint != "" {
		message += " (" + p.Hint + ")"
	}
	switch word = codes[code]; {
	case problem.Has(p, problem.FileNotFound):
		word = "FILE_NOT_FOUND"
	case problem.Has(p, problem.InvalidPath):
		word = "INVALID_FILE_PATH"
	case problem.Has(p, problem.ProcessNotFound):
		word = "PROCESS_NOT_FOUND"
	case problem.Has(p, problem.FileDenied):
		code, word = http.StatusForbidden, "FILE_ACCESS_DENIED"
	}
	return code, word, message
}

// errorBody is an error in the form of Daytona's toolbox.
func errorBody(r *http.Request, err error) (code int, body map[string]any) {
	code, word, message := said(err)
	body = map[string]any{
		"statusCode": code, "message": message, "timestamp": time.Now().UTC().Format(time.RFC3339Nano), "path": r.URL.Path, "method": r.Method, "source": source,
	}
	if word != "" {
		body["code"] = word
	}
	return code, body
}

func refuse(w http.ResponseWriter, r *http.Request, err error) {
	if !isFault(err) {
		p, _ := problem.Public(err)
		if wait := int(math.Ceil(httpstatus.RetryAfter(p).Seconds())); wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(wait))
		}
	}
	code, body := errorBody(r, err)
	reply(w, code, body)
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // nobody can be told
}
