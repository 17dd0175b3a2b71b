package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cove/internal/core/problem"
	"cove/internal/machine/egress"
	"cove/internal/machine/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is what a session could reach: servers at addresses that lead to listeners of the test, and names that lead to addresses.
type world struct {
	t *testing.T

	mu      sync.Mutex
	servers map[string]string   // by what is dialled, as "93.184.215.14:443": the address of the listener
	names   map[string][]string // by name: the addresses of each look-up, with commas between them; the last stays
	dialled []string
	asked   []string
	events  []egress.Event
	own     []netip.Addr
}

func newWorld(t *testing.T) *world {
	return &world{t: t, servers: map[string]string{}, names: map[string][]string{}}
}

func (w *world) LookupNetIP(_ context.Context, _, host string) (all []netip.Addr, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := strings.TrimSuffix(host, ".")
	w.asked = append(w.asked, name)
	answers := w.names[name]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(answers) > 1 {
		w.names[name] = answers[1:]
	}
	for a := range strings.SplitSeq(answers[0], ",") {
		all = append(all, netip.MustParseAddr(a))
	}
	return all, nil
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, address)
	to, ok := w.servers[address]
	w.mu.Unlock()
	if !ok {
		return nil, errors.New("connection refused")
	}
	return new(net.Dialer).DialContext(ctx, network, to)
}

// proxy returns the way out by rules of the operator's.
func (w *world) dialer(deny []string, allow ...string) *egress.Dialer {
	w.t.Helper()
	return w.with(egress.Options{}, deny, allow...)
}

func (w *world) with(o egress.Options, deny []string, allow ...string) *egress.Dialer {
	w.t.Helper()
	rules, err := egress.ParseRules(allow, deny)
	if err != nil {
		w.t.Fatal(err)
	}
	o.Operator, o.Resolver, o.Dial = rules, w, w.dial
	o.Own = func() []netip.Addr { return w.own }
	o.Tell = func(e egress.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
	}
	return egress.New(o)
}

// serve has a server answer HTTP at an address of the world.
func (w *world) serve(address string, h http.HandlerFunc) {
	s := httptest.NewServer(h)
	w.t.Cleanup(s.Close)
	w.servers[address] = s.Listener.Addr().String()
}

// serveTLS has a server answer HTTPS for a name.
func (w *world) serveTLS(address string, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	w.t.Cleanup(s.Close)
	w.servers[address] = s.Listener.Addr().String()
	return s
}

// conn is the sandbox's end of a connection.
type conn struct {
	net.Conn
	done chan error
}

// half is the proxy's end: a TCP connection, which can end what it writes.
func (w *world) connect(p *egress.Dialer, host string, port int) *conn {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		w.t.Fatal(err)
	}
	c := &conn{Conn: near, done: make(chan error, 1)}
	stream := far.(wire.Stream)
	go func() {
		err := p.Connect(w.t.Context(), host, port, stream, func() error { return nil })
		_ = stream.Close()
		c.done <- err
	}()
	w.t.Cleanup(func() { _ = near.Close() })
	return c
}

// said is what comes back for text.
func (w *world) said(p *egress.Dialer, host string, port int, text string) (string, error) {
	w.t.Helper()
	c := w.connect(p, host, port)
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	go func() {
		_, _ = io.WriteString(c, text)
		if !strings.Contains(text, "HTTP/1.1") {
			_ = c.Conn.(*net.TCPConn).CloseWrite()
		}
	}()
	answer, _ := io.ReadAll(c)
	_ = c.Close()
	return string(answer), <-c.done
}

func (w *world) wasDialled(address string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.dialled {
		if d == address {
			return true
		}
	}
	return false
}

const good, private, metadata = "93.184.215.14", "10.1.2.3", "169.254.169.254"

func hello(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if len(r.Header["X-Forwarded-For"]) > 0 {
		body = []byte("a header was added")
	}
	_, _ = fmt.Fprintf(w, "hello %s %s %s", r.Host, r.URL, body)
}

