package gateway_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/python/deps/gateway"
	"cove/internal/python/pyindex"
)

const host = "http://index.cove.invalid"

// client is one whose only way out is a proxy.
func client(t *testing.T, proxy string) *http.Client {
	t.Helper()
	via, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(via)}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func serveGateway(t *testing.T, g *gateway.Gateway) *http.Client {
	t.Helper()
	proxy, err := g.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return client(t, proxy)
}

// reply is an answer without its body.
type reply struct {
	Status        string
	StatusCode    int
	Header        http.Header
	ContentLength int64
}

// get asks with headers, given as name and value.
func get(t *testing.T, c *http.Client, method, place string, headers ...string) (reply, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, place, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("%s: %v", place, err)
	}
	return reply{answer.Status, answer.StatusCode, answer.Header, answer.ContentLength}, string(body)
}

func TestPagesForClients(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.page("demo", kindJSON, inJSON(t,
		file(wheel1, "one").with("requires-python", ">=3.8").with("yanked", `bro"<ken`).with("core-metadata", map[string]string{"sha256": sum("meta")}),
		file(wheel2, "two").with("upload-time", "2026-06-01T11:00:00Z"),
		file("demo-3.0-py3-none-any.whl", "three").with("yanked", true).with("dist-info-metadata", true),
		file("demo-3.0.tar.gz", "sdist")))
	o := options(t, s.source())
	o.Rules.MinAge = 24 * time.Hour
	g := open(t, o)
	c := serveGateway(t, g)

	answer, body := get(t, c, http.MethodGet, host+"/simple/demo/", "Accept", kindJSON+", text/html;q=0.1")
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != kindJSON {
		t.Fatalf("got %s, %v", answer.Status, answer.Header)
	}
	var got any
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	place := func(name, content string) string { return host + "/files/demo/" + sum(content) + "/" + name }
	want := map[string]any{"meta": map[string]any{"api-version": "1.1"}, "name": "demo", "versions": []any{"1.0", "3.0"}, "files": []any{
		map[string]any{"filename": wheel1, "url": place(wheel1, "one"), "hashes": map[string]any{"sha256": sum("one")}, "requires-python": ">=3.8", "size": 3.0,
			"upload-time": "2026-01-01T00:00:00Z", "yanked": `bro"<ken`, "core-metadata": map[string]any{"sha256": sum("meta")}},
		map[string]any{"filename": "demo-3.0-py3-none-any.whl", "url": place("demo-3.0-py3-none-any.whl", "three"), "hashes": map[string]any{"sha256": sum("three")}, "size": 5.0,
			"upload-time": "2026-01-01T00:00:00Z", "yanked": true, "core-metadata": true},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	tag := answer.Header.Get("ETag")
	if answer, body = get(t, c, http.MethodGet, host+"/simple/demo/", "Accept", kindJSON, "If-None-Match", tag); answer.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("the same page again: %s", answer.Status)
	}
	if answer, body = get(t, c, http.MethodGet, host+"/simple/demo", "Accept", "text/html", "If-None-Match", tag); answer.StatusCode != http.StatusOK {
		t.Errorf("the page in another form: %s", answer.Status)
	}
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") || strings.Count(body, "<a ") != 2 ||
		!strings.Contains(body, `<a href="`+place(wheel1, "one")+`#sha256=`+sum("one")+`" data-requires-python="&gt;=3.8" data-yanked="bro&#34;&lt;ken" data-upload-time="2026-01-01T00:00:00Z" data-core-metadata="sha256=`+sum("meta")+`">`) {
		t.Errorf("got %v\n%s", answer.Header, body)
	}

	// As time goes by, the page is another one.
	o.Now = func() time.Time { return noon.Add(48 * time.Hour) }
	if answer, _ = get(t, serveGateway(t, open(t, o)), http.MethodGet, host+"/simple/demo/", "Accept", kindJSON, "If-None-Match", tag); answer.StatusCode != http.StatusOK {
		t.Errorf("the page with a file more: %s", answer.Status)
	}
	if answer, body = get(t, c, http.MethodGet, host+"/simple/", "Accept", kindJSON); answer.StatusCode != http.StatusOK || !strings.Contains(body, `"projects":[]`) {
		t.Errorf("the root: %s %s", answer.Status, body)
	}
}

func TestStatusesForClients(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.page("demo", kindJSON, inJSON(t, file(wheel1, "one"), file(wheel2, "two").with("upload-time", nil)))
	s.page("evil", kindJSON, `{"meta":{"api-version":"1.4","project-status":"quarantined"},"files":[]}`)
	s.on("/simple/down/", status(500))
	o := options(t, s.source())
	o.Rules = gateway.Rules{Deny: []string{"bad"}, MinAge: time.Hour}
	g := open(t, o)
	c := serveGateway(t, g)
	for _, tt := range []struct {
		method, place string
		status        int
		words         string
	}{
		{"GET", host + "/simple/bad/", 404, "never installed"},
		{"GET", host + "/simple/evil/", 404, "quarantined"},
		{"GET", host + "/simple/absent/", 404, "no package absent"},
		{"GET", host + "/simple/down/", 502, "not working"},
		{"GET", host + "/simple/De_mo/", 301, ""},
		{"GET", host + "/simple/a/b/", 404, ""},
		{"GET", host + "/", 404, gateway.IndexURL},
		{"GET", host + "/files/demo/" + sum("one") + "/x/" + wheel1, 404, ""},
		{"GET", host + "/files/demo/" + sum("two") + "/" + wheel1, 404, "no file"},
		{"GET", host + "/files/demo/" + sum("two") + "/" + wheel2, 403, "does not say when"},
		{"GET", host + "/files/demo/" + sum("one") + "/" + wheel1 + ".metadata", 404, ""},
		{"POST", host + "/simple/demo/", 405, ""},
		{"GET", "http://169.254.169.254/latest/meta-data/", 403, "alone"},
		{"GET", s.URL + "/simple/demo/", 403, "alone"},
		{"GET", "http://index.cove.invalid:8080/simple/demo/", 403, "alone"},
		{"GET", "http://index.cove.invalid:80/simple/absent/", 404, "absent"},
	} {
		answer, body := get(t, c, tt.method, tt.place)
		if answer.StatusCode != tt.status || !strings.Contains(body, tt.words) {
			t.Errorf("%s %s: %s\n%s", tt.method, tt.place, answer.Status, body)
		}
	}
	if answer, _ := get(t, c, http.MethodGet, host+"/simple/De_mo/"); answer.Header.Get("Location") != gateway.IndexURL+"de-mo/" {
		t.Errorf("redirected to %s", answer.Header.Get("Location"))
	}
	var failed []string
	for name := range g.Failures() {
		failed = append(failed, name)
	}
	if len(failed) != 4 {
		t.Errorf("failures are told of %v", failed)
	}
}

// A forwarder in front of a sandbox sends requests in origin form, and Serve wants its password.
func TestProtocol(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.page("demo", kindJSON, inJSON(t, file(wheel1, "one")))
	g := open(t, options(t, s.source()))
	inner := httptest.NewServer(g.Handler())
	t.Cleanup(inner.Close)
	proxy, err := g.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	via, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ address, line, host, want string }{
		{inner.URL, "GET /simple/demo/", "index.cove.invalid", "200"},
		{inner.URL, "GET /simple/demo/", "INDEX.cove.invalid:80", "200"},
		{inner.URL, "GET /simple/demo/", strings.TrimPrefix(inner.URL, "http://"), "403"},
		{inner.URL, "GET http://index.cove.invalid/simple/demo/", "elsewhere.invalid", "200"},
		{inner.URL, "GET https://index.cove.invalid/simple/demo/", "index.cove.invalid", "403"},
		{inner.URL, "GET http://elsewhere.invalid/simple/demo/", "index.cove.invalid", "403"},
		{inner.URL, "GET /simple/../files/", "index.cove.invalid", "404"},
		{inner.URL, "CONNECT index.cove.invalid:443", "index.cove.invalid:443", "403"},
		{"http://" + via.Host, "GET http://index.cove.invalid/simple/demo/", "index.cove.invalid", "407"},
		{"http://" + via.Host, "CONNECT index.cove.invalid:443", "index.cove.invalid:443", "407"},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(tt.address, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", tt.line, tt.host)
		status, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.HasPrefix(status, "HTTP/1.1 "+tt.want) {
			t.Errorf("%s for %s: %q, %v", tt.line, tt.host, status, err)
		}
		conn.Close()
	}
}

func TestFilesForClients(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 100_000)
	ranges := func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", noon, strings.NewReader(content))
	}
	s := serve(t)
	s.page("demo", kindJSON, inJSON(t, file(wheel1, content).with("core-metadata", map[string]string{"sha256": sum("meta")}), file(wheel2, content).with("size", 0).with("core-metadata", true),
		file("demo-3.0-py3-none-any.whl", "lie").with("size", 0).with("core-metadata", map[string]string{"sha256": sum("meta")}), file("demo-4.0-py3-none-any.whl", "gone")))
	s.on("/files/"+wheel1, ranges)
	s.on("/files/"+wheel2, ranges)
	s.on("/files/demo-3.0-py3-none-any.whl", text("", content))
	s.on("/files/"+wheel1+".metadata", text("", "meta"))
	s.on("/files/"+wheel2+".metadata", text("", "other"))
	s.on("/files/demo-3.0-py3-none-any.whl.metadata", text("", "lie"))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "demo-5.0-py3-none-any.whl"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	g := open(t, options(t, pyindex.Source{Folder: dir}, s.source()))
	c := serveGateway(t, g)
	place := func(name, content string) string { return host + "/files/demo/" + sum(content) + "/" + name }

	for _, name := range []string{wheel1, wheel2, "demo-5.0-py3-none-any.whl"} {
		answer, _ := get(t, c, http.MethodHead, place(name, content))
		if answer.StatusCode != 200 || answer.ContentLength != int64(len(content)) || answer.Header.Get("Accept-Ranges") != "bytes" || !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("HEAD of %s: %s %v", name, answer.Status, answer.Header)
		}
		answer, body := get(t, c, http.MethodGet, place(name, content))
		if answer.StatusCode != 200 || body != content {
			t.Errorf("%s: %s, %d bytes", name, answer.Status, len(body))
		}
		if again, _ := get(t, c, http.MethodGet, place(name, content), "If-None-Match", answer.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s again: %s", name, again.Status)
		}
		for question, want := range map[string]string{"bytes=-5": content[len(content)-5:], "bytes=3-7": content[3:8], "bytes=999990-": content[999990:]} {
			answer, body = get(t, c, http.MethodGet, place(name, content), "Range", question)
			if answer.StatusCode != http.StatusPartialContent || body != want || answer.Header.Get("Content-Range") == "" {
				t.Errorf("%s of %s: %s, %q", question, name, answer.Status, body)
			}
		}
		if answer, _ = get(t, c, http.MethodGet, place(name, content), "Range", "bytes=5000000-"); answer.StatusCode != http.StatusRequestedRangeNotSatisfiable {
			t.Errorf("beyond the end of %s: %s", name, answer.Status)
		}
	}
	if n := len(s.asked("/files/" + wheel1)); n != 5 {
		t.Errorf("the index was asked %d times: the HEAD or the 304 went on to it", n)
	}
	for name, want := range map[string]string{place(wheel1, content): "200 meta", place(wheel2, content): "200 other", place("demo-3.0-py3-none-any.whl", "lie"): "502 "} {
		answer, body := get(t, c, http.MethodGet, name+".metadata")
		if got := fmt.Sprint(answer.StatusCode, " ", body); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	answer, body := get(t, c, http.MethodGet, place("demo-4.0-py3-none-any.whl", "gone"))
	if answer.StatusCode != http.StatusNotFound || !strings.Contains(body, "does not have it") || answer.Header.Get("ETag") != "" {
		t.Errorf("a file that is gone: %s %v %s", answer.Status, answer.Header, body)
	}
	// Of a file that is not what the page promises, a client never sees the end.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, place("demo-3.0-py3-none-any.whl", "lie"), nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := c.Do(r)
	if err == nil {
		_, err = io.ReadAll(whole.Body)
		whole.Body.Close()
	}
	if err == nil {
		t.Error("a client was given a whole file whose hash is wrong")
	}
}
