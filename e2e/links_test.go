package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cove/internal/http/api"
	"cove/internal/testkit/testneeds"
)

// visitor is somebody's browser, which finds every name at the server and has no key.
type visitor struct {
	t    *testing.T
	http *http.Client
}

func newVisitor(t *testing.T, s *server) visitor {
	at := strings.TrimPrefix(s.base, "http://")
	jar := map[string][]*http.Cookie{}
	return visitor{t, &http.Client{
		Transport: &keeping{jar, &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", at)
		}}},
		CheckRedirect: nil,
	}}
}

// keeping keeps cookies by host.
type keeping struct {
	jar  map[string][]*http.Cookie
	next http.RoundTripper
}

func (k *keeping) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for _, c := range k.jar[r.URL.Host] {
		r.AddCookie(c)
	}
	answer, err := k.next.RoundTrip(r)
	if err == nil {
		k.jar[r.URL.Host] = append(k.jar[r.URL.Host], answer.Cookies()...)
	}
	return answer, err
}

func (v visitor) get(at string) (status int, text string) {
	v.t.Helper()
	request, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, at, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	answer, err := v.http.Do(request)
	if err != nil {
		v.t.Fatalf("%s: %v", at, err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Errorf("%s: %v", at, err)
	}
	return answer.StatusCode, string(body)
}

// until asks again until the answer is right.
func (v visitor) until(at, want string) {
	v.t.Helper()
	status, text := 0, ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if status, text = v.get(at); status == 200 && strings.Contains(text, want) {
			return
		}
	}
	v.t.Fatalf("%s: %d %.300s, and not %s", at, status, text, want)
}

func (s *server) link(session string, of map[string]any) (made api.MadeLink) {
	s.t.Helper()
	s.must(http.MethodPost, "/api/v1/sessions/"+session+"/links", of, &made)
	return made
}

// pythonServer and nodeServer say what they were asked for.
const pythonServer = `
from flask import Flask, request
app = Flask(__name__)
@app.route("/", defaults={"path": ""})
@app.route("/<path:path>")
def any(path): return f"python at /{path} of {request.host} {sorted(request.cookies)} {request.headers.get('Authorization')}"
app.run("127.0.0.1", 8000)
`

const nodeServer = `require("http").createServer((q, s) => { s.setHeader("Set-Cookie", "own=1"); s.end("node at " + q.url + " of " + q.headers.host) })
  .on("upgrade", (q, c) => {
    const key = require("crypto").createHash("sha1").update(q.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64")
    c.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + key + "\r\n\r\n")
    c.write(Buffer.concat([Buffer.from([0x81, 5]), Buffer.from("hello")]))
  }).listen(3000, "127.0.0.1")`

