package e2e_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// manyAtOnce is how many connections a session has at once, one way and the other.
const manyAtOnce = 1000

// TestScaleConnections: a server in a session and a server outside each answer nobody before a thousand are there, and then all.
func TestScaleConnections(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	all := make(chan struct{})
	var there sync.WaitGroup
	there.Add(manyAtOnce)
	go func() {
		there.Wait()
		close(all)
	}()
	in := newInner(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		there.Done()
		select {
		case <-all:
			_, _ = fmt.Fprint(w, "all are here")
		case <-r.Context().Done():
		}
	}))
	s := startServer(t, "", testKey(t), "COVE_REQUESTS_PER_SECOND=0", "COVE_PROJECT_REQUESTS_PER_SECOND=0", "COVE_NETWORK_ALLOW="+strings.Join(in.rules, ","))
	var made struct{ ID string }
	s.must(http.MethodPost, "/api/v1/sessions", map[string]any{"network": map[string]any{"allow": in.rules[:1]}}, &made)

	host, port, _ := net.SplitHostPort(in.host)
	outward := fmt.Sprintf(`
import asyncio
async def one():
    reader, writer = await asyncio.open_connection(%q, %s)
    writer.write(b"GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n")
    return (await reader.read()).endswith(b"all are here")
async def all():
    return sum(await asyncio.gather(*(one() for i in range(%d))))
print(await all())`, host, port, in.host, manyAtOnce)
	if got := s.says(made.ID, outward); got != fmt.Sprintf("%d\n", manyAtOnce) {
		t.Errorf("of %d connections outward, answered were %s", manyAtOnce, got)
	}

	inward := fmt.Sprintf(`
import asyncio
here, full = 0, asyncio.Event()
async def serve(reader, writer):
    global here
    line = await reader.readline()
    here += 1
    if here == %d:
        full.set()
    await full.wait()
    writer.write(line)
    await writer.drain()
    writer.close()
async def main():
    await (await asyncio.start_server(serve, "127.0.0.1", 9000, backlog=2000)).serve_forever()
asyncio.run(main())`, manyAtOnce)
	s.must(http.MethodPost, "/api/v1/sessions/"+made.ID+"/processes", map[string]any{"command": []string{"python", "-c", inward}}, nil)
	s.waitForPort(made.ID, 9000)
	c := newCommand(t, "session", "port", made.ID, "9000", "--local", "0", "--json")
	c.setenv("COVE_SERVER="+s.base, "COVE_KEY="+s.key)
	c.bound = 2 * patience
	c.start()
	c.stdout.until(t, "}\n")
	var said struct{ Address string }
	if err := json.Unmarshal([]byte(c.stdout.String()), &said); err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	for n := range manyAtOnce {
		clients.Go(func() {
			if got, err := exchange(said.Address, fmt.Sprintln("client", n)); err != nil || got != fmt.Sprintln("client", n) {
				t.Errorf("client %d was answered %q, %v", n, got, err)
			}
		})
	}
	clients.Wait()
	_ = c.cmd.Process.Signal(os.Interrupt)
	c.wait().ended(t, 0)
}

// waitForPort waits until a program of a session listens at a port.
func (s *server) waitForPort(session string, port int) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var list struct{ Items []struct{ Port int } }
		s.must(http.MethodGet, "/api/v1/sessions/"+session+"/ports", nil, &list)
		for _, p := range list.Items {
			if p.Port == port {
				return
			}
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("nothing listens at port %d", port)
		}
	}
}
