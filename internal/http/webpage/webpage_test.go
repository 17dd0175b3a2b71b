package webpage_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"cove/internal/core/problem"
	"cove/internal/http/protocol"
	"cove/internal/http/webpage"
	"cove/web"
)

const index = `<!doctype html><html><head><title>cove</title><link rel="icon" href="./icon.svg"><script type="module" src="./assets/index.js"></script></head></html>`

func files() fstest.MapFS {
	return fstest.MapFS{
		"index.html":            {Data: []byte(index)},
		"frame.html":            {Data: []byte(`<!doctype html><script src="./assets/frame/shell.js"></script>`)},
		"icon.svg":              {Data: []byte("<svg/>")},
		"assets/index.js":       {Data: []byte(strings.Repeat("export const a = 1\n", 100))},
		"assets/style.css":      {Data: []byte("a{}")},
		"assets/frame/shell.js": {Data: []byte("1")},
	}
}

func newPage(t *testing.T, files fstest.MapFS) protocol.Surface {
	t.Helper()
	s, err := webpage.Surface(webpage.Options{Files: files, Taken: []string{"api", "v1", "health"},
		Refuse: func(w http.ResponseWriter, _ *http.Request, p *problem.Error) {
			http.Error(w, p.Message, http.StatusMethodNotAllowed)
		}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(t *testing.T, s protocol.Surface, method, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	return w
}

func find(t *testing.T, pattern, text string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in %s", pattern, text)
	}
	return m[1]
}

func TestWhatIsThePages(t *testing.T) {
	t.Parallel()
	s := newPage(t, files())
	hash := find(t, `assets/([0-9a-f]{20})/index\.js`, ask(t, s, "GET", "/").Body.String())
	for path, want := range map[string]bool{
		"/": true, "/c/cnv_123": true, "/settings": true, "/admin/users": true, "/icon.svg": true, "/frame": true, "/assets/" + hash + "/index.js": true,
		"/assets/" + hash + "/frame/shell.js": true,
		"/favicon.ico":                        false, "/c/a.b": false, "/index.html": false, "/frame.html": false, "/assets/index.js": false, "/assets/" + hash: false,
		"/assets/00000000000000000000/index.js": false, "/assets/" + hash + "/../index.html": false, "/assets/" + hash + "/": false, "/assets/" + hash + "/icon.svg": false,
		"/api": false, "/api/v1/nothing": false, "/API/v1": false, "/v1": false, "/v1/x": false, "/health": false, "/.env": false,
	} {
		if got := s.Serves("localhost", httptest.NewRequest(http.MethodGet, path, nil)); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	without := files()
	delete(without, "frame.html")
	if s := newPage(t, without); s.Serves("localhost", httptest.NewRequest(http.MethodGet, "/frame", nil)) {
		t.Error("a page without a frame has one")
	}
}

// TestLinksWorkBelowAnyPath: a browser that resolves the page's links from where it was asked for finds the files, also behind a proxy that adds a path.
func TestLinksWorkBelowAnyPath(t *testing.T) {
	t.Parallel()
	s := newPage(t, files())
	for path, up := range map[string]string{"/": "./", "/c": "./", "/c/": "../", "/c/cnv_1": "../", "/admin/x/y": "../../", "/c/a%2Fb": "../"} {
		body := ask(t, s, "GET", path).Body.String()
		for _, link := range []string{`src="` + up + "assets/", `href="` + up + `icon.svg"`, `<meta name="page-base" content="` + up + `">`} {
			if !strings.Contains(body, link) {
				t.Errorf("%s: no %s in %s", path, link, body)
			}
		}
	}
	own := files()
	own["index.html"].Data = []byte(`<head><meta name="n" content="__NONCE__"><meta name="b" content="__BASE__"></head>`)
	body := ask(t, newPage(t, own), "GET", "/c/1").Body.String()
	if strings.Contains(body, "__") || strings.Contains(body, "style-nonce") || !strings.Contains(body, `name="b" content="../"`) {
		t.Errorf("a page with places of its own is %s", body)
	}
}

func TestThePagesHeaders(t *testing.T) {
	t.Parallel()
	s := newPage(t, files())
	first, second := ask(t, s, "GET", "/"), ask(t, s, "GET", "/c/1")
	nonce := find(t, `<meta name="style-nonce" content="([^"]+)">`, first.Body.String())
	if strings.Contains(second.Body.String(), nonce) || len(nonce) < 22 {
		t.Errorf("the nonce %q is not one answer's", nonce)
	}
	want := map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy": "camera=(), microphone=(), geolocation=(), usb=(), clipboard-read=(self), clipboard-write=(self)",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-" + nonce + "'; img-src 'self' data: blob:; font-src 'self'; " +
			"connect-src 'self'; frame-src 'self'; worker-src 'self'; manifest-src 'self'; media-src 'self' blob:; form-action 'self'; base-uri 'none'; " +
			"frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'; trusted-types cove default",
	}
	for name, value := range want {
		if got := first.Header().Get(name); got != value {
			t.Errorf("%s is %q, not %q", name, got, value)
		}
	}
	head := ask(t, s, "HEAD", "/")
	if head.Body.Len() != 0 || head.Header().Get("Content-Length") != first.Header().Get("Content-Length") {
		t.Errorf("HEAD: %d bytes, length %s", head.Body.Len(), head.Header().Get("Content-Length"))
	}
	if w := ask(t, s, "POST", "/c/1"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestTheFrame(t *testing.T) {
	t.Parallel()
	s := newPage(t, files())
	w := ask(t, s, "GET", "/frame")
	want := "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data: blob:; font-src data:; " +
		"connect-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
	if got := w.Header().Get("Content-Security-Policy"); got != want || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("the frame's policy is %q", got)
	}
	script := find(t, `src="\./(assets/[0-9a-f]+/frame/shell\.js)"`, w.Body.String())
	h := ask(t, s, "GET", "/"+script).Header()
	if h.Get("Cross-Origin-Resource-Policy") != "cross-origin" || h.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("a script of the frame has %v", h)
	}
}

func TestAssets(t *testing.T) {
	t.Parallel()
	s := newPage(t, files())
	path := "/" + find(t, `"\./(assets/[0-9a-f]+/index\.js)"`, ask(t, s, "GET", "/").Body.String())
	plain := ask(t, s, "GET", path)
	h := plain.Header()
	if h.Get("Cache-Control") != "public, max-age=31536000, immutable" || h.Get("Content-Type") != "text/javascript; charset=utf-8" || h.Get("Content-Encoding") != "" ||
		h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" || h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a script has %v", h)
	}
	packed := ask(t, s, "GET", path, "Accept-Encoding", "br, gzip")
	r, err := gzip.NewReader(bytes.NewReader(packed.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != plain.Body.String() || packed.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("packed: %v, %v", err, packed.Header())
	}
	if packed.Header().Get("ETag") == h.Get("ETag") || packed.Header().Get("Vary") != "Accept-Encoding" {
		t.Error("both forms have one name")
	}
	for _, none := range []string{"gzip;q=0", "gzip; q=0.0", "identity", ""} {
		if w := ask(t, s, "GET", path, "Accept-Encoding", none); w.Header().Get("Content-Encoding") != "" {
			t.Errorf("%q gets it packed", none)
		}
	}
	same := ask(t, s, "GET", path, "Accept-Encoding", "gzip", "If-None-Match", `"x", W/`+packed.Header().Get("ETag"))
	if same.Code != http.StatusNotModified || same.Body.Len() != 0 {
		t.Errorf("what is known already is a %d", same.Code)
	}
	if w := ask(t, s, "HEAD", path); w.Body.Len() != 0 || w.Header().Get("Content-Length") != h.Get("Content-Length") {
		t.Error("HEAD has a body, or another length")
	}
	changed := files()
	changed["assets/style.css"].Data = []byte("b{}")
	if other := newPage(t, changed); other.Serves("localhost", httptest.NewRequest(http.MethodGet, path, nil)) {
		t.Error("another page has the same addresses")
	}
	if w := ask(t, s, "GET", "/icon.svg"); w.Header().Get("Cache-Control") != "public, no-cache" || !strings.Contains(w.Header().Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("the icon has %v", w.Header())
	}
}

// TestTheBuiltPage: the page that is compiled in can be served, and all that it links to is there.
func TestTheBuiltPage(t *testing.T) {
	t.Parallel()
	s, err := webpage.Surface(webpage.Options{Files: web.Dist()})
	if err != nil {
		t.Fatal(err)
	}
	body := ask(t, s, "GET", "/").Body.String()
	for _, m := range regexp.MustCompile(`(?:src|href)="\./([^"]+)"`).FindAllStringSubmatch(body, -1) {
		if !s.Serves("localhost", httptest.NewRequest(http.MethodGet, "/"+m[1], nil)) {
			t.Errorf("the page links to %s, which is not there", m[1])
		}
	}
	if !strings.Contains(body, `content="./"`) || strings.Contains(body, "__") {
		t.Errorf("the page is %s", body)
	}
	if _, err := webpage.Surface(webpage.Options{Files: fstest.MapFS{}}); err == nil {
		t.Error("a page of nothing is served")
	}
}

// TestScriptsOfOutputs: the frame runs them where the server allows that and they are asked for, and never with a connection or an origin.
func TestScriptsOfOutputs(t *testing.T) {
	t.Parallel()
	policy := func(scripts bool, address string) string {
		s, err := webpage.Surface(webpage.Options{Files: files(), Scripts: scripts})
		if err != nil {
			t.Fatal(err)
		}
		return ask(t, s, "GET", address).Header().Get("Content-Security-Policy")
	}
	plain := policy(true, "/frame")
	if strings.Contains(plain, "script-src 'self' 'unsafe") || policy(false, "/frame?scripts=1") != plain || policy(true, "/frame?scripts=2") != plain {
		t.Error("scripts of outputs run without being asked for, or where they may not")
	}
	got := policy(true, "/frame?scripts=1")
	if !strings.Contains(got, "script-src 'self' 'unsafe-inline'") || !strings.HasPrefix(got, "sandbox allow-scripts;") || !strings.Contains(got, "connect-src 'none'") {
		t.Errorf("the policy is %s", got)
	}
}
