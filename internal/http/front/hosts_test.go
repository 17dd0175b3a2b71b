package front_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/http/front"
)

// TestHosts asks a server on the loopback interface by several names, as a page in a browser can have its own name point here.
func TestHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		allowed []string
		host    string
		status  int
	}{
		{nil, "localhost:8080", 200}, {nil, "127.0.0.1", 200}, {nil, "[::1]:8080", 200}, {nil, "cove.localhost", 200}, {nil, "LOCALHOST.", 200},
		{nil, "evil.example", 421}, {nil, "evil.example:8080", 421}, {nil, "localhost.evil.example", 421}, {nil, "127.0.0.1.evil.example", 421}, {nil, "", 421},
		{[]string{"cove.example.com"}, "cove.example.com:443", 200}, {[]string{"cove.example.com"}, "xcove.example.com", 421},
		{[]string{"Cove.example.com.:8443"}, "cove.example.com", 200}, {[]string{"cove.example.com:8443"}, "cove.example.com:80", 200},
		{[]string{".example.com"}, "a.example.com", 200}, {[]string{".example.com"}, "evilexample.com", 421}, {[]string{"*"}, "anything", 200},
	} {
		g := newRig(t, front.Options{Hosts: c.allowed}, nil).listen(t)
		r, err := http.NewRequestWithContext(t.Context(), "GET", g.url+"/health", nil)
		must(t, err)
		r.Host = c.host
		if c.host == "" {
			r.Host = "."
		}
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != c.status {
			t.Errorf("%q with %v is a %d, not a %d", c.host, c.allowed, answer.StatusCode, c.status)
		}
	}
}

func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	const app = "https://app.example.com"
	for name, c := range map[string]struct {
		method  string
		headers []string
		status  int
		allowed string
	}{
		"a program":                       {"POST", nil, 200, ""},
		"another page posts":              {"POST", []string{"Origin", "https://evil.example"}, 403, ""},
		"another page's form":             {"POST", []string{"Sec-Fetch-Site", "cross-site"}, 403, ""},
		"another page says same-site":     {"POST", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "same-site"}, 403, ""},
		"no origin at all":                {"POST", []string{"Origin", "null"}, 403, ""},
		"a name that ends alike":          {"POST", []string{"Origin", "https://evilapp.example.com"}, 403, ""},
		"a name that begins alike":        {"POST", []string{"Origin", app + ".evil.example"}, 403, ""},
		"the allowed page":                {"POST", []string{"Origin", app, "Sec-Fetch-Site", "cross-site"}, 200, app},
		"the allowed page without TLS":    {"POST", []string{"Origin", "http://app.example.com"}, 403, ""},
		"the allowed page's preflight":    {"OPTIONS", []string{"Origin", app, "Access-Control-Request-Method", "POST"}, 204, app},
		"another page's preflight":        {"OPTIONS", []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "POST"}, 404, ""},
		"another page reads, cannot see":  {"GET", []string{"Origin", "https://evil.example"}, 404, ""},
		"another page upgrades":           {"GET", []string{"Origin", "https://evil.example", "Upgrade", "websocket"}, 403, ""},
		"no origin upgrades":              {"GET", []string{"Origin", "null", "Upgrade", "websocket"}, 403, ""},
		"a name that ends alike upgrades": {"GET", []string{"Origin", "https://evilapp.example.com", "Upgrade", "websocket"}, 403, ""},
		"the allowed page upgrades":       {"GET", []string{"Origin", app, "Upgrade", "websocket"}, 404, app},
		"a page of this server upgrades":  {"GET", []string{"Origin", "http://example.com", "Upgrade", "websocket"}, 404, ""},
		"a program upgrades":              {"GET", []string{"Upgrade", "websocket"}, 404, ""},
	} {
		g := newRig(t, front.Options{Origins: []string{app}}, nil)
		w := g.send(t, c.method, "/v1/things", anns, "{}", c.headers...)
		if c.status != 404 {
			want(t, name, w, c.status)
		} else if w.Code == 403 {
			t.Errorf("%s: it is refused", name)
		}
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != c.allowed {
			t.Errorf("%s: allowed is %q", name, got)
		}
		if got := w.Header().Get("Access-Control-Expose-Headers"); c.allowed != "" && c.method == "POST" && (!strings.Contains(got, "Location") || !strings.Contains(got, "Content-Range")) {
			t.Errorf("%s: it may read %s", name, got)
		}
		if c.status == 403 && codeOf(t, w) != "cross_origin" {
			t.Errorf("%s: %s", name, w.Body)
		}
	}
	g := newRig(t, front.Options{}, nil)
	want(t, "a preflight without a key where no page is allowed", g.ask(t, "OPTIONS", "/v1/things", "", "Origin", app, "Access-Control-Request-Method", "POST"), 401)
	_, err := front.New(front.Options{Origins: []string{"https://app.example.com/path"}, Limits: front.DefaultLimits()})
	if p := problem.Of(err); p == nil || p.Code != "origin_invalid" {
		t.Errorf("an origin with a path: %v", err)
	}
}
