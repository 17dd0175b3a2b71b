package front_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/http/front"
	"cove/internal/http/httpstatus"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// third is a surface that is called by names of its own and has everything there, and a fourth is what is left of all other addresses.
func third() []protocol.Surface {
	says := func(word string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, word) })
	}
	refuse := func(word string) func(http.ResponseWriter, *http.Request, *problem.Error) {
		return func(w http.ResponseWriter, _ *http.Request, p *problem.Error) {
			w.WriteHeader(httpstatus.Of(p))
			_, _ = io.WriteString(w, word+" refuses: "+p.Code)
		}
	}
	return []protocol.Surface{
		{About: "boxes", Host: ".box.test", Prefix: "/", Handler: says("box"), Refuse: refuse("box"),
			Routes: []protocol.Route{{Method: "GET", Pattern: "/open/{path...}", Access: protocol.Public}, {Method: "PUT", Pattern: "/big", Large: true}}},
		{About: "pages", Prefix: "/pages/", Handler: says("page"), Refuse: refuse("page"), Routes: []protocol.Route{{Method: "GET", Pattern: "/pages/x"}}},
	}
}

// TestASurfaceMoreIsAValueMore adds surfaces of which the front door knows nothing, one of them by the name of the host.
func TestASurfaceMoreIsAValueMore(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{Surfaces: third(), Limits: limited(func(l *front.Limits) { l.Body, l.Upload, l.KeyRate, l.ProjectRate = 10, 20, 0, 0 })}, nil)
	for _, c := range []struct {
		host, method, path, key, body string
		status                        int
		want                          string
	}{
		{"a.box.test", "GET", "/open/door", "", "", 200, "box"},
		{"a.box.test", "GET", "/health", bobs, "", 200, "box"},
		{"a.box.test", "GET", "/health", "", "", 401, "box refuses: unauthenticated"},
		{"a.box.test", "GET", "/api/v1/health", "", "", 401, "box refuses: unauthenticated"},
		{"a.box.test", "GET", "/api/v1/things/1", bobs, "", 200, "box"},
		{"a.box.test", "GET", "/open/%2e%2e/shut", "", "", 401, "box refuses: unauthenticated"},
		{"a.box.test", "PUT", "/big", bobs, strings.Repeat("x", 15), 200, "box"},
		{"a.box.test", "PUT", "/small", bobs, strings.Repeat("x", 15), 413, "box refuses: request_too_large"},
		{"box.test", "GET", "/open/door", "", "", 401, "unauthenticated"},
		{"localhost", "GET", "/open/door", "", "", 401, "unauthenticated"},
		{"localhost", "GET", "/pages/x", "", "", 401, "page refuses: unauthenticated"},
		{"localhost", "GET", "/pages/x", bobs, "", 200, "page"},
		{"localhost", "GET", "/api/v1/things/1", bobs, "", 200, "usr_bob"},
		{"localhost", "GET", "/health", "", "", 200, "ok"},
		{"localhost", "GET", "/", bobs, "", 200, "boxes"},
	} {
		w := g.send(t, c.method, c.path, c.key, c.body, "Host", c.host)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s%s: %d %s, want %d and %q", c.method, c.host, c.path, w.Code, w.Body, c.status, c.want)
		}
	}
	strict := newRig(t, front.Options{Surfaces: third(), Hosts: []string{"cove.test"}}, nil)
	for host, status := range map[string]int{"cove.test": 200, "a.box.test": 200, "evil.test": 421} {
		want(t, "called "+host, strict.ask(t, "GET", "/pages/x", bobs, "Host", host), status)
	}
}

