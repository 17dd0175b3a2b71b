package front_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/http/front"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// TestEverythingButHealthNeedsAKey asks for addresses that exist and for others, by every method.
func TestEverythingButHealthNeedsAKey(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{Limits: limited(func(l *front.Limits) { l.KeyRate, l.ProjectRate = 0, 0 })}, nil)
	public := map[string]bool{"/health": true, "/health/ready": true, "/api/v1/health": true}
	n := 0
	for _, path := range []string{
		"/", "/health", "/health/ready", "/api/v1/health", "/metrics", "/api/v1/docs", "/api/v1/openapi.json", "/api/v1/things/1", "/v1/things/1",
		"/v1/health", "/api/", "/v1/", "/nothing", "/api/v1/health/x", "/health/", "/API/v1/health", "/debug/pprof/", "/v1", "/api/v1/things/../health",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "X"} {
			w := g.ask(t, method, path, "", "X-Forwarded-For", "1.2.3.4")
			open := public[path] && (method == "GET" || method == "HEAD")
			if open != (w.Code != http.StatusUnauthorized) {
				t.Errorf("%s %s without a key is a %d", method, path, w.Code)
			}
			if w.Code == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s does not say how to authenticate", method, path)
			}
			n++
		}
	}
	if n < 100 {
		t.Errorf("only %d requests were made", n)
	}
	open := newRig(t, front.Options{PublicDocs: true}, nil)
	want(t, "public documentation", open.ask(t, "GET", "/api/v1/docs", ""), http.StatusOK)
	want(t, "what is beside it", open.ask(t, "GET", "/api/v1/things/1", ""), http.StatusUnauthorized)
}

func TestHowAKeyIsSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"bearer":                 {[]string{"Authorization", "Bearer " + anns}, 200},
		"bearer in small":        {[]string{"Authorization", "bearer " + anns}, 200},
		"x-api-key":              {[]string{"X-Api-Key", anns}, 200},
		"both the same":          {[]string{"X-Api-Key", anns, "Authorization", "Bearer " + anns}, 200},
		"two different":          {[]string{"X-Api-Key", anns, "Authorization", "Bearer " + bobs}, 401},
		"a good and a bad one":   {[]string{"X-Api-Key", anns, "Authorization", "Bearer x"}, 401},
		"two bearers":            {[]string{"Authorization", "Bearer " + anns, "Authorization", "Bearer " + bobs}, 401},
		"two keys":               {[]string{"X-Api-Key", bobs, "X-Api-Key", anns}, 401},
		"basic":                  {[]string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(anns+":"))}, 401},
		"no scheme":              {[]string{"Authorization", anns}, 401},
		"nothing behind bearer":  {[]string{"Authorization", "Bearer "}, 401},
		"a cookie":               {[]string{"Cookie", "key=" + anns}, 401},
		"the database is away":   {[]string{"Authorization", "Bearer broken"}, 503},
		"a key that is not good": {[]string{"Authorization", "Bearer " + anns + "x"}, 401},
	} {
		g := newRig(t, front.Options{}, nil)
		for _, path := range []string{"/api/v1/things/1", "/v1/things/1"} {
			want(t, name+" at "+path, g.ask(t, "GET", path, "", c.headers...), c.status)
		}
	}
	g := newRig(t, front.Options{}, nil)
	want(t, "a key in the address", g.ask(t, "GET", "/v1/things/1?api_key="+anns+"&key="+anns+"&access_token="+anns, ""), 401)
}

