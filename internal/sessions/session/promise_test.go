package session_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/kernel"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

// TestBounds has code use up everything, where an engine bounds it. The next execution works every time.
func TestBounds(t *testing.T) {
	t.Parallel()
	limits := sandbox.Limits{Memory: 512 << 20, Processes: 128, Tmp: 32 << 20, Workspace: 32 << 20}
	s := open(t, newGVisor(t), limits)
	const ended = "out_of_memory 137 lost=(kernel|session)" // the session where the code is faster than the guest's watch
	const noMemory = "(error MemoryError: .*\nerror 1|" + ended + ")"
	for _, c := range []struct {
		name, code, like string
		state            bool // variables must be there afterwards
	}{
		{"memory in small pieces", "hoard = []\nwhile True: hoard.append(bytearray(1 << 20))", noMemory, false},
		{"memory in one piece", "bytearray(4 << 30)", noMemory, false},
		{"more memory than there can be", "import numpy\nnumpy.zeros((10**6, 10**6))", "error .*MemoryError: .*\nerror 1", true},
		{"memory of children", "import subprocess, sys\nps = [subprocess.Popen([sys.executable, '-c', 'import time; x = bytearray(200 << 20); time.sleep(3)']) for _ in range(4)]\nfor p in ps: p.wait()", "(?:stderr .*\n)?(ok|" + ended + ")", false},
		{"fork bomb", "import os\nwhile True: os.fork()", "(stderr .*\n)?(error (BlockingIOError|OSError): .*\nerror 1|ok|" + ended + ")", false},
		{"thread bomb", "import threading\ngo = threading.Event()\ntry:\n    while True: threading.Thread(target=go.wait).start()\nfinally: go.set()", "(stderr .*\n)?error RuntimeError: can't start new thread\nerror 1", false},
		{"open files", "import os\nfs = []\ntry:\n    while True: fs.append(os.open('/dev/null', 0))\nfinally:\n    for f in fs: os.close(f)", "error OSError: \\[Errno 24\\].*\nerror 1", false},
		{"full /tmp", "try:\n    f = open('/tmp/big', 'wb', 0)\n    while True: f.write(b'x' * (1 << 20))\nfinally: f.close(); os.remove('/tmp/big')", "error OSError: \\[Errno 28\\] No space left on device\nerror 1", true},
		{"full workspace", "try:\n    f = open('big', 'wb', 0)\n    while True: f.write(b'x' * (1 << 20))\nfinally: f.close(); os.remove('big')", "error OSError: \\[Errno 28\\] No space left on device\nerror 1", true},
		{"kill everything", "os.system('kill -9 -1')\nimport time\ntime.sleep(1000)", "kernel_died SIGKILL lost=kernel", false},
		{"kill the guest", "os.kill(1, 9)", "error PermissionError: .*\nerror 1", true},
		{"daemons", "import subprocess\nfor _ in range(20): subprocess.Popen(['sleep', '1000'], start_new_session=True)", "ok", true},
		{"no network", "import socket\nsocket.create_connection(('1.1.1.1', 53), 5)", "error OSError: .*\nerror 1", true},
		{"no names", "import urllib.request\nurllib.request.urlopen('http://example.com', timeout=5)", "error URLError: .*\nerror 1", true},
		{"no loopback to the host", "import socket\nsocket.create_connection(('127.0.0.1', 22), 5)", "error (ConnectionRefusedError|OSError): .*\nerror 1", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			execute(t, s, cell{req: kernel.Request{Code: "import os\nheld = 1\nopen('kept.txt', 'w').write('kept')"}})
			r := execute(t, s, cell{req: kernel.Request{Code: c.code, Timeout: 30 * time.Second}})
			requireLike(t, r, c.code, c.like)
			after := execute(t, s, cell{req: kernel.Request{Code: "import os\nprint('held' in globals(), os.path.exists('kept.txt'))"}})
			switch got := after.text["stdout"].String(); {
			case got == "True True\n", got == "False True\n" && !c.state, got == "False False\n" && r.done.Lost == kernel.LostSession:
			case got == "False False\n" && !c.state && after.rolledBack(): // what the code left behind took the sandbox afterwards, and that was said
			default:
				t.Errorf("after %s: %s\n%s", describe(r.done), after.transcript(), after.explanation())
			}
		})
	}
	t.Run("emptied home", func(t *testing.T) {
		execute(t, s, cell{req: kernel.Request{Code: "!rm -rf /home/user"}})
		runCell(t, s, codeLike("open('again.txt', 'w').write('x');", "created again.txt 1\nok"))
	})
}