// TestASurfacesOwnWaysForKeys: a surface may take keys in further ways, which count there alone, and two different ones are none.
func TestASurfacesOwnWaysForKeys(t *testing.T) {
	t.Parallel()
	whose := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, _ := auth.From(r.Context())
		_, _ = io.WriteString(w, who.User)
	})
	g := newRig(t, front.Options{Surfaces: []protocol.Surface{{About: "notes", Prefix: "/notes/", Handler: whose, Routes: []protocol.Route{{Method: "GET", Pattern: "/notes/x"}},
		Keys: func(r *http.Request) []string { return r.URL.Query()["token"] }, Refuse: third()[1].Refuse}}}, nil)
	for _, c := range []struct {
		path, key, header string
		status            int
		want              string
	}{
		{"/notes/x?token=" + bobs, "", "", 200, "usr_bob"},
		{"/notes/x?token=" + bobs, bobs, "", 200, "usr_bob"},
		{"/notes/x", bobs, "", 200, "usr_bob"},
		{"/notes/x?token=" + bobs, "", "Basic cHJveHk6c2VjcmV0", 200, "usr_bob"},
		{"/notes/x?token=" + bobs, anns, "", 401, "page refuses: unauthenticated"},
		{"/notes/x?token=" + bobs + "&token=" + anns, "", "", 401, "page refuses: unauthenticated"},
		{"/notes/x?token=wrong", "", "", 401, "page refuses: unauthenticated"},
		{"/notes/x?token=", "", "", 401, "page refuses: unauthenticated"},
		{"/notes/x", "", "Basic cHJveHk6c2VjcmV0", 401, "page refuses: unauthenticated"},
		{"/api/v1/things/1?token=" + bobs, "", "", 401, "unauthenticated"},
	} {
		var headers []string
		if c.header != "" {
			headers = []string{"Authorization", c.header}
		}
		w := g.ask(t, "GET", c.path, c.key, headers...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s with %q and %q: %d %s, want %d and %q", c.path, c.key, c.header, w.Code, w.Body, c.status, c.want)
		}
	}
}

// TestASurfacesTokens: a surface may take what has not the form of a key, and nobody else gets it. Wrong ones are held back as wrong keys are, an issuer that is gone is nobody's mistake.
func TestASurfacesTokens(t *testing.T) {
	t.Parallel()
	whose := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, _ := auth.From(r.Context())
		_, _ = io.WriteString(w, who.User)
	})
	tokens := func(_ context.Context, token string) (auth.Principal, error) {
		switch token {
		case "good.good.good":
			return auth.Principal{User: "usr_ada", Project: "prj_1", Key: "key_tokens", Role: auth.Member}, nil
		case "gone.gone.gone":
			return auth.Principal{}, problem.New(problem.IssuerUnavailable, "the issuer is gone")
		}
		if auth.IsKey(token) {
			t.Errorf("a key went to the issuer: %s", token)
		}
		return auth.Principal{}, problem.New(problem.TokenInvalid, "no")
	}
	g := newRig(t, front.Options{Surfaces: []protocol.Surface{{About: "notes", Prefix: "/notes/", Handler: whose, Routes: []protocol.Route{{Method: "GET", Pattern: "/notes/x"}}, Tokens: tokens, Refuse: third()[1].Refuse}}}, nil)
	for _, c := range []struct {
		path, key string
		status    int
		want      string
	}{
		{"/notes/x", "good.good.good", 200, "usr_ada"},
		{"/notes/x", bobs, 200, "usr_bob"},
		{"/notes/x", "", 401, "page refuses: unauthenticated"},
		{"/notes/x", bobs + "x", 401, "page refuses: unauthenticated"},
		{"/notes/x", "bad.bad.bad", 401, "page refuses: token_invalid"},
		{"/notes/x", "gone.gone.gone", 503, "page refuses: issuer_unavailable"},
		{"/api/v1/things/1", "good.good.good", 401, "unauthenticated"},
	} {
		w := g.ask(t, "GET", c.path, c.key)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s with %q: %d %s, want %d and %q", c.path, c.key, w.Code, w.Body, c.status, c.want)
		}
	}
	for range 40 {
		g.ask(t, "GET", "/notes/x", "gone.gone.gone")
	}
	want(t, "a wrong one, when the issuer was gone often", g.ask(t, "GET", "/notes/x", "bad.bad.bad"), 401)
	for range 40 {
		g.ask(t, "GET", "/notes/x", "bad.bad.bad")
	}
	want(t, "a wrong one too many", g.ask(t, "GET", "/notes/x", "bad.bad.bad"), 429)
	want(t, "a right one", g.ask(t, "GET", "/notes/x", "good.good.good"), 200)
}
