package dify

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

// errLanguage is the cause of refusing a language.
var errLanguage = errors.New("there is no such language")

// Refuse answers with a problem: "code" is below 0, and has the number of the HTTP status that says the same, also where the status of the answer is 200.
func Refuse(w http.ResponseWriter, err error) {
	if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = problem.New(problem.RequestTooLarge, fmt.Sprintf("the request has more than the %d bytes that this server takes", long.Limit))
	}
	p, _ := problem.Public(err)
	number := httpstatus.Of(p)
	if number == http.StatusUnprocessableEntity {
		number = http.StatusBadRequest // which is what Dify's sandbox calls a request that it cannot read
	}
	text, _ := json.Marshal(answer{Code: -number, Message: sentence(p)})
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	code := statusOf(p)
	if wait := httpstatus.RetryAfter(p); wait > 0 && code == http.StatusServiceUnavailable && h.Get("Retry-After") == "" {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

// statusOf is the status of an answer. What passes by is 503, at which a workflow of Dify can try again.
func statusOf(p *problem.Error) int {
	code := httpstatus.Of(p)
	switch {
	case problem.Has(p, problem.Forbidden):
		return code
	case errors.Is(p, errLanguage):
		return http.StatusBadRequest // as Dify's sandbox has it
	case problem.Has(p, problem.QuotaCPU, problem.QuotaDisk):
		return http.StatusOK // trying again does not help before tomorrow, or before something is deleted
	case p.Kind == problem.Exhausted && code == http.StatusTooManyRequests:
		return http.StatusServiceUnavailable
	}
	switch code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusConflict, http.StatusForbidden, http.StatusRequestEntityTooLarge:
		return http.StatusOK
	}
	if problem.Has(p, problem.ProgramMissing) {
		return http.StatusOK
	}
	return code
}

// sentence is the problem's message with its hint: the answer has one text for both.
func sentence(p *problem.Error) string {
	text := p.Message
	if p.Hint != "" {
		text = strings.TrimSuffix(text, ".") + "; " + p.Hint
	}
	return text
}
