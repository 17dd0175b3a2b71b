package librechat

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
	"cove/internal/http/protocol"
)

// Surface returns the interface as the server's front door takes it.
func Surface(o Options) protocol.Surface {
	all := []protocol.Route{{Method: http.MethodGet, Pattern: "/librechat/health", Access: protocol.Public}}
	for _, r := range routes() {
		method, pattern, _ := strings.Cut(r.pattern, " ")
		all = append(all, protocol.Route{Method: method, Pattern: pattern, Actions: r.needs, Large: r.large})
	}
	return protocol.Surface{
		About: "LibreChat's code interpreter: its base URL", Prefix: "/librechat/",
		Handler: New(o), Routes: all,
		Refuse: func(w http.ResponseWriter, _ *http.Request, p *problem.Error) { Refuse(w, p) },
	}
}

// Refuse answers with a problem. Of one that passes by the client reads how long it does well to wait.
func Refuse(w http.ResponseWriter, err error) {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = problem.New(problem.RequestTooLarge, "the request is longer than this server takes")
	}
	p, _ := problem.Public(err)
	code, body := httpstatus.Of(p), map[string]any{"error": p.Code, "message": p.Message}
	if p.Hint != "" {
		body["message"] = p.Message + "; " + p.Hint
	}
	if wait := int(math.Ceil(httpstatus.RetryAfter(p).Seconds())); wait > 0 {
		body["retry_after_seconds"] = wait
		if w.Header().Get("Retry-After") == "" {
			w.Header().Set("Retry-After", strconv.Itoa(wait))
		}
	}
	if code == http.StatusTooManyRequests {
		body["error"] = "rate_limited"
	}
	write(w, code, body)
}
