package session_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

// TestMuchOutput has all of it delivered, byte for byte, up to the limit.
func TestMuchOutput(t *testing.T) {
	testneeds.FullTier(t)
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		const lines = 160_000
		var numbered bytes.Buffer
		for i := range lines {
			fmt.Fprintf(&numbered, "%063d\n", i)
		}
		same := strings.Repeat("x", 10<<20)
		for _, c := range []struct{ name, code, stdout, stderr string }{
			{"lines", "for i in range(160000): print(f'{i:063d}')", numbered.String(), ""},
			{"one print", "print('x' * (10 << 20), end='')", same, ""},
			{"os.write", "import os\nleft = b'x' * (10 << 20)\nwhile left: left = left[os.write(1, left):]", same, ""},
			{"child process", "!head -c 10485760 /dev/zero | tr '\\0' x", same, ""},
			{"both streams", "import sys\nfor i in range(20000): print('x' * 50, file=sys.stderr if i % 2 else sys.stdout)", strings.Repeat(strings.Repeat("x", 50)+"\n", 10000), strings.Repeat(strings.Repeat("x", 50)+"\n", 10000)},
			{"threads", "import threading\nts = [threading.Thread(target=lambda: [print('x' * 99) for _ in range(5000)]) for _ in range(4)]\nfor t in ts: t.start()\nfor t in ts: t.join()\nprint(end='', flush=True)", "", ""},
			{"displays", "from IPython.display import display\nfor i in range(2000): display(i)", "", ""},
		} {
			t.Run(c.name, func(t *testing.T) {
				r := execute(t, s, cell{req: kernel.Request{Code: c.code}})
				if r.done.Outcome != kernel.OutcomeOK || r.done.Dropped != 0 {
					t.Errorf("ended as %s\n%s", describe(r.done), r.explanation())
				}
				for stream, want := range map[string]string{"stdout": c.stdout, "stderr": c.stderr} {
					got := r.text[stream].String()
					if want != "" && sha256.Sum256([]byte(got)) != sha256.Sum256([]byte(want)) {
						t.Errorf("%s has %d bytes, want %d, or other ones", stream, len(got), len(want))
					}
				}
				if c.name == "threads" && strings.Count(r.text["stdout"].String(), "x") != 4*5000*99 {
					t.Errorf("%d bytes came", r.text["stdout"].Len())
				}
				if c.name == "displays" && len(r.bundles()) != 2000 {
					t.Errorf("%d displays came", len(r.bundles()))
				}
			})
		}
	})
}

// TestOrderInAFlood prints faster than line by line is written, and has other text come in between.
func TestOrderInAFlood(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		const lines, every = 60_000, 10_000
		r := execute(t, s, cell{req: kernel.Request{Code: fmt.Sprintf(`
import os, sys
for i in range(%d):
    print(i)
    if i %% %d == 0:
        sys.stdout.buffer.write(bytearray(b"bytes\n"))
        print("error", file=sys.stderr)
        os.system("echo child")
        if not os.fork():
            print("forked")
            os._exit(0)
        os.wait()`, lines, every)}})
		var want strings.Builder
		for i := range lines {
			fmt.Fprintln(&want, i)
			if i%every == 0 {
				want.WriteString("bytes\nchild\nforked\n")
			}
		}
		if r.done.Outcome != kernel.OutcomeOK || r.text["stdout"].String() != want.String() || r.text["stderr"].String() != strings.Repeat("error\n", lines/every) {
			t.Errorf("ended as %s, with %d bytes of %d, or in another order\n%s", describe(r.done), r.text["stdout"].Len(), want.Len(), r.explanation())
		}
		r = execute(t, s, cell{req: kernel.Request{Code: `
import sys, threading
def count(name):
    for i in range(30000):
        sys.stdout.write(f"{name} {i}\n")
ts = [threading.Thread(target=count, args=(name,)) for name in range(4)]
for t in ts: t.start()
for t in ts: t.join()`}})
		next := map[int]int{}
		for line := range strings.Lines(r.text["stdout"].String()) {
			var name, i int
			if _, err := fmt.Sscanf(line, "%d %d", &name, &i); err != nil || i != next[name] {
				t.Fatalf("%q comes where %d should, %v", line, next[name], err)
			}
			next[name]++
		}
		for name := range 4 {
			if next[name] != 30_000 {
				t.Errorf("thread %d has said %d lines", name, next[name])
			}
		}
		between(t, s)
		bytesInAFlood(t, s)
	})
}