// TestAllowed shows what gets through: HTTP/1 over one connection and several requests, HTTP/2 with and without TLS, WebSockets, protocols in which the server speaks
// first, and addresses that a rule names.
func TestAllowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["allowed.test"] = []string{good}
	w.names["a.deep.allowed.test"] = []string{good}
	w.names["inner.corp"] = []string{private}
	upgraded := func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			hello(rw, r)
			return
		}
		c, buf, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		_, _ = io.Copy(c, buf)
	}
	w.serve(good+":80", upgraded)
	w.serve(good+":8080", hello)
	w.serve(private+":80", hello)
	tlsServer := w.serveTLS(good+":443", hello)
	p := w.dialer(nil, "allowed.test", "allowed.test:8080,2525", "*.allowed.test", "inner.corp", "10.0.0.0/8")

	for _, c := range []struct {
		host, text, want string
		port             int
	}{
		{"allowed.test", "GET /one HTTP/1.1\r\nHost: allowed.test\r\n\r\nGET /two HTTP/1.1\r\nHost: ALLOWED.test.\r\nConnection: close\r\n\r\n", "hello allowed.test /one ,hello ALLOWED.test. /two ", 80},
		{"allowed.test", "POST /x HTTP/1.1\r\nHost: allowed.test:8080\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "hello allowed.test:8080 /x abc", 8080},
		{"allowed.test", "GET http://allowed.test/absolute HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n", "hello allowed.test /absolute ", 80},
		{"a.deep.allowed.test", "GET / HTTP/1.1\r\nHost: a.deep.allowed.test\r\nConnection: close\r\n\r\n", "hello a.deep.allowed.test / ", 80},
		{"inner.corp", "GET / HTTP/1.1\r\nHost: inner.corp\r\nConnection: close\r\n\r\n", "hello inner.corp / ", 80},
		{private, "GET / HTTP/1.1\r\nHost: whatever\r\nConnection: close\r\n\r\n", "hello whatever / ", 80},
	} {
		answer, err := w.said(p, c.host, c.port, c.text)
		for want := range strings.SplitSeq(c.want, ",") {
			if !strings.Contains(answer, want) || err != nil {
				t.Errorf("%s:%d %.60q: %q, %v", c.host, c.port, c.text, answer, err)
			}
		}
	}

	chat := w.connect(p, "allowed.test", 80)
	_ = chat.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = io.WriteString(chat, "GET /chat HTTP/1.1\r\nHost: allowed.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	frames := bufio.NewReader(chat)
	r, err := http.ReadResponse(frames, nil)
	if err != nil || r.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%+v, %v", r, err)
	}
	_ = r.Body.Close()
	for range 3 {
		_, _ = io.WriteString(chat, "frame")
		echo := make([]byte, 5)
		if _, err := io.ReadFull(frames, echo); string(echo) != "frame" {
			t.Errorf("%q, %v", echo, err)
		}
	}
	_ = chat.Close()
	if err := <-chat.done; err != nil {
		t.Error(err)
	}

	dial := func(_ context.Context, _, to string) (net.Conn, error) {
		host, port, _ := strings.Cut(to, ":")
		n := map[string]int{"443": 443, "8080": 8080, "80": 80}[port]
		return w.connect(p, host, n), nil
	}
	for _, two := range []bool{true, false} {
		pool := tlsServer.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		pool.InsecureSkipVerify = true // the server's name is another; who answers is not what this test is about
		tr := &http.Transport{DialContext: dial, TLSClientConfig: pool, ForceAttemptHTTP2: two}
		r, err := (&http.Client{Transport: tr, Timeout: 30 * time.Second}).Get("https://allowed.test/tls")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		tr.CloseIdleConnections()
		if string(body) != "hello allowed.test /tls " || r.ProtoMajor == 2 != two {
			t.Errorf("%s %s", r.Proto, body)
		}
	}

	// Whoever speaks first is heard.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	w.servers[good+":2525"] = l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_, _ = io.WriteString(c, "220 ready\r\n")
				line, _ := bufio.NewReader(c).ReadString('\n')
				_, _ = io.WriteString(c, "250 "+line)
			}()
		}
	}()
	c := w.connect(p, "allowed.test", 2525)
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	lines := bufio.NewReader(c)
	if line, err := lines.ReadString('\n'); line != "220 ready\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	_, _ = io.WriteString(c, "helo me\r\n")
	if line, err := lines.ReadString('\n'); line != "250 helo me\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	_ = c.Close()
	if err := <-c.done; err != nil {
		t.Error(err)
	}
}