// TestPortsForBrowsers reaches a Flask and a Node server of a session by its name, by a link's path, and with a key, over a pause and a kill of the server.
func TestPortsForBrowsers(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	s := startServer(t, dir, testKey(t), "COVE_PORTS=https://ports.test")
	session := s.session()
	start := func(command ...string) {
		t.Helper()
		s.must(http.MethodPost, "/api/v1/sessions/"+session+"/processes", map[string]any{"command": command}, nil)
	}
	s.must(http.MethodPost, "/api/v1/sessions/"+session+"/packages", map[string]any{"requirements": []string{"flask"}}, nil)
	start("python", "-c", pythonServer)
	if _, err := exec.LookPath("node"); err != nil {
		t.Fatal("there is no node, which `make services` installs")
	}
	start("node", "-e", nodeServer)

	named, other := s.link(session, map[string]any{"purpose": "port", "port": 8000}), s.link(session, map[string]any{"purpose": "port", "port": 3000, "wakes": true})
	_, id, _ := strings.Cut(session, "_")
	if want := "https://8000-" + id + ".ports.test/?cove-link=" + named.Secret; named.URL != want || named.At != "/p/"+named.Secret+"/" || named.Expires == nil {
		t.Fatalf("made: %+v, want %s", named, want)
	}
	v := newVisitor(t, s)
	plain := func(u string) string { return strings.Replace(u, "https://", "http://", 1) }
	v.until(s.base+named.At+"deep/er?x=1", "python at /deep/er of localhost:8000 [] None")
	v.until(s.base+other.At, "node at / of localhost:3000")
	host := "http://8000-" + id + ".ports.test"
	if status, text := v.get(host + "/"); status != 401 || !strings.Contains(text, "unauthenticated") {
		t.Errorf("without the link: %d %s", status, text)
	}
	if status, text := v.get(plain(named.URL) + "&a=b"); status != 200 || !strings.Contains(text, "python at / of 8000-"+id+".ports.test [] None") {
		t.Errorf("by name: %d %s", status, text)
	}
	if status, text := v.get(host + "/more"); status != 200 || !strings.Contains(text, "python at /more") {
		t.Errorf("the browser remembers: %d %s", status, text)
	}
	f := files{t, s, session}
	f.wants(200, http.MethodGet, "/api/v1/sessions/"+session+"/ports/8000/http/by/key?any=thing", nil, "python at /by/key of localhost:8000 [] None")
	if status, text := v.get(s.base + "/api/v1/sessions/" + session + "/ports/8000/http/"); status != 401 {
		t.Errorf("without a key: %d %s", status, text)
	}
	// A WebSocket, by name, with the header of a program.
	conn, _, err := websocket.Dial(t.Context(), "ws://3000-"+id+".ports.test/chat", &websocket.DialOptions{HTTPClient: v.http, HTTPHeader: http.Header{"Cove-Link": {other.Secret}}}) //nolint:bodyclose // the package closes it
	if err != nil {
		t.Fatalf("WebSocket: %v", err)
	}
	if _, text, err := conn.Read(t.Context()); err != nil || string(text) != "hello" {
		t.Errorf("it says %q, %v", text, err)
	}
	_ = conn.CloseNow()

	// Open to all, and withdrawn.
	open := s.link(session, map[string]any{"purpose": "port", "port": 3000, "open": true, "wakes": true, "seconds": 0})
	if status, text := v.get("http://3000-" + id + ".ports.test/open"); status != 200 || text != "node at /open of 3000-"+id+".ports.test" || open.Expires != nil || strings.Contains(open.URL, "?") {
		t.Errorf("open: %d %s, %+v", status, text, open)
	}
	nothing := s.link(session, map[string]any{"purpose": "port", "port": 4000})
	if status, text := v.get(s.base + nothing.At); status != 404 || !strings.Contains(text, "port_refused") {
		t.Errorf("nothing listens: %d %s", status, text)
	}
	// A pause, and the death of the server: who may wake the session does, and the servers in it go on.
	s.must(http.MethodPost, "/api/v1/sessions/"+session+"/pause", nil, nil)
	if status, text := v.get(s.base + named.At); status != 503 || !strings.Contains(text, "session_asleep") {
		t.Errorf("a paused session: %d %s", status, text)
	}
	v.until(s.base+other.At, "node at / of localhost:3000")
	s.must(http.MethodPost, "/api/v1/sessions/"+session+"/pause", nil, nil)
	s.kill()
	s = startServer(t, dir, s.key, "COVE_PORTS=https://ports.test")
	v = newVisitor(t, s)
	v.until("http://3000-"+id+".ports.test/again", "node at /again")
	if status, text := v.get(plain(named.URL)); status != 200 || !strings.Contains(text, "python at /") {
		t.Errorf("after the server's death: %d %s", status, text)
	}
	s.must(http.MethodDelete, "/api/v1/sessions/"+session+"/links/"+open.ID, nil, nil)
	s.must(http.MethodDelete, "/api/v1/sessions/"+session+"/links/"+other.ID, nil, nil)
	if status, _ := newVisitor(t, s).get("http://3000-" + id + ".ports.test/"); status != 401 {
		t.Errorf("withdrawn, and still open: %d", status)
	}
	if status, text := v.get(s.base + other.At); status != 404 || !strings.Contains(text, "link_not_found") {
		t.Errorf("withdrawn: %d %s", status, text)
	}
	if strings.Contains(s.log.String(), named.Secret) {
		t.Error("the log has the code of a link")
	}
}

