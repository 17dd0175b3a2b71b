package ports_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/ports"
)

const (
	session = "ses_06f1k3t3y4m0v8s2k5r7w9x1z4"
	name    = "8000-06f1k3t3y4m0v8s2k5r7w9x1z4.ports.test"
)

// key is one of no server's.
var key = auth.NewText()

// house is a hub with one session, in which something listens at port 8000.
type house struct {
	listens string // its address; "": nothing
	asleep  bool
	open    bool
	used    atomic.Int64
}

func (h *house) LinkOf(_ context.Context, code string) (hub.SessionLink, auth.Principal, error) {
	links := map[string]hub.SessionLink{
		"good": {Session: session, Purpose: hub.LinkPort, Port: 8000}, "wakes": {Session: session, Purpose: hub.LinkPort, Port: 8000, Wakes: true},
		"other": {Session: session, Purpose: hub.LinkPort, Port: 9000}, "file": {Session: session, Purpose: hub.LinkRead, Path: "a"},
	}
	l, ok := links[code]
	if !ok {
		return l, auth.Principal{}, problem.New(problem.LinkNotFound, "there is nothing behind this link")
	}
	return l, auth.Principal{User: "usr"}, nil
}

func (h *house) OpenPort(context.Context, string, int) (hub.SessionLink, auth.Principal, error) {
	if h.open {
		return hub.SessionLink{Session: session, Port: 8000, Open: true}, auth.Principal{User: "usr"}, nil
	}
	return hub.SessionLink{}, auth.Principal{}, problem.New(problem.LinkNotFound, "there is no such link")
}

func (h *house) UseLink(ctx context.Context, l hub.SessionLink, who auth.Principal, use func(context.Context, guestlink.Stream) error) error {
	if h.asleep && !l.Wakes {
		return problem.New(problem.SessionAsleep, "the session is paused")
	}
	return h.UsePort(ctx, who, l.Session, l.Port, use)
}

func (h *house) UsePort(ctx context.Context, _ auth.Principal, _ string, _ int, use func(context.Context, guestlink.Stream) error) error {
	if h.listens == "" {
		return problem.New(problem.PortRefused, "nothing listens at port 8000")
	}
	h.used.Add(1)
	conn, err := net.Dial("tcp", h.listens)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return use(ctx, conn.(*net.TCPConn))
}

// front serves the surfaces of a house as the front door does.
func front(t *testing.T, h *house) *httptest.Server {
	t.Helper()
	all := ports.Surfaces(ports.Options{Hub: h, Address: ports.Address{Scheme: "http", Host: "ports.test"}, Refuse: func(w http.ResponseWriter, _ *http.Request, p *problem.Error) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(499)
		_ = json.NewEncoder(w).Encode(p.Code)
	}})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].Serves(host, r) {
				all[i].Handler.ServeHTTP(w, r)
				return
			}
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// got is an answer with its body.
type got struct {
	*http.Response
	text string
}

func ask(t *testing.T, s *httptest.Server, method, host, path, body string, header ...string) got {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	answer, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
	}
	return got{answer, string(text)}
}

