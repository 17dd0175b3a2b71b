package openai

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
)

// fault is an error as OpenAI's clients expect it: a status, and {"error":{"message","type","param","code"}}.
type fault struct {
	status  int
	kind    string // "type"
	message string
	param   string // "" is null
	code    string // "" is null
	final   bool   // the client is told not to repeat the request
	wait    int    // seconds, for Retry-After; 0: none
}

func (f *fault) Error() string { return f.message }

const invalidRequest = "invalid_request_error"

// invalid is a 400 that names the parameter which is wrong.
func invalid(param, code, message string) *fault {
	return &fault{status: http.StatusBadRequest, kind: invalidRequest, message: message, param: param, code: code}
}

func missing(param string) *fault {
	return invalid(param, "missing_required_parameter", "Missing required parameter: '"+param+"'.")
}

func unknown(param string) *fault {
	return invalid(param, "unknown_parameter", "Unknown parameter: '"+param+"'.")
}

func unsupported(param, message string) *fault {
	return invalid(param, "unsupported_parameter", message)
}

func absent(message string) *fault {
	return &fault{status: http.StatusNotFound, kind: invalidRequest, message: message}
}

// faultOf says in OpenAI's words what went wrong in the hub. What is cove's own fault is not told in detail.
func faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &fault{status: http.StatusRequestEntityTooLarge, kind: invalidRequest, code: "request_too_large",
			message: "The request body is larger than the " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes that this server takes."}
	}
	p, _ := problem.Public(err)
	f := &fault{status: httpstatus.Of(p), kind: invalidRequest, message: sentence(p), code: p.Code, wait: int(math.Ceil(httpstatus.RetryAfter(p).Seconds()))}
	switch p.Kind {
	case problem.Exhausted:
		exhausted(f, p)
	case problem.Internal:
		f.code = "server_error"
		f.message = "The server had an error while processing your request. Sorry about that!"
	case problem.Denied:
		denied(f, p)
	case problem.Invalid:
		invalidRequestOf(f, p)
	}
	if f.status >= http.StatusInternalServerError {
		f.kind = "server_error"
	}
	// What a model failed with was tried again here as often as makes sense; clients would multiply that.
	f.final = f.final || strings.HasPrefix(p.Code, "model_")
	return f
}

// invalidRequestOf names the parameter that the hub does not know by its name.
func invalidRequestOf(f *fault, p *problem.Error) {
	switch p.Code {
	case string(problem.TurnRunning):
		f.code = "conversation_locked"
	case string(problem.ParameterUnknown):
		f.code = "unknown_parameter"
	case string(problem.ToolChoiceInvalid):
		f.param, f.code = "tool_choice", "invalid_value"
	case string(problem.ToolInvalid), string(problem.ToolNameTaken):
		f.param, f.code = "tools", "invalid_value"
	}
}

// exhausted tells limits that pass by from quotas, which repeating a request does not help against.
func exhausted(f *fault, p *problem.Error) {
	switch {
	case problem.Has(p, problem.FileTooLarge):
		f.status, f.final = http.StatusRequestEntityTooLarge, true
	case problem.Has(p, problem.ModelContextTooLong):
		f.status, f.code, f.final = http.StatusBadRequest, "context_length_exceeded", true
	case problem.Has(p, problem.WorkspaceFull):
		f.status, f.final = http.StatusBadRequest, true
	case problem.Has(p, problem.QuotaCPU, problem.QuotaDisk, problem.QuotaExecutions, problem.QuotaSessions, problem.QuotaTokens, problem.ModelQuotaExhausted):
		f.kind, f.code, f.final = "insufficient_quota", "insufficient_quota", true
	default:
		f.kind = "rate_limit_error"
		switch p.Code {
		case string(problem.ModelRateLimited), string(problem.RateLimited), string(problem.TooManyRequests), string(problem.TooManyFailedLogins):
			f.code = "rate_limit_exceeded"
		}
	}
}

// denied keeps what the model's provider says of the server's key apart from what is wrong with the client's.
func denied(f *fault, p *problem.Error) {
	switch p.Code {
	case string(problem.Unauthenticated), string(problem.KeyExpired):
		f.status, f.code = http.StatusUnauthorized, "invalid_api_key"
	case string(problem.ModelAuth):
		f.status, f.final = http.StatusInternalServerError, true
	case string(problem.Forbidden):
		f.kind, f.code = "permission_error", "insufficient_permissions"
	}
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

// named replaces what the hub says of a thing that does not exist by OpenAI's sentence for it.
func named(err error, f *fault) error {
	if err != nil && problem.Of(err).Kind == problem.NotFound {
		return f
	}
	return err
}

func (f *fault) body() []byte {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	text, _ := json.Marshal(struct {
		Error inner `json:"error"`
	}{inner{f.message, f.kind, orNull(f.param), orNull(f.code)}})
	return append(text, '\n')
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Refuse answers with an error in OpenAI's form. It is for what stands before this surface, such as authentication.
func Refuse(w http.ResponseWriter, err error) {
	f := faultOf(err)
	w.Header().Set("Content-Type", "application/json")
	if f.wait > 0 && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", strconv.Itoa(f.wait))
	}
	if f.final {
		w.Header().Set("X-Should-Retry", "false")
	}
	w.WriteHeader(f.status)
	_, _ = w.Write(f.body())
}

// gone says that the client went away or the server stops: nobody is there to be told.
func gone(ctx context.Context) bool { return ctx.Err() != nil }