// TestLinksToFiles reads and writes files of a session without a key, also of one that is paused.
func TestLinksToFiles(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", testKey(t))
	session := s.session()
	s.says(session, "open('a.csv', 'w').write('a,b\\n'); open('/tmp/out.txt', 'w').write('outside')")
	send := func(method, at, body string, header ...string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, s.base+at, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	read, write := s.link(session, map[string]any{"purpose": "read", "path": "a.csv"}), s.link(session, map[string]any{"purpose": "write", "path": "b.csv"})
	outside := s.link(session, map[string]any{"purpose": "read", "path": "/tmp/out.txt"})
	s.must(http.MethodPost, "/api/v1/sessions/"+session+"/pause", nil, nil)
	for what, c := range map[string]struct {
		method, at, body string
		status           int
		part             string
	}{
		"read": {"GET", read.At, "", 200, "a,b\n"}, "outside": {"GET", outside.At, "", 200, "outside"}, "read by the link to write": {"GET", write.At, "", 404, "link_not_found"},
		"write by the link to read": {"PUT", read.At, "x", 404, "link_not_found"}, "nothing": {"GET", "/api/v1/linked/" + strings.Repeat("0", 32), "", 404, "link_not_found"},
	} {
		if status, text := send(c.method, c.at, c.body); status != c.status || !strings.Contains(text, c.part) {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
	if status, text := send("GET", read.At, "", "Range", "bytes=2-2"); status != 206 || text != "b" {
		t.Errorf("a range: %d %q", status, text)
	}
	big := strings.Repeat("0123456789", 1<<20)
	if status, text := send("PUT", write.At, big); status != 201 {
		t.Errorf("write: %d %s", status, text)
	}
	if got := s.says(session, "print(len(open('b.csv').read()))"); got != fmt.Sprintln(len(big)) {
		t.Errorf("code sees %s", got)
	}
	short := s.link(session, map[string]any{"purpose": "read", "path": "a.csv", "seconds": 1})
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		status, text := send("GET", short.At, "")
		if status == 404 && strings.Contains(text, "link_not_found") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it has not expired: %d %s", status, text)
		}
	}
	var list struct{ Items []api.SessionLink }
	s.must(http.MethodGet, "/api/v1/sessions/"+session+"/links", nil, &list)
	if len(list.Items) != 3 || list.Items[0].Path != "/tmp/out.txt" {
		t.Errorf("listed: %+v", list)
	}
	// Who may only read files makes no links to more.
	r, err := s.call(t.Context(), http.MethodPost, "/api/v1/sessions/"+session+"/links", map[string]any{"purpose": "read", "path": "../x"})
	if err != nil || r.status != 400 || !bytes.Contains(r.body, []byte("invalid_path")) {
		t.Errorf("a way out: %d %s, %v", r.status, r.body, err)
	}
	if _, err := url.Parse(read.At); err != nil || read.URL != "" {
		t.Errorf("%+v", read)
	}
}

// spyingPage tries what a page could do to the server that shows it, and to itself, and says what came of it.
const spyingPage = `<body>waiting</body><script>
(async () => {
  const tried = async (name, f) => { try { return name + "=" + await f() } catch (e) { return name + "=refused" } };
  document.body.textContent = (await Promise.all([
    tried("cookie", async () => { document.cookie = "mine=1"; return document.cookie }),
    tried("storage", async () => { localStorage.mine = 1; return localStorage.mine }),
    tried("own", async () => (await fetch("data.txt")).text()),
    tried("posted", async () => (await fetch("data.txt", {method: "POST", body: "x", headers: {"Content-Type": "application/json"}})).status),
    tried("me", async () => (await fetch(location.hash.slice(1) + "/api/v1/me", {credentials: "include"})).status),
    tried("opener", async () => {
      const w = window.open(location.hash.slice(1) + "/");
      for (let n = 0; n < 100; n++) { // an empty page of its own comes first
        await new Promise((done) => setTimeout(done, 100));
        if (w.document.body.innerHTML.length) return "read";
      }
      return "nothing";
    }),
  ])).join(" ");
})();
</script>`

// TestPortsShareNoOrigin shows such a page in the browser of somebody who is signed in, below a path and under a name.
func TestPortsShareNoOrigin(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	chromium := browser(t)
	s := startServer(t, "", testKey(t))
	session := s.session()
	f := files{t, s, session}
	f.wants(201, http.MethodPut, f.at("content", "site/index.html", ""), strings.NewReader(spyingPage), "")
	f.wants(201, http.MethodPut, f.at("content", "site/data.txt", ""), strings.NewReader("data"), "")
	s.must(http.MethodPost, "/api/v1/sessions/"+session+"/processes", map[string]any{"command": []string{"python", "-m", "http.server", "8000", "-d", "site"}}, nil)
	link := s.link(session, map[string]any{"purpose": "port", "port": 8000})
	newVisitor(t, s).until(s.base+link.At, "waiting")
	own := t.TempDir()
	show := func(at string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		c := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--user-data-dir="+own, "--virtual-time-budget=20000", "--dump-dom", at)
		text, err := c.Output()
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		return string(text)
	}
	if page := show(s.setup()); !strings.Contains(page, "<main") && !strings.Contains(page, "cove") {
		t.Fatalf("signing in: %.300s", page)
	}
	me := show(s.base + "/api/v1/me")
	if !strings.Contains(me, `"project"`) {
		t.Fatalf("the browser is not signed in: %.300s", me)
	}
	if page := show(s.base + link.At + "#" + s.base); !strings.Contains(page, "cookie=refused storage=refused own=data posted=501 me=refused opener=refused") {
		t.Errorf("below a path: %.600s", page)
	}
	if page := show(link.URL + "#" + s.base); !strings.Contains(page, "cookie=mine=1 storage=1 own=data posted=501 me=refused opener=refused") {
		t.Errorf("under a name: %.600s", page)
	}
}
