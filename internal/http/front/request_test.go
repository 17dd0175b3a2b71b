package front_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"cove/internal/http/front"
)

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{}, nil)
	for id, kept := range map[string]bool{
		"01234567-89ab-cdef": true, "req_06f1k3t3y4m0v8s2k5r7w9x1z4": true, "": false, "short": false, "with space here": false, "new\nline-line": false,
		strings.Repeat("x", 101): false, anns: false, "sk-1234567890abcdef": false, "ünicode-id": false,
	} {
		got := g.ask(t, "GET", "/health", "", "X-Request-Id", id).Header().Get("X-Request-Id")
		if got == "" || (got == id) != kept {
			t.Errorf("%q became %q", id, got)
		}
	}
}

func TestPanics(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{}, nil).listen(t)
	for _, path := range []string{"/api/v1/panic", "/v1/panic"} {
		w := g.ask(t, "GET", path, anns)
		want(t, path, w, 500)
		if strings.Contains(w.Body.String(), "secret") || strings.Contains(w.Body.String(), ".go") {
			t.Errorf("the answer tells about the fault: %s", w.Body)
		}
		if !strings.Contains(g.log.String(), w.Header().Get("X-Request-Id")) {
			t.Error("the log does not have the request")
		}
	}
	if log := g.log.String(); !strings.Contains(log, "kit_test.go") || strings.Contains(log, eves) || !strings.Contains(log, "status=500") {
		t.Errorf("the log is %s", log)
	}
	if text := metrics(t, g); !strings.Contains(text, "cove_panics_total 2\n") || !strings.Contains(text, `route="/v1/panic",status="5xx"`) {
		t.Error("the faults are not counted")
	}
	// Half an answer must not look like a whole one.
	r, err := http.NewRequestWithContext(t.Context(), "GET", g.url+"/v1/half", nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+anns)
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the answer %q ended with %v", text, err)
	}
	want(t, "the next request", g.ask(t, "GET", "/health", ""), 200)
}

func metrics(t *testing.T, g *rig) string {
	t.Helper()
	w := g.ask(t, "GET", "/metrics", anns)
	want(t, "/metrics", w, 200)
	return w.Body.String()
}

// TestTheLogHasNothingThatCallersChoose: a canary in every part of a request is in no line and in no metric.
func TestTheLogHasNothingThatCallersChoose(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{}, nil)
	for _, canary := range []string{anns, "sk-upstream-0123456789", "plainwords"} {
		for _, key := range []string{anns, bobs, "wrong-" + canary} {
			for _, path := range []string{"/api/v1/things/", "/v1/things/", "/v1/nothing/", "/", "/api/v1/files/"} {
				for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
					g.send(t, method, path+canary+"?q="+canary, key, `{"x":"`+canary+`"}`, "User-Agent", canary, "Referer", canary, "Origin", "http://"+canary)
				}
			}
		}
		if strings.Contains(g.log.String(), canary) {
			t.Errorf("the log has %s", canary)
		}
		if strings.Contains(metrics(t, g), canary) {
			t.Errorf("the metrics have %s", canary)
		}
	}
	log := g.log.String()
	for _, wanted := range []string{`route=/api/v1/things/{thing}`, "method=GET", "status=200", "status=401", "key=" + annID, "seconds=", "bytes=", "request=req_", "ip=192.0.2.1"} {
		if !strings.Contains(log, wanted) {
			t.Errorf("the log lacks %s", wanted)
		}
	}
}

func TestMetricsHavePatternsOnly(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{Limits: limited(func(l *front.Limits) { l.KeyRate, l.ProjectRate = 0, 0 })}, nil)
	for i := range 300 {
		g.ask(t, "GET", fmt.Sprintf("/api/v1/things/%d", i), anns)
		g.ask(t, "GET", fmt.Sprintf("/nothing/%d", i), anns)
		g.ask(t, fmt.Sprintf("METHOD%d", i), "/v1/x", anns)
	}
	text := metrics(t, g)
	if !strings.Contains(text, `cove_http_request_seconds_count{method="GET",route="/api/v1/things/{thing}",status="2xx"} 300`) {
		t.Errorf("the requests are not counted by their pattern:\n%s", text)
	}
	if n := strings.Count(text, "cove_http_request_seconds_count{"); n > 5 {
		t.Errorf("there are %d series:\n%s", n, text)
	}
}

func TestMetricsAreForAdmins(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{}, nil)
	want(t, "without a key", g.ask(t, "GET", "/metrics", ""), 401)
	want(t, "a member", g.ask(t, "GET", "/metrics", bobs), 403)
	want(t, "an owner of a project", g.ask(t, "GET", "/metrics", eves), 403)
	want(t, "an admin of the server", g.ask(t, "GET", "/metrics", anns), 200)
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ready  func(context.Context) error
		status int
	}{
		"nothing to ask": {nil, 200},
		"ready":          {func(context.Context) error { return nil }, 200},
		"not ready":      {func(context.Context) error { return errors.New("postgres://u:p@host is down") }, 503},
	} {
		g := newRig(t, front.Options{Ready: c.ready}, nil)
		w := g.ask(t, "GET", "/health/ready", "")
		want(t, name, w, c.status)
		if strings.Contains(w.Body.String(), "postgres") {
			t.Errorf("%s: everybody is told %s", name, w.Body)
		}
		want(t, "alive", g.ask(t, "GET", "/health", ""), 200)
	}
	asked := 0
	g := newRig(t, front.Options{Ready: func(context.Context) error { asked++; return nil }}, nil)
	for range 100 {
		g.ask(t, "GET", "/health/ready", "")
	}
	for range 100 {
		must(t, g.Ready(t.Context())) // the surface's own route
	}
	if asked > 2 {
		t.Errorf("everybody can have the database asked: %d times", asked)
	}
}

func TestWhomARequestComesFrom(t *testing.T) {
	t.Parallel()
	proxy := netip.MustParsePrefix("10.0.0.0/8")
	for _, c := range []struct{ from, forwarded, want string }{
		{"10.0.0.1:1", "1.2.3.4", "1.2.3.4"},
		{"10.0.0.1:1", "6.6.6.6, 1.2.3.4, 10.9.9.9", "1.2.3.4"}, // the caller wrote the first itself
		{"10.0.0.1:1", "nonsense", "10.0.0.1"},
		{"10.0.0.1:1", "", "10.0.0.1"},
		{"5.5.5.5:1", "1.2.3.4", "5.5.5.5"},
		{"[::ffff:5.5.5.5]:1", "", "5.5.5.5"},
		{"@", "", "local"}, // a unix socket, which is the server's own user's
		{"@", "nonsense", "local"},
		{"@", "6.6.6.6, 1.2.3.4", "1.2.3.4"},
		{"", "6.6.6.6, 1.2.3.4, 10.9.9.9", "1.2.3.4"},
	} {
		g := newRig(t, front.Options{Proxies: []netip.Prefix{proxy}}, nil)
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/things/1", nil)
		r.RemoteAddr = c.from
		r.Header.Set("X-Forwarded-For", c.forwarded)
		g.ServeHTTP(httptest.NewRecorder(), r)
		if !strings.Contains(g.log.String(), "ip="+c.want+" ") {
			t.Errorf("%s for %q is not %s: %s", c.from, c.forwarded, c.want, g.log)
		}
	}
}