// bytesInAFlood writes to a function of the stream's binary side that was looked up while much was printed, and detaches it.
func bytesInAFlood(t *testing.T, s *session.Live) {
	r := execute(t, s, cell{req: kernel.Request{Code: `
import sys, time
def text():
    time.sleep(0.05)
    return b"late\n"
for i in range(2000):
    print(i)
write = sys.stdout.buffer.write
sys.stdout.buffer.write(text())
print("between")
write(b"later\n")
for i in range(2000):
    print(i)
out = sys.stdout.detach()
time.sleep(0.05)
out.write(b"detached\n")`}})
	var want strings.Builder
	for _, tail := range []string{"late\nbetween\nlater\n", "detached\n"} {
		for i := range 2000 {
			fmt.Fprintln(&want, i)
		}
		want.WriteString(tail)
	}
	if got := r.text["stdout"].String(); got != want.String() {
		t.Errorf("%d bytes came, want %d, or other ones; the last are %q", len(got), want.Len(), got[max(0, len(got)-40):])
	}
}

// between prints on both streams by turns, with displays, child processes and bytes of C's between, and wants all in its order.
func between(t *testing.T, s *session.Live) {
	const lines = 20_000
	r := execute(t, s, cell{req: kernel.Request{Code: fmt.Sprintf(`
import ctypes, os, sys
from IPython.display import display
for i in range(%d):
    if i %% 1000 == 999:
        os.system(f"echo {i}")
    elif i %% 1000 == 500:
        display(i)
    elif i %% 1000 == 200:
        os.write(1, b"%%d\n" %% i)
    elif i %% 1000 == 100:
        print(i, "x" * 100_000)
    else:
        print(i, file=sys.stderr if i %% 2 else sys.stdout)`, lines)}})
	var all strings.Builder
	for _, ev := range r.events {
		switch ev := ev.(type) {
		case kernel.Stream:
			all.Write(ev.Data)
		case kernel.Display:
			fmt.Fprintln(&all, ev.Data["text/plain"])
		}
	}
	next := 0
	for line := range strings.Lines(all.String()) {
		if number, _, _ := strings.Cut(strings.TrimSpace(line), " "); number != strconv.Itoa(next) {
			t.Fatalf("%.40q comes where %d should", line, next)
		}
		next++
	}
	if next != lines || r.done.Outcome != kernel.OutcomeOK {
		t.Errorf("ended as %s after %d lines", describe(r.done), next)
	}
}

// TestOutputLimit bounds what is delivered, whatever the code does.
func TestOutputLimit(t *testing.T) {
	testneeds.FullTier(t)
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		const limit = 100_000
		for _, c := range []struct {
			name, code string
			endless    bool
			total      int64 // bytes that the code writes; 0 when nobody can know
		}{
			{"print", "print('x' * 999_999)", false, 1_000_000},
			{"child process", "!head -c 1000000 /dev/zero", false, 1_000_000},
			{"both streams", "import sys\nprint('x' * 499_999)\nprint('x' * 499_999, file=sys.stderr)", false, 1_000_000},
			{"displays", "from IPython.display import display, HTML\nfor i in range(100): display(HTML('x' * 10_000))", false, 0},
			{"flood of text", "while True: print('x' * 1_000_000)", true, 0},
			{"flood of lines", "while True: print('x')", true, 0},
			{"flood from a child", "!yes", true, 0},
			{"flood of displays", "from IPython.display import display\nwhile True: display('x' * 10_000)", true, 0},
		} {
			t.Run(c.name, func(t *testing.T) {
				req := kernel.Request{Code: c.code, OutputLimit: limit}
				want := kernel.OutcomeOK
				if c.endless {
					req.Timeout, want = time.Second, kernel.OutcomeTimeout
				}
				r := execute(t, s, cell{req: req})
				for c.endless && r.text["stdout"].Len()+r.text["stderr"].Len()+len(r.bundles()) == 0 && req.Timeout < time.Minute {
					req.Timeout *= 4 // on a busy machine a second is not enough for a child to begin
					r = execute(t, s, cell{req: req})
				}
				if r.done.Outcome != want || r.done.Dropped == 0 || r.done.Lost != kernel.LostNothing {
					t.Errorf("ended as %s", describe(r.done))
				}
				delivered := int64(r.text["stdout"].Len() + r.text["stderr"].Len())
				for _, b := range r.bundles() {
					for _, v := range b {
						delivered += int64(len(v.(string)))
					}
				}
				if delivered > limit || delivered == 0 {
					t.Errorf("%d bytes delivered", delivered)
				}
				if c.total != 0 && delivered+r.done.Dropped != c.total {
					t.Errorf("%d bytes delivered and %d dropped of %d", delivered, r.done.Dropped, c.total)
				}
				runCell(t, s, code("print('fine')", "stdout \"fine\\n\"\nok"))
			})
		}
	})
}