// TestRebinding has a name lead to an allowed address first and to this machine or a cloud's secrets then.
func TestRebinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["rebind.test"] = []string{good, metadata}
	w.names["both.test"] = []string{metadata + "," + good}
	w.serve(metadata+":80", hello)
	w.serve(good+":80", hello)
	p := w.dialer(nil, "rebind.test", "both.test")
	if err := p.LookUp(t.Context(), "rebind.test"); err != nil {
		t.Fatal(err)
	}
	// The answer is remembered, so that the connection goes where the look-up led.
	if answer, err := w.said(p, "rebind.test", 80, "GET / HTTP/1.1\r\nHost: rebind.test\r\nConnection: close\r\n\r\n"); !strings.Contains(answer, "hello") || err != nil {
		t.Errorf("%q, %v", answer, err)
	}
	other := w.dialer(nil, "rebind.test", "both.test") // which hears the second answer
	if answer, err := w.said(other, "rebind.test", 80, "GET / HTTP/1.1\r\nHost: rebind.test\r\n\r\n"); answer != "" || !problem.Has(err, problem.DestinationRefused) {
		t.Errorf("%q, %v", answer, err)
	}
	if answer, err := w.said(p, "both.test", 80, "GET / HTTP/1.1\r\nHost: both.test\r\nConnection: close\r\n\r\n"); !strings.Contains(answer, "hello both.test") || err != nil {
		t.Errorf("%q, %v", answer, err)
	}
	if w.wasDialled(metadata + ":80") {
		t.Error("the metadata service was dialled")
	}
}

// clientHello returns what a TLS client says first.
func clientHello(t *testing.T, name string, c *tls.Config) string {
	t.Helper()
	near, far := net.Pipe()
	c.ServerName, c.InsecureSkipVerify = name, true
	go func() {
		_ = tls.Client(near, c).Handshake()
		_ = near.Close()
	}()
	header := make([]byte, 5)
	if _, err := io.ReadFull(far, header); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, int(header[3])<<8|int(header[4]))
	if _, err := io.ReadFull(far, body); err != nil {
		t.Fatal(err)
	}
	_ = far.Close()
	return string(header) + string(body)
}

// withExtension adds an extension to a ClientHello.
func withExtension(t *testing.T, hello string, kind uint16, data string) string {
	t.Helper()
	b := []byte(hello)
	at := 5 + 4 + 2 + 32
	at += 1 + int(b[at])
	at += 2 + (int(b[at])<<8 | int(b[at+1]))
	at += 1 + int(b[at])
	add := append([]byte{byte(kind >> 8), byte(kind), byte(len(data) >> 8), byte(len(data))}, data...)
	b = append(b[:at+2], append(add, b[at+2:]...)...)
	grow := func(i, size int) {
		n := len(add)
		for k := range size {
			n += int(b[i+k]) << (8 * (size - 1 - k))
		}
		for k := range size {
			b[i+k] = byte(n >> (8 * (size - 1 - k)))
		}
	}
	grow(at, 2)
	grow(6, 3)
	grow(3, 2)
	return string(b)
}