// program is one in the session, which says what it has got.
func program(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h := w.Header()
		h.Add("Set-Cookie", "id=1; Path=/; Domain=ports.test; HttpOnly")
		h.Add("Set-Cookie", "cove-port=stolen")
		for _, name := range []string{"Strict-Transport-Security", "Clear-Site-Data", "Alt-Svc", "Www-Authenticate", "Service-Worker-Allowed", "X-Own", "Content-Security-Policy"} {
			h.Set(name, "own")
		}
		_, _ = fmt.Fprintf(w, "%s %s host=%s body=%s\n", r.Method, r.RequestURI, r.Host, body)
		_ = r.Header.Write(w)
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login?x=1", http.StatusFound) })
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/upgrade", func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString("echo " + line)
		_ = rw.Flush()
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "//") {
			r.URL.Path = "/" // the mux would lead elsewhere
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// TestCredentialsStayOutside sends everything that a browser and a program may send: the program in the session sees what is its own alone.
func TestCredentialsStayOutside(t *testing.T) {
	t.Parallel()
	h := &house{listens: program(t)}
	s := front(t, h)
	secrets := []string{"Cookie", "__Host-cove=secret-of-cove; cove_8700=secret-too; cove-port=good; id=mine; port-8000-06f1k3t3y4m0v8s2k5r7w9x1z4-id=kept", "X-Api-Key", key, "Referer", "http://cove.test/p/good/page"}
	for what, c := range map[string]struct {
		host, path string
		header     []string
		has, not   []string
	}{
		"by a path":            {"cove.test", "/p/good/a%2Fb?c=d", nil, []string{"GET /a%2Fb?c=d host=localhost:8000", "Cookie: id=kept", "Referer: http://localhost:8000/page"}, []string{"id=mine", "good"}},
		"by a path, own token": {"cove.test", "/p/good/", []string{"Authorization", "Bearer own"}, []string{"GET / ", "Authorization: Bearer own"}, nil},
		"a password":           {"cove.test", "/p/good/", []string{"Authorization", "Basic b25l"}, nil, []string{"Basic"}},
		"by a path, a key":     {"cove.test", "/p/good/", []string{"Authorization", "Bearer " + key}, nil, []string{"Bearer"}},
		"by name, a cookie":    {name, "/x/../y//z?q", nil, []string{"GET /x/../y//z?q host=" + name, "id=mine"}, []string{"good"}},
		"by name, a header":    {name, "/", []string{"Cove-Link", "good", "Authorization", "Bearer own"}, []string{"Bearer own"}, []string{"Cove-Link"}},
	} {
		answer := ask(t, s, http.MethodGet, c.host, c.path, "", append(c.header, secrets...)...)
		if answer.StatusCode != 200 {
			t.Errorf("%s: %d %s", what, answer.StatusCode, answer.text)
		}
		for _, part := range c.has {
			if !strings.Contains(answer.text, part) {
				t.Errorf("%s: no %q in\n%s", what, part, answer.text)
			}
		}
		for _, part := range append(c.not, "secret", key, "X-Api-Key") {
			if strings.Contains(answer.text, part) {
				t.Errorf("%s: %q in\n%s", what, part, answer.text)
			}
		}
	}
}

// TestAnswersStayApart looks at what of a program's answer reaches a browser.
func TestAnswersStayApart(t *testing.T) {
	t.Parallel()
	s := front(t, &house{listens: program(t)})
	byPath := ask(t, s, http.MethodPost, "cove.test", "/p/good/", "hello", "Origin", "null")
	h := byPath.Header
	for _, gone := range []string{"Strict-Transport-Security", "Clear-Site-Data", "Alt-Svc", "Www-Authenticate", "Service-Worker-Allowed"} {
		if h.Get(gone) != "" {
			t.Errorf("%s: %s", gone, h.Get(gone))
		}
	}
	if policies := h.Values("Content-Security-Policy"); len(policies) != 2 || !strings.HasPrefix(policies[1], "sandbox ") || strings.Contains(policies[1], "allow-same-origin") || strings.Contains(policies[1], "top-navigation") {
		t.Errorf("the page has an origin: %q", policies)
	}
	if got := strings.Join(h.Values("Set-Cookie"), "|"); got != "port-8000-06f1k3t3y4m0v8s2k5r7w9x1z4-id=1; HttpOnly; Path=/p/good/|port-8000-06f1k3t3y4m0v8s2k5r7w9x1z4-cove-port=stolen; Path=/p/good/" {
		t.Errorf("cookies: %s", got)
	}
	if h.Get("X-Own") != "own" || h.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(byPath.text, "body=hello") || !strings.Contains(byPath.text, "Origin: http://localhost:8000") {
		t.Errorf("%v\n%s", h, byPath.text)
	}
	if got := ask(t, s, http.MethodGet, "cove.test", "/p/good/away", "").Header.Get("Location"); got != "/p/good/login?x=1" {
		t.Errorf("it leads to %s", got)
	}
	if got := ask(t, s, http.MethodGet, "cove.test", "/p/good?a=b", ""); got.StatusCode != 308 || got.Header.Get("Location") != "/p/good/?a=b" {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
	if got := ask(t, s, http.MethodOptions, "cove.test", "/p/good/", "", "Access-Control-Request-Method", "POST", "Origin", "null"); got.StatusCode != 204 || got.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
	byName := ask(t, s, http.MethodGet, name, "/", "", "Cookie", "cove-port=good").Header
	if got := strings.Join(byName.Values("Set-Cookie"), "|"); got != "id=1; Path=/; HttpOnly" || byName.Get("Clear-Site-Data") != "own" || byName.Get("Alt-Svc") != "" || byName.Get("Content-Security-Policy") != "own" {
		t.Errorf("%s, %v", got, byName)
	}
	if got := ask(t, s, http.MethodGet, name, "/away", "", "Cookie", "cove-port=good").Header.Get("Location"); got != "/login?x=1" {
		t.Errorf("it leads to %s", got)
	}
}

// TestAnswersTellNobodyOnTheWay has a program answer with an informational answer that sets a cookie and names links, which would count for the server's own address, and with headers that tell
// proxies in front of the server which of their files to send.
func TestAnswersTellNobodyOnTheWay(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	const gone = "X-Accel-Redirect: /etc/gone\r\nX-Accel-Buffering: gone\r\nx-sendfile: /gone\r\nX-Sendfile-Temporary: /gone\r\nX-LIGHTTPD-send-file: gone\r\nX-Reproxy-URL: gone\r\nX-Envoy-Immediate-Health-Check-Fail: gone\r\n" +
		"Surrogate-Control: gone\r\nCDN-Cache-Control: gone\r\nEdge-Control: gone\r\nLocation-Of-Mine: gone\r\n"
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nSet-Cookie: __Host-cove=gone; Path=/\r\nLink: </gone.js>; rel=preload\r\n\r\nHTTP/1.1 102 Processing\r\nSet-Cookie: gone=1\r\n\r\n"+
				"HTTP/1.1 200 OK\r\nX-Total-Count: kept-1\r\nHX-Trigger: kept-2\r\nETag: \"kept-3\"\r\nContent-Disposition: kept-4\r\nX-Request-Id: kept-5\r\n"+gone+"Content-Length: 6\r\nConnection: close\r\n\r\nkept-6")
			_ = c.Close()
		}
	}()
	s := front(t, &house{listens: l.Addr().String()})
	for _, c := range []struct{ host, prefix string }{{"cove.test", "/p/good"}, {name, ""}} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(3 * time.Minute))
		_, _ = fmt.Fprintf(conn, "GET %s/ HTTP/1.1\r\nHost: %s\r\nCove-Link: good\r\nConnection: close\r\n\r\n", c.prefix, c.host)
		text, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 200 ") || strings.Contains(string(text), "gone") {
			t.Errorf("%s: %v\n%s", c.host, err, text)
		}
		for n := range 6 {
			if kept := fmt.Sprint("kept-", n+1); !strings.Contains(string(text), kept) {
				t.Errorf("%s: %s is missing in\n%s", c.host, kept, text)
			}
		}
		_ = conn.Close()
	}
}

