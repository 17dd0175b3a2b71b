package session_test

import (
	"testing"
	"time"

	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
)

// channel finds the kernel's socket to the guest, as hostile code would, and calls it fd.
const channel = `import os, socket, struct, json, time
def speak(data):
    for n in os.listdir("/proc/self/fd"):
        try:
            if int(n) > 4 and os.readlink("/proc/self/fd/" + n).startswith("socket:"): os.write(int(n), data)
        except OSError: pass
def message(**m):
    b = m.pop("raw", None) or json.dumps(m).encode()
    return struct.pack(">IB", len(b), 1) + b
`

// TestDeath ends kernels in every way. Files stay, variables go, and the next execution works.
func TestDeath(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		execute(t, s, cell{req: kernel.Request{Code: "open('kept.txt', 'w').write('kept')"}})
		for _, c := range []struct{ name, code, like string }{
			{"os._exit", "import os\nprint('last words')\nos._exit(7)", `stdout "last words\\n"` + "\nkernel_died 7 lost=kernel"},
			{"os._exit(0)", "import os\nos._exit(0)", "kernel_died lost=kernel"},
			{"segmentation fault", "import ctypes\nctypes.string_at(0)", `stderr ".*Segmentation fault.*"` + "\nkernel_died SIGSEGV lost=kernel"},
			{"abort", "import os\nos.abort()", `stderr ".*"` + "\nkernel_died SIGABRT lost=kernel"},
			{"SIGKILL", "import os\nprint('x', end='')\nos.kill(os.getpid(), 9)", `stdout "x"` + "\nkernel_died SIGKILL lost=kernel"},
			{"exec", "import os\nos.execv('/bin/echo', ['echo', 'replaced'])", `stdout "replaced\\n"` + "\nkernel_(died|protocol_error).* lost=kernel"},
			{"garbage", channel + `speak(b"\xff" * 64)` + "\ntime.sleep(1000)", "kernel_protocol_error 1 lost=kernel"},
			{"unknown kind", channel + `speak(struct.pack(">IB", 0, 77))` + "\ntime.sleep(1000)", "kernel_protocol_error 1 lost=kernel"},
			{"not JSON", channel + `speak(message(raw=b"{]"))` + "\ntime.sleep(1000)", "kernel_protocol_error 1 lost=kernel"},
			{"JSON of other types", channel + `speak(message(type="error", traceback=5))` + "\ntime.sleep(1000)", "kernel_protocol_error 1 lost=kernel"},
			{"reply to another", channel + `speak(message(type="reply", id="exe999", status="ok"))` + "\ntime.sleep(1000)", "kernel_protocol_error 1 lost=kernel"},
			{"unwanted input", channel + `speak(message(type="input_request", id="exe1"))` + "\ntime.sleep(1000)", "kernel_protocol_error 1 lost=kernel"},
			{"closed channel", channel + `os.closerange(3, 5000)` + "\ntime.sleep(1000)", "(stderr .*\n)?kernel_(protocol_error|died).* lost=kernel"},
		} {
			t.Run(c.name, func(t *testing.T) {
				execute(t, s, cell{req: kernel.Request{Code: "lost = 1"}})
				r := runCell(t, s, codeLike(c.code, c.like))
				if r.done.Message == "" {
					t.Error("nothing is said about it")
				}
				runCell(t, s, code("'lost' in globals(), open('kept.txt').read()", "result (False, 'kept')\nok"))
			})
		}
	})
}

// TestLies has code forge what a kernel says. Lies about its own results are the code's affair; what the host measures is not.
func TestLies(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		for _, c := range []struct{ name, code string }{
			{"a flood of displays", channel + `m = message(type="display", data={"text/plain": "x" * 10000})
while True: speak(m)`},
			{"unknown messages", channel + `m = message(type="nonesuch", data="x" * 10000)
while True: speak(m)`},
		} {
			t.Run(c.name, func(t *testing.T) {
				r := execute(t, s, cell{req: kernel.Request{Code: c.code, Timeout: 500 * time.Millisecond, OutputLimit: 1 << 20}})
				if r.done.Outcome != kernel.OutcomeTimeout && r.done.Outcome != kernel.OutcomeProtocol {
					t.Errorf("ended as %q", r.done.Outcome)
				}
				var shown int
				for _, b := range r.bundles() {
					shown += len(b["text/plain"].(string))
				}
				if shown > 1<<20 {
					t.Errorf("%d bytes delivered", shown)
				}
				runCell(t, s, code("1 + 1", "result 2\nok"))
			})
		}
	})
}
