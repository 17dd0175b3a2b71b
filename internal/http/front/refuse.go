package front

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/http/httpstatus"
	"cove/internal/http/protocol"
)

// refuse answers with a problem in the form of the surface that was asked.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, p *problem.Error) {
	telemetry.Count(r.Context(), telemetry.Refused, 1, p.Code)
	h := w.Header()
	if httpstatus.Of(p) == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", challenge(r))
	}
	if wait := httpstatus.RetryAfter(p); wait > 0 && h.Get("Retry-After") == "" {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	f := s.surfaceOf(r)
	if f == nil {
		f = &s.o.Surfaces[0]
	}
	f.Refuse(w, r, p)
}

// challenge says how to bring a key. A browser that wants to show the documentation asks for a name and a password.
func challenge(r *http.Request) string {
	if noteOf(r).asked.Access == protocol.Documentation && strings.Contains(r.Header.Get("Accept"), "text/html") {
		return `Basic realm="cove: any name, and a key as the password", charset="UTF-8"`
	}
	return `Bearer realm="cove"`
}