// TestWhoIsLetIn asks by every way, with and without what lets one in.
func TestWhoIsLetIn(t *testing.T) {
	t.Parallel()
	h := &house{listens: program(t)}
	s := front(t, h)
	refused := func(what, code string, answer got) {
		t.Helper()
		if answer.StatusCode != 499 || strings.TrimSpace(answer.text) != `"`+code+`"` {
			t.Errorf("%s: %d %.200s, not %s", what, answer.StatusCode, answer.text, code)
		}
	}
	refused("no link", "unauthenticated", ask(t, s, http.MethodGet, name, "/", ""))
	refused("a wrong cookie", "unauthenticated", ask(t, s, http.MethodGet, name, "/", "", "Cookie", "cove-port=wrong"))
	refused("another port's cookie", "unauthenticated", ask(t, s, http.MethodGet, name, "/", "", "Cookie", "cove-port=other"))
	refused("a wrong header", "link_not_found", ask(t, s, http.MethodGet, name, "/", "", "Cove-Link", "wrong"))
	refused("another port's", "link_not_found", ask(t, s, http.MethodGet, name, "/?cove-link=other", ""))
	refused("a file's", "link_not_found", ask(t, s, http.MethodGet, "cove.test", "/p/file/", ""))
	refused("a wrong path", "link_not_found", ask(t, s, http.MethodGet, "cove.test", "/p/wrong/", ""))
	refused("a key that nobody knows", "unauthenticated", ask(t, s, http.MethodGet, name, "/", "", "Authorization", "Bearer "+key))
	if h.used.Load() != 0 {
		t.Errorf("%d got through", h.used.Load())
	}
	first := ask(t, s, http.MethodGet, name, "//evil.test/a?b=c&cove-link=good", "")
	cookie := first.Header.Get("Set-Cookie")
	if first.StatusCode != 303 || first.Header.Get("Location") != "/evil.test/a?b=c" || !strings.HasPrefix(cookie, "cove-port=good; Path=/; ") || !strings.Contains(cookie, "HttpOnly; SameSite=Lax") {
		t.Errorf("%d %v", first.StatusCode, first.Header)
	}
	h.asleep = true
	refused("a paused session", "session_asleep", ask(t, s, http.MethodGet, "cove.test", "/p/good/", ""))
	if answer := ask(t, s, http.MethodGet, "cove.test", "/p/wakes/", ""); answer.StatusCode != 200 {
		t.Errorf("it does not wake: %d %s", answer.StatusCode, answer.text)
	}
	h.asleep, h.open = false, true
	if answer := ask(t, s, http.MethodGet, name, "/", ""); answer.StatusCode != 200 {
		t.Errorf("it is not open: %d %s", answer.StatusCode, answer.text)
	}
	h.listens = ""
	page := ask(t, s, http.MethodGet, name, "/", "", "Accept", "text/html")
	if page.StatusCode/100 == 2 || !strings.Contains(page.text, "<h1") || !strings.Contains(page.text, "Nothing listens at port 8000.") || !strings.Contains(page.text, "refresh") || page.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("%d %s", page.StatusCode, page.text)
	}
}

