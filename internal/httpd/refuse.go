package httpd

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"

	"cove/internal/problem"
	"cove/internal/telemetry"
)

// refuse answers with a problem in the form of the surface that was asked: OpenAI's clients read {"error": ...}, all others what package
// api writes (RFC 9457).
func refuse(w http.ResponseWriter, r *http.Request, p *problem.Error) {
	status := problem.Status(p)
	telemetry.Count(r.Context(), telemetry.Refused, 1, p.Code)
	h := w.Header()
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", challenge(r))
	}
	if wait := problem.RetryAfter(p); wait > 0 && h.Get("Retry-After") == "" {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		writeJSON(w, "application/json", status, openAIError(p, status))
		return
	}
	detail := p.Message
	if p.Kind == problem.Internal {
		detail = "the server failed; it was logged"
	}
	body := map[string]any{
		"type": "/api/v1/docs#problem-" + string(p.Kind), "title": http.StatusText(status), "status": status, "detail": detail,
		"kind": p.Kind, "code": p.Code, "request_id": h.Get("X-Request-Id"),
	}
	if p.Hint != "" {
		body["hint"] = p.Hint
	}
	writeJSON(w, "application/problem+json", status, body)
}

// challenge says how to bring a key. A browser that wants to show the documentation asks for a name and a password.
func challenge(r *http.Request) string {
	if isDocumentation(r) && strings.Contains(r.Header.Get("Accept"), "text/html") {
		return `Basic realm="cove: any name, and a key as the password", charset="UTF-8"`
	}
	return `Bearer realm="cove"`
}

// openAIError is the body that OpenAI's clients map to their errors.
func openAIError(p *problem.Error, status int) any {
	kind, code := "invalid_request_error", p.Code
	switch {
	case status == http.StatusUnauthorized:
		code = "invalid_api_key"
	case status == http.StatusTooManyRequests:
		kind, code = "rate_limit_error", "rate_limit_exceeded"
	case status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	message := p.Message
	if p.Kind == problem.Internal {
		message = "the server failed; it was logged"
	}
	if p.Hint != "" {
		message += " (" + p.Hint + ")"
	}
	return map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": code}}
}

func writeJSON(w http.ResponseWriter, contentType string, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		text = []byte(`{}`)
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