// lost is a session whose sandbox is about to go, with one input that must come back and a file that cannot.
func lost(t *testing.T, l sandbox.Limits) (*session.Live, string) {
	t.Helper()
	state := t.TempDir()
	s := open(t, gvisor.New(gvisor.Options{State: state, Executable: sandboxtest.Binary(t)}), l)
	host := filepath.Join(t.TempDir(), "input.csv")
	if err := os.WriteFile(host, []byte("a,b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.PutFile(t.Context(), "in/input.csv", host); err != nil {
		t.Fatal(err)
	}
	runCell(t, s, code("x = 1\nopen('made.txt', 'w').write('m');", "created made.txt 1\nok"))
	return s, state
}

func goesOn(t *testing.T, s *session.Live) {
	t.Helper()
	runCell(t, s, code("import os\n'x' in globals(), open('in/input.csv').read(), os.path.exists('made.txt')", `result (False, 'a,b\n', False)`+"\nok"))
}

// TestSandboxKilled kills the sentry from outside during an execution, and between two.
func TestSandboxKilled(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s, state := lost(t, sandbox.Limits{})
	if boxes, err := filepath.Glob(filepath.Join(state, "sbx-*")); err != nil || len(boxes) != 1 {
		t.Fatalf("%d sandboxes, %v", len(boxes), err)
	}
	killSentry(t, state)
	// Whether the host has noticed already is a race that code must not lose: either way the one after works.
	// That the variables are gone is said in both cases.
	r := execute(t, s, cell{req: kernel.Request{Code: "1"}})
	_, said := r.events[0].(kernel.Rollback)
	if r.done.Lost == kernel.LostSession == said || r.done.Outcome == kernel.OutcomeSandboxDied && r.done.Lost != kernel.LostSession {
		t.Errorf("ended as %s, said before it: %v", describe(r.done), said)
	}
	goesOn(t, s)

	r = nil
	for ev, err := range s.Execute(t.Context(), kernel.Request{Code: "x = 1\nprint('ready')\nwhile True: pass"}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := ev.(kernel.Stream); ok {
			killSentry(t, state)
		}
		if done, ok := ev.(kernel.Done); ok {
			r = &run{done: done}
		}
	}
	if r == nil || r.done.Outcome != kernel.OutcomeSandboxDied || r.done.Lost != kernel.LostSession || r.done.Message == "" {
		t.Errorf("ended as %+v", r)
	}
	goesOn(t, s)
}

// TestSandboxKilledWhileAKernelStarts has the sandbox end between a kernel's death and the start of the next one. Code that has not begun runs in a new
// sandbox then, after a word about what is lost.
func TestSandboxKilledWhileAKernelStarts(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s, state := lost(t, sandbox.Limits{})
	if r := execute(t, s, cell{req: kernel.Request{Code: "import os\nos._exit(3)"}}); r.done.Lost != kernel.LostKernel {
		t.Fatalf("ended as %s", describe(r.done))
	}
	sentry := sandboxtest.Processes(t, "runsc-sandbox", state)
	signal(t, sentry, syscall.SIGSTOP) // so that no kernel can start
	killed := time.AfterFunc(300*time.Millisecond, func() { signal(t, sentry, syscall.SIGKILL) })
	defer killed.Stop()
	r := execute(t, s, cell{req: kernel.Request{Code: "import os\n'x' in globals(), open('in/input.csv').read(), os.path.exists('made.txt')"}})
	if _, said := r.events[0].(kernel.Rollback); !said || r.done.Outcome != kernel.OutcomeOK {
		t.Errorf("gave\n%s", r.transcript())
	}
	goesOn(t, s)
}

func killSentry(t *testing.T, state string) {
	t.Helper()
	signal(t, sandboxtest.Processes(t, "runsc-sandbox", state), syscall.SIGKILL)
}

func signal(t *testing.T, pids []int, what syscall.Signal) {
	t.Helper()
	if len(pids) == 0 {
		t.Error("found no sentry")
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, what); err != nil {
			t.Error(err)
		}
	}
}

// TestSandboxOutOfMemory has code outrun the guest's watch, so that the whole sandbox goes.
func TestSandboxOutOfMemory(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s, _ := lost(t, sandbox.Limits{Memory: 256 << 20})
	r := execute(t, s, cell{req: kernel.Request{Timeout: time.Minute, Code: `import mmap, os
for _ in range(8):
    if not os.fork(): break
hoard = []
while True:
    m = mmap.mmap(-1, 256 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
    hoard.append(m)`}})
	if r.done.Outcome != kernel.OutcomeMemory || r.done.Message == "" {
		t.Errorf("ended as %s: %s", describe(r.done), r.done.Message)
	}
	if r.done.Lost == kernel.LostSession {
		goesOn(t, s)
		return
	}
	r = execute(t, s, cell{req: kernel.Request{Code: "import os\n'x' in globals(), open('in/input.csv').read(), os.path.exists('made.txt')"}})
	want := `result (False, 'a,b\n', True)` + "\nok"
	if _, said := r.events[0].(kernel.Rollback); said { // the rest of the sandbox went after the kernel had
		want = describe(r.events[0]) + "\n" + `result (False, 'a,b\n', False)` + "\nok"
	}
	if diff := cmp.Diff(want, r.transcript()); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}