// TestBypasses tries what others' proxies were got around by; see the research of the incidents in SECURITY.md. None of it may reach anything but allowed.test at ports 80, 443, 8080 and 8443.
func TestBypasses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.own = []netip.Addr{netip.MustParseAddr("45.33.32.156")}
	secret := func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "SECRET") }
	for _, a := range []string{
		metadata + ":80", private + ":80", "127.0.0.1:80", "127.0.0.1:8080", "45.33.32.156:80", "100.100.100.200:80", "[fd00:ec2::254]:80", "[::1]:80", "192.0.2.7:80", "[64:ff9b::a01:203]:80",
		"[2002:a01:203::]:80", "[::ffff:10.1.2.3]:80", "198.51.100.5:80", "8.8.8.8:80", "0.0.0.0:80", "[fe80::1]:80", "8.8.8.8:8080", good + ":22",
	} {
		w.serve(a, secret)
	}
	w.names["allowed.test"] = []string{good}
	for _, name := range []string{"evilallowed.test", "allowed.test.evil.test", "evil.test", "sub.allowed.test", "xn--allwed-0ta.test"} {
		w.names[name] = []string{"8.8.8.8"}
	}
	// Answers of the operator's resolver are no more trusted than what the session says.
	for name, to := range map[string]string{
		"private.allowed.test": private, "loop.allowed.test": "127.0.0.1", "meta.allowed.test": metadata, "own.allowed.test": "45.33.32.156", "mapped.allowed.test": "::ffff:10.1.2.3", "nat64.allowed.test": "64:ff9b::a01:203",
		"sixtofour.allowed.test": "2002:a01:203::", "loop6.allowed.test": "::1", "link.allowed.test": "fe80::1%eth0", "zero.allowed.test": "0.0.0.0", "aws6.allowed.test": "fd00:ec2::254", "doc.allowed.test": "192.0.2.7",
	} {
		w.names[name] = []string{to}
	}
	w.serve(good+":80", hello)
	w.serve(good+":8080", hello)
	w.serve(good+":8443", secret)
	w.serve(good+":443", secret)
	p := w.dialer([]string{"denied.allowed.test", "8.8.4.4"}, "allowed.test", "allowed.test:8080,8443", "*.allowed.test", "8.8.4.4")
	get := func(host string) string { return "GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n" }
	plain := get("allowed.test")
	hidden := withExtension(t, clientHello(t, "allowed.test", &tls.Config{}), 0xfe0d, "\x00\x00\x01\x00\x01\x00\x00\x20"+strings.Repeat("k", 32)+"\x00\x20"+strings.Repeat("p", 32))
	for _, c := range []struct {
		why, host string
		port      int
		text      string
	}{
		{"NUL in the name", "evil.test\x00.allowed.test", 80, plain},
		{"a dot at the end", "evil.test.", 80, plain},
		{"a dot at the end of an allowed name is not how names come", "allowed.test.", 80, plain},
		{"upper case", "EVIL.TEST", 80, plain},
		{"a name that looks alike", "xn--allwed-0ta.test", 80, plain},
		{"Unicode in a name", "allоwed.test", 80, plain},
		{"loopback in IPv6", "::1", 80, plain},
		{"brackets", "[::1]", 80, plain},
		{"brackets around IPv4", "[127.0.0.1]", 80, plain},
		{"an IPv6 zone", "fe80::1%eth0", 80, plain},
		{"a decimal address", "2130706433", 80, plain},
		{"an octal address", "0177.0.0.1", 80, plain},
		{"a hexadecimal address", "0x7f000001", 80, plain},
		{"an address with parts left out", "127.1", 80, plain},
		{"zero", "0", 80, plain},
		{"0.0.0.0", "0.0.0.0", 80, plain},
		{"an IPv4 address within an IPv6 one", "::ffff:10.1.2.3", 80, plain},
		{"NAT64", "64:ff9b::a01:203", 80, plain},
		{"user information", "allowed.test@evil.test", 80, plain},
		{"a fragment", "evil.test#.allowed.test", 80, plain},
		{"a backslash", `evil.test\.allowed.test`, 80, plain},
		{"a longer name with the same end", "evilallowed.test", 80, plain},
		{"a longer name with the same beginning", "allowed.test.evil.test", 80, plain},
		{"localhost", "localhost", 80, plain},
		{"a name below localhost", "x.localhost", 80, plain},
		{"a name that is denied below one that is allowed", "denied.allowed.test", 80, plain},
		{"an address that is allowed and denied", "8.8.4.4", 80, plain},
		{"a port that no rule names", "allowed.test", 22, plain},
		{"the metadata service", metadata, 80, plain},
		{"this machine's own address", "45.33.32.156", 80, plain},
		{"a public address that no rule names", "8.8.8.8", 80, plain},
		{"a name of a private address", "private.allowed.test", 80, get("private.allowed.test")},
		{"a name of loopback", "loop.allowed.test", 80, get("loop.allowed.test")},
		{"a name of loopback in IPv6", "loop6.allowed.test", 80, get("loop6.allowed.test")},
		{"a name of the metadata service", "meta.allowed.test", 80, get("meta.allowed.test")},
		{"a name of AWS's by IPv6", "aws6.allowed.test", 80, get("aws6.allowed.test")},
		{"a name of this machine", "own.allowed.test", 80, get("own.allowed.test")},
		{"a name of a mapped address", "mapped.allowed.test", 80, get("mapped.allowed.test")},
		{"a name of a NAT64 address", "nat64.allowed.test", 80, get("nat64.allowed.test")},
		{"a name of a 6to4 address", "sixtofour.allowed.test", 80, get("sixtofour.allowed.test")},
		{"a name of a link's address", "link.allowed.test", 80, get("link.allowed.test")},
		{"a name of 0.0.0.0", "zero.allowed.test", 80, get("zero.allowed.test")},
		{"a name of an address for documents", "doc.allowed.test", 80, get("doc.allowed.test")},
		{"Host of another", "allowed.test", 80, get("evil.test")},
		{"Host of another port", "allowed.test", 80, get("allowed.test:22")},
		{"Host of another in a second request", "allowed.test", 80, "GET /1 HTTP/1.1\r\nHost: allowed.test\r\n\r\n" + get("evil.test")},
		{"a whole URL of another", "allowed.test", 80, "GET http://evil.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n"},
		{"CONNECT", "allowed.test", 80, "CONNECT evil.test:80 HTTP/1.1\r\nHost: evil.test:80\r\n\r\n"},
		{"CONNECT to an address", "allowed.test", 80, "CONNECT 10.1.2.3:80 HTTP/1.1\r\nHost: 10.1.2.3:80\r\n\r\n"},
		{"no protocol that is known, at 443", "allowed.test", 443, "SSH-2.0-x\r\n"},
		{"HTTP at 443 for another", "allowed.test", 443, get("evil.test")},
		{"a server name of another", "allowed.test", 443, clientHello(t, "evil.test", &tls.Config{})},
		{"a server name of another at another port", "allowed.test", 8443, clientHello(t, "evil.test", &tls.Config{})},
		{"no server name", "allowed.test", 443, clientHello(t, "", &tls.Config{})},
		{"Encrypted Client Hello", "allowed.test", 443, hidden},
		{"half a ClientHello", "allowed.test", 443, clientHello(t, "allowed.test", &tls.Config{})[:40]},
		{"garbage that begins as TLS", "allowed.test", 443, "\x16\x03\x01\x00\x05hello"},
		{"a server name in a second record", "allowed.test", 443, "\x16\x03\x01\x00\x01\x01" + "\x17\x03\x01\x00\x01x"},
	} {
		answer, err := w.said(p, c.host, c.port, c.text)
		if strings.Contains(answer, "SECRET") || strings.Contains(answer, "evil") && !strings.Contains(answer, "may not be reached") {
			t.Errorf("%s got through: %q", c.why, answer)
		}
		if !problem.Has(err, problem.DestinationRefused) {
			t.Errorf("%s: the error is %v, the answer %q", c.why, err, answer)
		}
	}
	// HTTP/2 without TLS names its host in :authority.
	h2 := &http.Transport{Protocols: new(http.Protocols), DialContext: func(context.Context, string, string) (net.Conn, error) {
		return w.connect(p, "allowed.test", 8080), nil
	}}
	h2.Protocols.SetUnencryptedHTTP2(true)
	for host, want := range map[string]int{"allowed.test:8080": http.StatusBadGateway, "evil.test": http.StatusForbidden} { // the server here speaks HTTP/1
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://allowed.test:8080/", nil)
		req.Host = host
		r, err := (&http.Client{Transport: h2, Timeout: 30 * time.Second}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != want {
			t.Errorf(":authority %s: %s", host, r.Status)
		}
	}
	h2.CloseIdleConnections()
	// Two lengths of one request, by which two readers of it could differ.
	answer, _ := w.said(p, "allowed.test", 80, "POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n")
	if strings.Contains(answer, "/smuggled") {
		t.Errorf("a request was smuggled: %q", answer)
	}
	for _, a := range []string{metadata + ":80", private + ":80", "127.0.0.1:80", "45.33.32.156:80", "8.8.8.8:80", "[::1]:80", "[64:ff9b::a01:203]:80", "[fd00:ec2::254]:80", "192.0.2.7:80", good + ":22"} {
		if w.wasDialled(a) {
			t.Errorf("%s was dialled", a)
		}
	}
	// Names that the rules do not allow are not asked for: a name can carry data.
	for _, name := range []string{"data.evil.test", "x.data.evil.test"} {
		if err := p.LookUp(t.Context(), name); !problem.Has(err, problem.DestinationRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range w.asked {
		if strings.Contains(name, "evil") {
			t.Errorf("%s was looked up", name)
		}
	}
	if n := len(w.events); n < 50 {
		t.Errorf("%d events were told", n)
	}
}

// TestOwnAddresses: what listens on this machine is not opened by a rule for the network that its address is in, nor by its name, until a rule names exactly the address.
func TestOwnAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const address = "10.77.0.1"
	w.own = []netip.Addr{netip.MustParseAddr(address), netip.MustParseAddr("fd12::1")}
	for _, a := range []string{address + ":80", "10.77.0.2:80", "[fd12::1]:80"} {
		w.serve(a, hello)
	}
	w.names["host.test"], w.names["host6.test"], w.names["near.test"] = []string{address}, []string{"fd12::1"}, []string{"10.77.0.2"}
	wide := w.dialer(nil, "10.0.0.0/8", "fd00::/8", "*.test", "*")
	exact := w.dialer(nil, address, "host.test")
	for _, c := range []struct {
		dialer *egress.Dialer
		host   string
		open   bool
	}{
		{wide, address, false}, {wide, "::ffff:" + address, false}, {wide, "fd12::1", false}, {wide, "host.test", false}, {wide, "host6.test", false}, {wide, "10.77.0.2", true}, {wide, "near.test", true},
		{exact, address, true}, {exact, "host.test", true},
	} {
		answer, err := w.said(c.dialer, c.host, 80, "GET / HTTP/1.1\r\nHost: "+c.host+"\r\nConnection: close\r\n\r\n")
		if open := strings.Contains(answer, "hello"); open != c.open || open == problem.Has(err, problem.DestinationRefused) {
			t.Errorf("%s: %q, %v", c.host, answer, err)
		}
		if name := strings.HasSuffix(c.host, ".test"); name && !c.open && strings.Contains(fmt.Sprint(answer, err), address) {
			t.Errorf("%s: the session hears this machine's address: %q, %v", c.host, answer, err)
		}
	}
}

// TestAddressesOfSecrets: a rule for a network does not open where clouds tell machines their credentials, and one for everything public opens nothing that is not.
func TestAddressesOfSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	networks, public := w.dialer(nil, "::/0", "0.0.0.0/0"), w.dialer(nil, "*")
	for _, a := range []string{"fd20:ce::254", "fd00:ec2::23", "fd00:ec2::254", "169.254.42.42", "fd00:42::42", "169.254.169.254", "127.0.0.1", "::1"} {
		w.serve(net.JoinHostPort(a, "80"), hello)
		if answer, err := w.said(networks, a, 80, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !problem.Has(err, problem.DestinationRefused) {
			t.Errorf("%s is reached by a rule for its network: %q, %v", a, answer, err)
		}
	}
	for _, a := range []string{"::ffff:0:808:808", "::ffff:0:a01:203", "4000::1", "fc00::1", "::7f00:1"} {
		w.serve(net.JoinHostPort(a, "80"), hello)
		if answer, err := w.said(public, a, 80, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !problem.Has(err, problem.DestinationRefused) {
			t.Errorf("%s counts as public: %q, %v", a, answer, err)
		}
	}
}

// TestDeniedNamesAtAddresses: a name that is denied is not reached by connecting to its address.
func TestDeniedNamesAtAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve(good+":80", hello)
	w.serve(good+":443", hello)
	p := w.dialer([]string{"denied.test", "*.denied.test"}, "*")
	get := func(target, host string) string {
		return "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"
	}
	hidden := withExtension(t, clientHello(t, "other.test", &tls.Config{}), 0xfe0d, "\x00\x00\x01\x00\x01\x00\x00\x20"+strings.Repeat("k", 32)+"\x00\x20"+strings.Repeat("p", 32))
	for _, c := range []struct {
		port    int
		text    string
		refused bool
	}{
		{80, get("/", "denied.test"), true}, {80, get("/", "DENIED.test.:80"), true}, {80, get("/", "a.denied.test"), true}, {80, get("http://denied.test/", good), true},
		{80, get("/", "other.test"), false}, {80, get("/", good), false},
		{443, clientHello(t, "denied.test", &tls.Config{}), true}, {443, clientHello(t, "a.denied.test", &tls.Config{}), true}, {443, hidden, true},
		{443, clientHello(t, "other.test", &tls.Config{}), false}, {443, clientHello(t, "", &tls.Config{}), false},
	} {
		answer, err := w.said(p, good, c.port, c.text)
		if problem.Has(err, problem.DestinationRefused) != c.refused || c.refused && strings.Contains(answer, "hello") {
			t.Errorf("%d %.60q: %q, %v", c.port, c.text, answer, err)
		}
	}
}

// TestErrorsTellNoAddresses has a host end a connection in the middle of an answer: the session hears why, and neither of the addresses of the connection.
func TestErrorsTellNoAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
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
			_, _ = c.Read(make([]byte, 1))
			_ = c.(*net.TCPConn).SetLinger(0) // ends it with a reset
			_ = c.Close()
		}
	}()
	w.names["allowed.test"], w.servers[good+":80"] = []string{good}, l.Addr().String()
	answer, _ := w.said(w.dialer(nil, "allowed.test"), "allowed.test", 80, "POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx")
	if !strings.Contains(answer, "502") || strings.Contains(answer, "127.0.0.1") {
		t.Errorf("the answer is %q", answer)
	}
}

