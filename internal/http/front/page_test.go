package front_test

import (
	"net/http"
	"strings"
	"testing"

	"cove/internal/http/api"
	"cove/internal/http/front"
	"cove/internal/http/protocol"
	"cove/internal/http/webpage"
	"cove/web"
)

func withPage(t *testing.T) *rig {
	t.Helper()
	p, err := webpage.Surface(webpage.Options{Files: web.Dist(), Refuse: api.Refuse, Taken: []string{"api", "v1", "health", "metrics", "debug"}})
	must(t, err)
	return newRig(t, front.Options{Surfaces: []protocol.Surface{p}}, nil)
}

// TestThePageIsBesideEverythingElse: browsers get it without a key, and every other address is as it was.
func TestThePageIsBesideEverythingElse(t *testing.T) {
	t.Parallel()
	g := withPage(t)
	for _, path := range []string{"/", "/c/cnv_1", "/settings", "/icon.svg"} {
		w := g.ask(t, "GET", path, "", "Accept", "text/html,*/*;q=0.8")
		want(t, path, w, http.StatusOK)
		if w.Header().Get("Content-Security-Policy") == "" || strings.Contains(w.Header().Get("Content-Type"), "plain") {
			t.Errorf("%s: %v", path, w.Header())
		}
		want(t, "HEAD "+path, g.ask(t, "HEAD", path, "", "Accept", "text/html"), http.StatusOK)
		want(t, "POST "+path, g.ask(t, "POST", path, "", "Accept", "text/html"), http.StatusUnauthorized)
	}
	want(t, "the root for curl, without a key", g.ask(t, "GET", "/", "", "Accept", "*/*"), http.StatusUnauthorized)
	if w := g.ask(t, "GET", "/", anns, "Accept", "*/*"); w.Code != 200 || !strings.Contains(w.Body.String(), "/api/v1/docs") || w.Header().Get("Vary") != "Accept" {
		t.Errorf("the root for curl: %d %s", w.Code, w.Body)
	}
	for _, path := range []string{"/favicon.ico", "/.git/config", "/c/x.html", "/api", "/api/nothing", "/v1", "/v1/nothing", "/metrics", "/debug", "/debug/pprof", "/health/x", "/assets/index.js", "/c//x"} {
		without, with := g.ask(t, "GET", path, "", "Accept", "text/html"), g.ask(t, "GET", path, bobs, "Accept", "text/html")
		want(t, path, without, http.StatusUnauthorized)
		if with.Code != http.StatusNotFound && with.Code != http.StatusForbidden {
			t.Errorf("%s with a key: %d", path, with.Code)
		}
	}
	want(t, "health", g.ask(t, "GET", "/health", "", "Accept", "text/html"), http.StatusOK)
}
