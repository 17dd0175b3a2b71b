package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// TestPortsOfASession reaches servers in a session from this machine: one here, and one on a server.
func TestPortsOfASession(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	server := startServer(t, "", testKey(t))
	sessions := t.TempDir()
	for name, env := range map[string][]string{"here": {"COVE_SESSIONS=" + sessions}, "on a server": {"COVE_SERVER=" + server.base, "COVE_KEY=" + server.key}} {
		t.Run(name, func(t *testing.T) {
			begin := func(args ...string) *command {
				c := newCommand(t, append([]string{"session"}, args...)...)
				c.setenv(env...)
				return c
			}
			// A server of HTTP, and one that says what it has heard when its client says no more.
			const reverse = `
import socketserver
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.read()[::-1])
class Server(socketserver.ThreadingTCPServer):
    request_queue_size = 200
Server(("0.0.0.0", 9000), Handler).serve_forever()`
			begin("exec", "lab", "--detach", "--", "bash", "-c", "echo hello >page.txt; exec python -m http.server 8000 --bind 127.0.0.1").run().ended(t, 0)
			begin("exec", "lab", "--detach", "--", "python", "-c", reverse).run().ended(t, 0)
			reach := func(port int) (address string, leave func()) {
				t.Helper()
				c := begin("port", "lab", fmt.Sprint(port), "--local", "0", "--json")
				c.start()
				c.stdout.until(t, "}\n")
				var said struct {
					Port    int
					Address string
				}
				if err := json.Unmarshal([]byte(c.stdout.String()), &said); err != nil || said.Port != port {
					t.Fatalf("it said %s, %v", c.stdout.String(), err)
				}
				return said.Address, func() {
					_ = c.cmd.Process.Signal(os.Interrupt)
					c.wait().ended(t, 0)
				}
			}
			at, leave := reach(9000)
			for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) { // until it listens
				if got, err := exchange(at, "on"); err == nil && got == "no" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("nothing listens")
				}
			}
			var clients sync.WaitGroup
			for n := range 100 {
				clients.Go(func() {
					if got, err := exchange(at, strings.Repeat(fmt.Sprint(n%10), 100_000+n)+"!"); err != nil || len(got) != 100_001+n || got[0] != '!' {
						t.Errorf("%d bytes came back, %v", len(got), err)
					}
				})
			}
			clients.Wait()
			leave()
			at, leave = reach(8000)
			var page string
			for deadline := time.Now().Add(patience); page != "hello\n" && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
				if answer, err := http.Get("http://" + at + "/page.txt"); err == nil {
					text, _ := io.ReadAll(answer.Body)
					_ = answer.Body.Close()
					page = string(text)
				}
			}
			if page != "hello\n" {
				t.Errorf("the page is %q", page)
			}
			leave()
			r := begin("port", "lab").run()
			if r.ended(t, 0); !strings.Contains(r.stdout, "8000  127.0.0.1") || !strings.Contains(r.stdout, "9000  0.0.0.0") {
				t.Errorf("the ports are\n%s", r.stdout)
			}
			at, leave = reach(7777)
			if got, err := exchange(at, "x"); err == nil && got != "" {
				t.Errorf("a port where nothing listens said %q", got)
			}
			leave()
			begin("port", "lab", "99999").run().complained(t, "a port is a number")
			begin("port", "lab", "80", "--local", "x:y:z").run().complained(t, "neither a port nor an address")
		})
	}
}

// exchange says something, and no more, and returns what is answered.
func exchange(address, text string) (string, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	go func() {
		_, _ = io.WriteString(conn, text)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	return string(got), err
}