// TestRedirects shows that an answer which sends a program elsewhere gains it nothing: the program's next connection is decided on like any other.
func TestRedirects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["allowed.test"] = []string{good}
	w.serve(good+":80", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "http://"+metadata+"/latest", http.StatusFound)
	})
	w.serve(metadata+":80", hello)
	p := w.dialer(nil, "allowed.test")
	tr := &http.Transport{DialContext: func(_ context.Context, _, to string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(to)
		return w.connect(p, host, 80), nil
	}}
	defer tr.CloseIdleConnections()
	r, err := (&http.Client{Transport: tr, Timeout: 30 * time.Second}).Get("http://allowed.test/")
	if err == nil {
		_ = r.Body.Close()
	}
	if err == nil || w.wasDialled(metadata+":80") {
		t.Errorf("the redirect was followed: %v", err)
	}
}

// TestNothingAllowed: rules without any that allow, and a session's own within the operator's.
func TestNothingAllowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["a.test"], w.names["b.test"] = []string{good}, []string{good}
	if err := w.dialer(nil).LookUp(t.Context(), "a.test"); !problem.Has(err, problem.DestinationRefused) {
		t.Errorf("without rules: %v", err)
	}
	narrow := func(allow ...string) *egress.Rules {
		rules, err := egress.ParseRules(allow, nil)
		if err != nil {
			t.Fatal(err)
		}
		return &rules
	}
	for _, c := range []struct {
		operator []string
		session  *egress.Rules
		name     string
		port     int
		ok       bool
	}{
		{[]string{"*"}, narrow("a.test"), "a.test", 443, true},
		{[]string{"*"}, narrow("a.test"), "b.test", 443, false},
		{[]string{"*"}, narrow(), "a.test", 443, false},
		{[]string{"a.test"}, narrow("*"), "a.test", 443, true},
		{[]string{"a.test"}, narrow("*"), "b.test", 443, false},
		{[]string{"*"}, narrow("a.test:22"), "a.test", 22, false},
		{[]string{"*:22,443"}, narrow("a.test:22"), "a.test", 22, true},
		{[]string{"*"}, nil, "b.test", 443, true},
	} {
		p := w.with(egress.Options{Session: c.session}, nil, c.operator...)
		_, err := w.said(p, c.name, c.port, "")
		if refused := problem.Has(err, problem.DestinationRefused); refused == c.ok {
			t.Errorf("operator %v, session %v, %s:%d: %v", c.operator, p.Allows(), c.name, c.port, err)
		}
	}
	// A session's rule for an address does not make a private one reachable; the operator's does.
	w.serve(private+":80", hello)
	for operator, ok := range map[string]bool{"*": false, "10.0.0.0/8": true} {
		p := w.with(egress.Options{Session: narrow("10.0.0.0/8")}, nil, operator)
		answer, err := w.said(p, private, 80, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if strings.Contains(answer, "hello") != ok {
			t.Errorf("operator %s: %q, %v", operator, answer, err)
		}
	}
}

