package guestlink_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
)

// get is a command line that asks a port of the sandbox's loopback interface for /moo, many times at once.
func get(port, times int) string {
	return fmt.Sprintf(`cat > get.py <<'END'
import http.client, threading
lines = []
def get():
    try:
        c = http.client.HTTPConnection("127.0.0.1", %d, timeout=60)
        c.request("GET", "/moo")
        answer = c.getresponse()
        lines.append(f"{answer.status} {len(answer.read())}")
    except Exception as e:
        lines.append(type(e).__name__)
threads = [threading.Thread(target=get) for _ in range(%d)]
[t.start() for t in threads]
[t.join() for t in threads]
print(*sorted(set(lines)), len(lines), sep=", ")
END
python3 get.py`, port, times)
}

// TestForwardOfASandbox goes through the real guest, in a sandbox whose network is none but this.
func TestForwardOfASandbox(t *testing.T) {
	t.Parallel()
	engine := gvisor.New(gvisor.Options{State: t.TempDir(), Executable: sandboxtest.Binary(t)})
	_, l := sandboxtest.Start(t, engine, sandbox.Spec{})
	f, err := l.Forward(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat(r.URL.Path, 100_000))
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(f)
	}()
	if _, out := sandboxtest.Shell(t, l, get(f.Port, 100)); strings.TrimSpace(out) != "200 400000, 100" {
		t.Errorf("asked a hundred times: %s", out)
	}
	if _, out := sandboxtest.Shell(t, l, get(f.Port+1, 1)); strings.TrimSpace(out) != "ConnectionRefusedError, 1" {
		t.Errorf("asked another port: %s", out)
	}
	if _, err := l.Forward(t.Context()); err == nil || problem.Of(err).Code != "invalid_request" {
		t.Errorf("a second port at the same time: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	if _, out := sandboxtest.Shell(t, l, get(f.Port, 1)); strings.TrimSpace(out) != "ConnectionRefusedError, 1" {
		t.Errorf("asked a port that was given up: %s", out)
	}
	again, err := l.Forward(t.Context())
	if err != nil {
		t.Fatalf("a port after the first: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
