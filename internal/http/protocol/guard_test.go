package protocol_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// told is an answer in a client's own words.
type told struct{}

func (told) Error() string   { return "Sandbox not found" }
func (told) HTTPStatus() int { return http.StatusNotFound }

// TestGuard: what is the server's own fault is logged, what is the client's is not; nobody without the rights gets to a route.
func TestGuard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		role   auth.Role
		err    error
		asked  bool
		logged bool
	}{
		"nobody":         {"", nil, false, false},
		"a viewer":       {auth.Viewer, nil, false, false},
		"all is well":    {auth.Owner, nil, true, false},
		"a problem":      {auth.Owner, problem.New(problem.SessionNotFound, "there is none"), true, false},
		"own words":      {auth.Owner, told{}, true, false},
		"a fault inside": {auth.Owner, errors.New("kingfisher"), true, true},
	} {
		var log bytes.Buffer
		asked, refused := false, false
		h := protocol.Guard([]auth.Action{auth.SessionsWrite}, "set a key", slog.New(slog.NewTextHandler(&log, nil)), func(http.ResponseWriter, *http.Request, auth.Principal) error {
			asked = true
			return c.err
		}, func(http.ResponseWriter, error) { refused = true })
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
		if c.role != "" {
			who := auth.Local()
			who.Role = c.role
			r = r.WithContext(auth.With(r.Context(), who))
		}
		h(httptest.NewRecorder(), r)
		if asked != c.asked || refused != (c.err != nil || !c.asked) || log.Len() > 0 != c.logged {
			t.Errorf("%s: asked %v, refused %v, logged %q", name, asked, refused, log.String())
		}
	}
}