// TestMostBytes ends what sends and receives too much.
func TestMostBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["a.test"] = []string{good}
	w.serve(good+":80", func(rw http.ResponseWriter, _ *http.Request) {
		for range 1000 {
			if _, err := rw.Write(make([]byte, 10_000)); err != nil {
				return
			}
		}
	})
	p := w.with(egress.Options{Meter: egress.NewMeter(1_000_000, 0)}, nil, "a.test")
	const get = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"
	answer, _ := w.said(p, "a.test", 80, get)
	if len(answer) < 900_000 || len(answer) > 1_300_000 {
		t.Errorf("%d bytes came", len(answer))
	}
	if _, err := w.said(p, "a.test", 80, get); !problem.Has(err, problem.DestinationRefused) {
		t.Errorf("after that: %v", err)
	}
}

// TestFurtherRules: each of those of a project and of a key has to allow a destination.
func TestFurtherRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["a.test"], w.names["b.test"], w.names["c.test"] = []string{good}, []string{good}, []string{good}
	w.serve(good+":80", func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("hello")) })
	project, err := egress.ParseRules([]string{"*.test"}, []string{"b.test"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := egress.ParseRules([]string{"a.test", "b.test"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := w.with(egress.Options{Within: []egress.Rules{project, key}}, nil, "a.test", "b.test", "c.test")
	for host, may := range map[string]bool{"a.test": true, "b.test": false, "c.test": false} {
		answer, err := w.said(d, host, 80, "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
		if may != strings.HasSuffix(answer, "hello") || may != (err == nil) {
			t.Errorf("%s: %q, %v", host, answer, err)
		}
		if err := d.LookUp(t.Context(), host); may != (err == nil) {
			t.Errorf("look up %s: %v", host, err)
		}
	}
}

// TestBytesPerSecond: what a session sends and receives in a second is bounded over all its connections.
func TestBytesPerSecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["a.test"] = []string{good}
	w.serve(good+":80", func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, 1_500_000)) })
	p := w.with(egress.Options{Meter: egress.NewMeter(0, 2_000_000)}, nil, "a.test")
	const get = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"
	begun := time.Now()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if answer, err := w.said(p, "a.test", 80, get); err != nil || len(answer) < 1_500_000 {
				t.Errorf("%d bytes came, %v", len(answer), err)
			}
		})
	}
	both.Wait()
	if took := time.Since(begun); took < 400*time.Millisecond { // 3 MB, of which 2 may come at once
		t.Errorf("it took %v", took)
	}
}

