package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
)

// fault is an error as Google's clients expect it (https://google.aip.dev/193).
type fault struct {
	code    int // of HTTP
	message string
	reason  string // in capital letters, as INVALID_ARGUMENT; cove's code in other cases
	wait    int    // seconds; 0: not said
}

func (f *fault) Error() string { return f.message }

// HTTPStatus implements protocol.Answer.
func (f *fault) HTTPStatus() int { return f.code }

func invalid(format string, args ...any) error {
	return &fault{http.StatusBadRequest, fmt.Sprintf(format, args...), "INVALID_ARGUMENT", 0}
}

// lacking refuses what Google has and this server has not, by its name in the request.
func lacking(at, instead string) error {
	return invalid("'%s' is not supported by this server. %s", at, instead)
}

// faultOf says in Google's form what went wrong in the hub. What is cove's own fault is not told in detail.
func faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &fault{http.StatusRequestEntityTooLarge, fmt.Sprintf("The request is larger than the %d bytes that this server takes.", large.Limit), "REQUEST_TOO_LARGE", 0}
	}
	p, _ := problem.Public(err)
	f := &fault{code: httpstatus.Of(p), message: sentence(p), reason: strings.ToUpper(p.Code), wait: int(math.Ceil(httpstatus.RetryAfter(p).Seconds()))}
	switch {
	case p.Kind == problem.Internal:
		f.message = "An internal error has occurred."
	case problem.Has(p, problem.ModelContextTooLong, problem.WorkspaceFull):
		f.code = http.StatusBadRequest
	case problem.Has(p, problem.ModelAuth): // the key of the server, not the client's
		f.code = http.StatusInternalServerError
	case problem.Has(p, problem.ModelUnknown, problem.ModelNotFound):
		f.code = http.StatusNotFound
	}
	return f
}

// sentence is the problem's message with its hint. What to do about a model is said for the command line.
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

// canonical names are those of google.rpc.Code, by HTTP's status.
func canonical(code int) string {
	switch code {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusConflict:
		return "ABORTED"
	case http.StatusPreconditionFailed, http.StatusMethodNotAllowed:
		return "FAILED_PRECONDITION"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case 499:
		return "CANCELLED"
	case http.StatusNotImplemented:
		return "UNIMPLEMENTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return "DEADLINE_EXCEEDED"
	}
	if code < http.StatusInternalServerError {
		return "INVALID_ARGUMENT"
	}
	return "INTERNAL"
}

// body is {"error":{"code","message","status","details"}}. Clients look for an error at the beginning of the text.
func (f *fault) body() []byte {
	details := []any{map[string]string{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": f.reason, "domain": "cove"}}
	if f.wait > 0 {
		details = append(details, map[string]string{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": strconv.Itoa(f.wait) + "s"})
	}
	type inner struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
		Details []any  `json:"details"`
	}
	text, _ := json.Marshal(struct {
		Error inner `json:"error"`
	}{inner{f.code, f.message, canonical(f.code), details}})
	return text
}

// refuse answers with an error in Google's form.
func refuse(w http.ResponseWriter, err error) {
	f := faultOf(err)
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	if f.wait > 0 && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", strconv.Itoa(f.wait))
	}
	w.WriteHeader(f.code)
	_, _ = w.Write(append(f.body(), '\n'))
}

// short keeps what a client sent within an error message.
func short(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if r := []rune(s); len(r) > 100 {
		return string(r[:100]) + "…"
	}
	return s
}
