package session_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/egress"
	"cove/internal/machine/sandbox"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

// names is a resolver that knows what it says.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if a, ok := n[strings.TrimSuffix(host, ".")]; ok {
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// network has a session reach a server on this machine at api.test.
func network(t *testing.T, s *session.Live, known names, allow ...string) (events chan egress.Event) {
	t.Helper()
	rules, err := egress.ParseRules(allow, nil)
	if err != nil {
		t.Fatal(err)
	}
	events = make(chan egress.Event, 1000)
	err = s.SetNetwork(t.Context(), egress.New(egress.Options{Operator: rules, Resolver: known, Tell: func(e egress.Event) { events <- e }}))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

const reaching = `
import socket, urllib.request, urllib.error
URL = "http://api.test:%[1]d/"
def got(f, *args):
    try:
        return f(*args)
    except urllib.error.URLError as e:
        return f"{type(e.reason).__name__} {e.reason}"
    except OSError as e:
        return f"{type(e).__name__} {e}"
read = lambda url, data=None: urllib.request.urlopen(url, data, timeout=60).read()
print(got(read, URL))
print(len(got(read, URL + "echo", b"x" * 3_000_000)))
print(got(socket.getaddrinfo, "other.test", 80))
print(got(read, "http://127.0.0.1:%[1]d/"))
print(got(lambda: socket.create_connection(("203.0.113.9", 80)).recv(1)))
print(len({socket.gethostbyname(n) for n in ("api.test", "API.test.", "two.test")}))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.5); s.sendto(b"hello", ("198.51.100.7", 4433))
print(got(s.recv, 10))
print(got(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)))
`

// TestNetwork reaches a server of this machine through the rules, from a new session and from one that was saved.
func TestNetwork(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/echo" {
			_, _ = io.Copy(w, r.Body)
			return
		}
		_, _ = fmt.Fprintf(w, "hello from %s", r.Host)
	}))
	t.Cleanup(server.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	known := names{"api.test": "127.0.0.1", "two.test": "127.0.0.1", "other.test": "127.0.0.1"}
	e := newGVisor(t)
	s := open(t, e, sandbox.Limits{})
	none := code(`import socket
try: socket.create_connection(("198.51.100.7", 80), timeout=30)
except OSError as e: print(e)
try: socket.gethostbyname("api.test")
except OSError as e: print(e)`, `stdout "[Errno 101] Network is unreachable\n[Errno -3] Temporary failure in name resolution\n"`+"\nok")
	runCell(t, s, none)
	want := fmt.Sprintf(`stdout "b'hello from api.test:%[1]d'\n3000000\ngaierror [Errno -2] Name or service not known\nConnectionRefusedError [Errno 111] Connection refused\n`+
		`ConnectionResetError [Errno 104] Connection reset by peer\n2\nTimeoutError timed out\nPermissionError [Errno 1] Operation not permitted\n"`+"\nok", port)
	rules := []string{fmt.Sprintf("api.test:%d", port), fmt.Sprintf("two.test:%d", port), fmt.Sprintf("127.0.0.1:%d", port)}
	events := network(t, s, known, rules...)
	runCell(t, s, code(fmt.Sprintf(reaching, port), want))
	seen := map[string]bool{}
	for len(events) > 0 {
		ev := <-events
		seen[fmt.Sprintf("%s %d %v", ev.Host, ev.Port, ev.Refused != "")] = true
	}
	for _, w := range []string{fmt.Sprintf("api.test %d false", port), "other.test 0 true", "203.0.113.9 80 true"} {
		if !seen[w] {
			t.Errorf("there is no event %q in %v", w, seen)
		}
	}

	restored := reopen(t, e, save(t, s, false), false)
	runCell(t, restored, code(`print(got(read, URL))`, `stdout "gaierror [Errno -3] Temporary failure in name resolution\n"`+"\nok"))
	network(t, restored, known, rules...)
	runCell(t, restored, code(fmt.Sprintf(reaching, port), want))
	save(t, restored, true) // and the session goes on
	runCell(t, restored, code(`print(got(read, URL))`, fmt.Sprintf(`stdout "b'hello from api.test:%d'\n"`+"\nok", port)))
	if err := restored.SetNetwork(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	runCell(t, restored, code(`print(got(read, URL))`, `stdout "gaierror [Errno -2] Name or service not known\n"`+"\nok"))
}

// TestNetworkInUse does not save a session, which would break connections, while one of them moves bytes.
func TestNetworkInUse(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	port := listener.Addr().(*net.TCPAddr).Port
	s := open(t, newGVisor(t), sandbox.Limits{})
	network(t, s, names{"db.test": "127.0.0.1"}, fmt.Sprintf("db.test:%d", port), "127.0.0.1")
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = c.Write([]byte("220 the server speaks first\n"))
		_, _ = io.Copy(c, c)
	}()
	runCell(t, s, code(fmt.Sprintf(`import socket
c = socket.create_connection(("db.test", %d)); f = c.makefile("rw"); print(f.readline().strip()); f.write("and is answered\n"); f.flush(); print(f.readline().strip())`, port),
		`stdout "220 the server speaks first\nand is answered\n"`+"\nok"))
	if _, err := s.Save(t.Context(), t.TempDir(), true); !problem.Has(err, problem.SessionBusy) {
		t.Errorf("saved with a connection in use: %v", err)
	}
	runCell(t, s, code(`f.write("still\n"); f.flush(); print(f.readline().strip()); c.close(); f.close()`, `stdout "still\n"`+"\nok"))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := s.Save(t.Context(), t.TempDir(), true)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