func TestParseRule(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"example.com", "*.example.com:443,8443", "EXAMPLE.com.", "bücher.example", "10.0.0.0/8", "10.1.2.3:5432", "[2001:db8::/32]:443", "2001:db8::1", "*", "*:22"} {
		if _, err := egress.ParseRule(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "https://example.com", "user@example.com", "example.com/path", "example.com:", "example.com:0", "example.com:99999", "exa mple.com", "*.*.com", "a*.com", "127.1", "0x7f.1", "10.0.0.0/99", "localhost", "::ffff:10.0.0.0/104", "fe80::1%eth0", "-a.com", "\x00.com", strings.Repeat("a.", 200) + "com"} {
		if r, err := egress.ParseRule(bad); !problem.Has(err, problem.NetworkRule) {
			t.Errorf("%q is the rule %v (%v)", bad, r, err)
		}
	}
}

// TestToldInBounds: a program that asks for thousands of names does not fill logs, and a connection over which nothing was said was not refused.
func TestToldInBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["a.test"] = []string{good}
	w.serve(good+":80", hello)
	d := w.dialer(nil, "a.test")
	for n := range 2000 {
		if err := d.LookUp(t.Context(), fmt.Sprintf("n%d.evil.test", n)); !problem.Has(err, problem.DestinationRefused) {
			t.Fatal(err)
		}
	}
	if n := len(w.events); n < 200 || n > 1000 { // 200, and 5 for each second that this took
		t.Errorf("%d refusals were told", n)
	}
	if _, err := w.said(d, "a.test", 80, ""); err != nil {
		t.Errorf("a silent connection: %v", err)
	}
	if last := w.events[len(w.events)-1]; last.Host != "a.test" || last.Refused != "" {
		t.Errorf("it was told as %+v", last)
	}
}

// TestIsPublic has a machine with addresses of the public internet: they are as close to it as any other of its own.
func TestIsPublic(t *testing.T) {
	egress.HaveAddresses(t, netip.MustParseAddr("8.8.4.4"), netip.MustParseAddr("2606:4700::7"))
	for address, public := range map[string]bool{
		"8.8.8.8": true, "2606:4700::8": true, "8.8.4.4": false, "::ffff:8.8.4.4": false, "2606:4700::7": false, "2606:4700::7%eth0": false,
		"10.0.0.1": false, "127.0.0.1": false, "169.254.169.254": false, "::1": false, "fd00::1": false, "64:ff9b::808:808": false,
	} {
		if got := egress.IsPublic(netip.MustParseAddr(address)); got != public {
			t.Errorf("%s is public: %t", address, got)
		}
	}
}