// TestStreamsAndUpgrades reads the beginning of an answer that does not end, and changes the protocol.
func TestStreamsAndUpgrades(t *testing.T) {
	t.Parallel()
	s := front(t, &house{listens: program(t)})
	for _, c := range []struct{ host, prefix string }{{"cove.test", "/p/good"}, {name, ""}} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		_, _ = fmt.Fprintf(conn, "GET %s/stream HTTP/1.1\r\nHost: %s\r\nCove-Link: good\r\n\r\n", c.prefix, c.host)
		r := bufio.NewReader(conn)
		for line := ""; !strings.Contains(line, "data: 1"); {
			if line, err = r.ReadString('\n'); err != nil {
				t.Fatalf("%s: %v", c.host, err)
			}
		}
		_ = conn.Close()
		if conn, err = net.Dial("tcp", s.Listener.Addr().String()); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		_, _ = fmt.Fprintf(conn, "GET %s/upgrade HTTP/1.1\r\nHost: %s\r\nCove-Link: good\r\nConnection: Upgrade\r\nUpgrade: echo\r\nOrigin: null\r\n\r\n", c.prefix, c.host)
		head := make([]byte, len("HTTP/1.1 101"))
		if _, err := io.ReadFull(conn, head); err != nil || string(head) != "HTTP/1.1 101" {
			t.Fatalf("%s: %q, %v", c.host, head, err)
		}
		_, _ = io.WriteString(conn, "hello\n")
		text, err := io.ReadAll(conn)
		if !strings.HasSuffix(string(text), "echo hello\n") {
			t.Errorf("%s: %q, %v", c.host, text, err)
		}
		_ = conn.Close()
	}
}

// TestGarbageAtAPort has a program answer what is no HTTP, or none to the end.
func TestGarbageAtAPort(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"nothing": "", "garbage": "\x00\x01\x02 hello\r\n\r\n", "an endless head": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20), "half a head": "HTTP/1.1 200 OK\r\nContent-", "a bad status": "HTTP/1.1 9999 No\r\n\r\n",
		"two lengths": "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = c.Read(make([]byte, 4096))
					_, _ = io.WriteString(c, says)
					_ = c.Close()
				}
			}()
			s := front(t, &house{listens: l.Addr().String()})
			if answer := ask(t, s, http.MethodGet, "cove.test", "/p/good/", ""); answer.StatusCode != 499 || !strings.Contains(answer.text, "port_broken") {
				t.Errorf("%d %.200s", answer.StatusCode, answer.text)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"https://ports.example.com": "https://8000-06f1k3t3y4m0v8s2k5r7w9x1z4.ports.example.com/", "http://localhost:8700": "http://8000-06f1k3t3y4m0v8s2k5r7w9x1z4.localhost:8700/"} {
		a, err := ports.ParseAddress(text)
		if got := a.URL(session, 8000); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
		host, _, _ := strings.Cut(strings.TrimSuffix(strings.Split(want, "//")[1], "/"), ":")
		if s, port, ok := a.Find(host); !ok || s != session || port != 8000 {
			t.Errorf("%s is %s %d %v", host, s, port, ok)
		}
	}
	for _, bad := range []string{"", "ports.example.com", "ftp://x", "https://x/path", "https://10.0.0.1", "https://u:p@x", "https://"} {
		if _, err := ports.ParseAddress(bad); !problem.Has(err, problem.ConfigInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	a := ports.Address{Scheme: "http", Host: "localhost"}
	for _, host := range []string{"localhost", "x.localhost", "0-06f1k3t3y4m0v8s2k5r7w9x1z4.localhost", "08000-06f1k3t3y4m0v8s2k5r7w9x1z4.localhost", "8000-short.localhost", "a.8000-06f1k3t3y4m0v8s2k5r7w9x1z4.localhost", "8000-06f1k3t3y4m0v8s2k5r7w9x1z4.evil"} {
		if _, _, ok := a.Find(host); ok {
			t.Errorf("%s is a port", host)
		}
	}
}