func TestABrowserSendsTheKeyAsAPasswordForTheDocumentationAlone(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{}, nil)
	basic := func(name, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
	}
	if w := g.ask(t, "GET", "/api/v1/docs", "", "Accept", "text/html,*/*"); w.Code != 401 || !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Basic ") {
		t.Errorf("a browser gets %d, %q", w.Code, w.Header().Get("WWW-Authenticate"))
	}
	want(t, "a key as the password", g.ask(t, "GET", "/api/v1/docs", "", "Authorization", basic("me", anns)), 200)
	want(t, "another password", g.ask(t, "GET", "/api/v1/docs", "", "Authorization", basic("me", anns+"x")), 401)
	want(t, "a key as the name", g.ask(t, "GET", "/api/v1/docs", "", "Authorization", basic(anns, "")), 401)
	want(t, "two keys", g.ask(t, "GET", "/api/v1/docs", "", "Authorization", basic("me", anns), "Authorization", "Bearer "+anns), 401)
	for _, path := range []string{"/api/v1/things/1", "/v1/things/1", "/metrics", "/api/v1/docs/"} {
		w := g.ask(t, "GET", path, "", "Authorization", basic("me", anns), "Accept", "text/html")
		if w.Code != 401 || strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Basic") {
			t.Errorf("%s answers %d, %q to a password", path, w.Code, w.Header().Get("WWW-Authenticate"))
		}
	}
	want(t, "a change", g.ask(t, "POST", "/api/v1/docs", "", "Authorization", basic("me", anns)), 401)
}

// TestPlacesAreInColumns wants what is said of each place to begin in one column, also beside a long address.
func TestPlacesAreInColumns(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{Surfaces: []protocol.Surface{{About: "what has a long address", Prefix: "/a/rather/long/address/", Handler: http.NotFoundHandler(), Refuse: func(http.ResponseWriter, *http.Request, *problem.Error) {}}}}, nil)
	column := 0
	for line := range strings.Lines(g.ask(t, "GET", "/", "").Body.String()) {
		if !strings.HasPrefix(line, "/") {
			continue
		}
		at := strings.Index(line, "  ")
		for at >= 0 && line[at] == ' ' {
			at++
		}
		if column == 0 {
			column = at
		}
		if at != column || at <= len("/a/rather/long/address") {
			t.Errorf("%q begins at %d, others at %d", line, at, column)
		}
	}
	if column == 0 {
		t.Error("no place is said")
	}
}

func TestRefusalsHaveTheFormOfTheirSurface(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{}, nil)
	own := g.ask(t, "GET", "/api/v1/things/1", "x")
	var p map[string]any
	must(t, json.Unmarshal(own.Body.Bytes(), &p))
	if own.Header().Get("Content-Type") != "application/problem+json" || p["code"] != "unauthenticated" || p["status"] != 401.0 ||
		p["title"] != "Unauthorized" || p["detail"] == "" || p["kind"] != "denied" || p["request_id"] != own.Header().Get("X-Request-Id") {
		t.Errorf("the native API says %v", p)
	}
	theirs := g.ask(t, "GET", "/v1/things/1", "x")
	must(t, json.Unmarshal(theirs.Body.Bytes(), &p))
	e, _ := p["error"].(map[string]any)
	if theirs.Header().Get("Content-Type") != "application/json" || e["code"] != "invalid_api_key" || e["type"] != "invalid_request_error" || e["param"] != nil {
		t.Errorf("OpenAI's API says %v", p)
	}
	none, bad := g.ask(t, "GET", "/v1/things/1", ""), g.ask(t, "GET", "/v1/nothing", anns[:20])
	if codeOf(t, none) != codeOf(t, bad) {
		t.Error("a missing key and a wrong one have different codes")
	}
	docs := g.ask(t, "GET", "/api/v1/docs", "")
	must(t, json.Unmarshal(docs.Body.Bytes(), &p))
	if hint, _ := p["hint"].(string); !strings.Contains(hint, "docs/openapi.json") || !strings.Contains(hint, "serve.docs_public") {
		t.Errorf("that the documentation needs a key is said with %v", p)
	}
	if root := g.ask(t, "GET", "/", ""); !strings.Contains(root.Body.String(), "/api/v1/docs") {
		t.Errorf("the root does not say where things are: %s", root.Body)
	}
	want(t, "the root with a key", g.ask(t, "GET", "/", bobs), 200)
	want(t, "nothing with a key", g.ask(t, "GET", "/nothing", bobs), 404)
	for _, path := range []string{"/", "/health", "/health/ready", "/metrics"} {
		w := g.send(t, "POST", path, anns, "x")
		want(t, "a change of "+path, w, 405)
		if codeOf(t, w) != "method_not_allowed" || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}

