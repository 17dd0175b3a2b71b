package anthropic

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
)

// fault is an error as Anthropic's clients expect it: a status, and {"type":"error","error":{"type","message"},"request_id"}.
// The types are those of https://platform.claude.com/docs/en/api/errors.
type fault struct {
	status  int
	kind    string // "type" of the inner error
	message string
	final   bool // the client is told not to repeat the request
	wait    int  // seconds, for Retry-After; 0: none
	details any  // "details" of the inner error; nil: none
}

func (f *fault) Error() string { return f.message }

// HTTPStatus makes a fault an answer in the client's words, which is not logged.
func (f *fault) HTTPStatus() int { return f.status }

const invalidRequest = "invalid_request_error"

func invalid(message string) *fault {
	return &fault{status: http.StatusBadRequest, kind: invalidRequest, message: message}
}

// unsupportedThread refuses "thread" in the form in which anthropic 2.14 and later look for it (lib/threads/_thread_state.py).
func unsupportedThread() *fault {
	f := invalid("thread: This server keeps no threads. Send the messages.")
	f.details = map[string]any{"error_code": "thread_unsupported_request", "unsupported": []string{"thread"}}
	return f
}

func absent(message string) *fault {
	return &fault{status: http.StatusNotFound, kind: "not_found_error", message: message}
}

// kindOf names the errors of a status.
func kindOf(code int) string {
	switch code {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return "timeout_error"
	case http.StatusServiceUnavailable:
		return "overloaded_error"
	}
	if code >= http.StatusInternalServerError {
		return "api_error"
	}
	return invalidRequest
}

// faultOf says in Anthropic's words what went wrong in the hub. What is cove's own fault is not told in detail.
func faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &fault{status: http.StatusRequestEntityTooLarge, kind: "request_too_large",
			message: "Request exceeds the maximum size of " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes."}
	}
	p, _ := problem.Public(err)
	f := &fault{status: httpstatus.Of(p), message: sentence(p), wait: int(math.Ceil(httpstatus.RetryAfter(p).Seconds()))}
	switch {
	case p.Kind == problem.Internal:
		f.message = "Internal server error"
	case problem.Has(p, problem.ModelContextTooLong):
		f.status, f.message = http.StatusBadRequest, "prompt is too long: "+sentence(p)
	case problem.Has(p, problem.WorkspaceFull, problem.QuotaDisk):
		f.status, f.final = http.StatusBadRequest, true
	case problem.Has(p, problem.QuotaCPU, problem.QuotaExecutions, problem.QuotaSessions, problem.QuotaTokens, problem.ModelQuotaExhausted):
		f.final = true // repeating does not help
	case problem.Has(p, problem.ModelAuth):
		f.status, f.final = http.StatusInternalServerError, true // the server's key is meant, not the client's
	}
	f.kind = kindOf(f.status)
	// What a model failed with was tried again here as often as makes sense; clients would multiply that.
	f.final = f.final || strings.HasPrefix(p.Code, "model_")
	return f
}

// sentence is the problem's message with its hint: the wire format has one text for both. What to do about a model is said for the command line.
func sentence(p *problem.Error) string {
	text := upper(p.Message) + "."
	if p.Hint != "" && !strings.HasPrefix(p.Code, "model_") && !strings.Contains(p.Hint, "--model") {
		text += " " + upper(p.Hint) + "."
	}
	return text
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// named replaces what the hub says of a thing that does not exist by a sentence with the client's id for it.
func named(err error, f *fault) error {
	if err != nil && problem.Of(err).Kind == problem.NotFound {
		return f
	}
	return err
}

// body is the error as JSON, for an answer or an event of a stream.
func (f *fault) body(request string) []byte {
	type inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Details any    `json:"details,omitempty"`
	}
	text, _ := json.Marshal(struct {
		Type    string  `json:"type"`
		Error   inner   `json:"error"`
		Request *string `json:"request_id"`
	}{"error", inner{f.kind, f.message, f.details}, orNull(request)})
	return text
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// tellRequest gives the id of the request under the name by which Anthropic's clients look for it, and returns it.
func tellRequest(w http.ResponseWriter) string {
	id := w.Header().Get("X-Request-Id")
	if id != "" {
		w.Header().Set("Request-Id", id)
	}
	return id
}

// Refuse answers with an error in Anthropic's form. It is also for what stands before this surface, such as authentication.
func Refuse(w http.ResponseWriter, err error) {
	f := faultOf(err)
	id := tellRequest(w)
	w.Header().Set("Content-Type", "application/json")
	if f.wait > 0 && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", strconv.Itoa(f.wait))
	}
	if f.final {
		w.Header().Set("X-Should-Retry", "false")
	}
	w.WriteHeader(f.status)
	_, _ = w.Write(append(f.body(id), '\n'))
}

// short keeps what a client sent within an error message.
func short(s string) string {
	if r := []rune(s); len(r) > 100 {
		return string(r[:100]) + "…"
	}
	return strings.ToValidUTF8(s, "?")
}