func TestTheCallerIsKnownBehind(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{}, nil)
	w := g.ask(t, "GET", "/api/v1/things/1", bobs, "User-Agent", "prog/1 \x00\x1b[2J "+eves+strings.Repeat("x", 500), "X-Request-Id", "my-request-1", "X-Forwarded-For", "9.9.9.9")
	var who auth.Principal
	must(t, json.Unmarshal(w.Body.Bytes(), &who))
	if who.User != "usr_bob" || who.Request != "my-request-1" || who.IP != "192.0.2.1" {
		t.Errorf("the caller is %+v", who)
	}
	if !strings.HasPrefix(who.Agent, "prog/1") || strings.ContainsAny(who.Agent, "\x00\x1b") || len(who.Agent) > 220 || strings.Contains(who.Agent, eves) {
		t.Errorf("its program is %q", who.Agent)
	}
}

func TestManyWrongKeysAreHeldBack(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{}, nil)
	want(t, "a good key", g.ask(t, "GET", "/v1/things/1", anns), 200)
	held := 0
	for range 50 {
		w := g.ask(t, "GET", "/v1/things/1", "wrong")
		if w.Code == http.StatusTooManyRequests {
			held++
			if w.Header().Get("Retry-After") == "" {
				t.Fatal("it does not say when to come again")
			}
		} else {
			want(t, "a wrong key", w, 401)
		}
	}
	if held < 20 || held > 30 {
		t.Errorf("%d of 50 wrong keys were held back", held)
	}
	want(t, "a key that was good before, from the same address", g.ask(t, "GET", "/v1/things/1", anns), 200)
	want(t, "a right key that was not used before, from the same address", g.ask(t, "GET", "/v1/things/1", bobs), 200)
	want(t, "a wrong key behind that", g.ask(t, "GET", "/v1/things/1", "wrong"), 429)
	want(t, "health from the same address", g.ask(t, "GET", "/health", ""), 200)
	delete(g.people, anns) // revoked
	want(t, "a key that was good", g.ask(t, "GET", "/v1/things/1", anns), 429)
}

// TestAddressesAreTakenAsTheyAre: what is not plain is not sent to another address, which programs would take for success.
func TestAddressesAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{}, nil)
	for _, path := range []string{"/v1/files//a%20b", "//v1/files/a", "/v1/files/./a", "/v1/things/../files/a", "/v1/files/../../health", "/v1//", "/api/v1//"} {
		w := g.send(t, "PUT", path, bobs, "x")
		want(t, path, w, 404)
		if codeOf(t, w) != "route_not_found" || !strings.Contains(w.Body.String(), "//") {
			t.Errorf("%s: %s", path, w.Body)
		}
		want(t, path+" without a key", g.send(t, "PUT", path, "", "x"), 401)
	}
	for _, path := range []string{"/v1/files/a%20b", "/v1/files/%2e%2e", "/v1/files/a%2f%2fb"} { // the surface's matter
		want(t, path, g.send(t, "PUT", path, bobs, "x"), 200)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{}, nil)
	seen := map[protocol.Access]int{}
	for _, route := range g.Routes() {
		seen[route.Access]++
		path := strings.NewReplacer("{thing}", "1", "{$}", "").Replace(route.Pattern)
		if got := g.ask(t, route.Method, path, "").Code != 401; got != (route.Access == protocol.Public || route.Access == protocol.ByCode) {
			t.Errorf("%s %s: public is %t", route.Method, route.Pattern, got)
		}
	}
	if seen[protocol.Public] != 9 || seen[protocol.Documentation] != 3 || seen[protocol.WithKey] < 100 {
		t.Errorf("there are %v", seen)
	}
	if !strings.Contains(g.log.String(), "route=/api/v1/things/{thing} status=401") {
		t.Errorf("a refused request is not named by its route: %s", g.log)
	}
}
