package scan_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/machine/wire"
	"cove/internal/python/deps/scan"
	"cove/internal/testkit/testneeds"
)

// isolated returns an engine and what its sandboxes need so that there is a Python in them.
func isolated(t testing.TB) (sandbox.Saver, sandbox.Spec, string) {
	p := python(t)
	var spec sandbox.Spec
	if p.Base != "/usr" {
		spec.Mounts = []sandbox.Mount{{Source: sandbox.HostFolder(p.Base), Target: p.Base}}
	}
	return gvisor.New(gvisor.Options{State: t.TempDir(), Executable: sandboxtest.Binary(t)}), spec, p.Path
}

// code runs Python as sandboxed code and returns what it prints.
func code(t testing.TB, l *guestlink.Link, python, text string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	spec := wire.ProcessSpec{Args: append([]string{python, "-c", text}, args...), Env: []string{"PATH=/usr/bin:/bin", "HOME=/home/user"}}
	if status, err := l.Run(t.Context(), spec, &out, &out); err != nil || status != 0 {
		t.Fatalf("ended with %d, %v\n%s", status, err, out.String())
	}
	return strings.TrimSpace(out.String())
}

// findScanners prints the process ids of scanners and, with them, whose they are.
const findScanners = `import glob
for path in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        words = open(path, "rb").read().split(b"\0")
        if b"-I" in words and b"-S" in words:
            uid = [line.split()[1] for line in open(path[:-7] + "status") if line.startswith("Uid")][0]
            print(path.split("/")[2], uid, words[-2].decode())
    except OSError:
        pass
`

// attack tries what sandboxed code could do to another process. It prints what worked.
const attack = `import ctypes, os, signal, sys
pid, driver = int(sys.argv[1]), sys.argv[2]
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name):
    def run(f):
        try:
            result = f()
        except (OSError, PermissionError):
            return
        if result is not False:
            print("worked:", name)
    return run
for number in (0, signal.SIGKILL, signal.SIGSTOP, signal.SIGINT):
    attempt("signal %d" % number)(lambda: os.kill(pid, number))
    attempt("signal %d to the group" % number)(lambda: os.killpg(pid, number))
for request in (16, 0x4206):
    attempt("ptrace %d" % request)(lambda: libc.ptrace(request, pid, 0, 0) == 0)
for name in ("mem", "environ", "maps", "auxv", "stack", "syscall", "io", "pagemap"):
    attempt("read " + name)(lambda: len(open("/proc/%d/%s" % (pid, name), "rb").read(1)) > 0)
for name in ("mem", "comm", "oom_score_adj", "coredump_filter", "timerslack_ns"):
    attempt("write " + name)(lambda: open("/proc/%d/%s" % (pid, name), "r+b").write(b"1"))
attempt("list descriptors")(lambda: os.listdir("/proc/%d/fd" % pid))
for fd in (0, 1, 2, 3, 4):
    attempt("open descriptor %d" % fd)(lambda: open("/proc/%d/fd/%d" % (pid, fd), "r+b", 0))
for name in ("cwd", "root", "exe"):
    attempt("follow " + name)(lambda: os.readlink("/proc/%d/%s" % (pid, name)))
class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(8)
local, remote = Iovec(ctypes.addressof(buffer), 8), Iovec(0x400000, 8)
attempt("process_vm_readv")(lambda: libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) > 0)
attempt("process_vm_writev")(lambda: libc.process_vm_writev(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) > 0)
attempt("limit")(lambda: libc.prlimit64(pid, 0, (ctypes.c_uint64 * 2)(1, 1), None) == 0)
attempt("renice")(lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
attempt("affinity")(lambda: os.sched_setaffinity(pid, {0}))
attempt("write the driver")(lambda: open(driver, "r+b"))
attempt("replace the driver")(lambda: os.rename(__import__("shutil").copy(driver, "/tmp/driver.py"), driver))
attempt("remove the driver")(lambda: os.unlink(driver))
attempt("write beside the driver")(lambda: open(os.path.dirname(driver) + "/json.py", "w"))
attempt("write beside Python")(lambda: open(os.__file__ + "c", "w"))
attempt("become its user")(lambda: os.setuid(os.getuid() + 1))
print("tried")
`

// plant leaves files and settings about that Python would heed if it were not isolated.
const plant = `import os, site, sys
lie = "import os\nopen('/tmp/ran-as-%d' % os.getuid(), 'a').close()\n"
os.makedirs(site.getusersitepackages() if hasattr(site, "getusersitepackages") else ".", exist_ok=True)
for folder in ("/tmp", "/home/user", "/", "/run", "/home/user/.local", site.getusersitepackages(), "/dev/shm"):
    for name in ("sitecustomize.py", "usercustomize.py", "gc.py", "json.py", "resource.py", "time.py", "_json.py", "encodings.py", "x.pth"):
        try:
            open(os.path.join(folder, name), "w").write(lie)
        except OSError:
            pass
print("planted")
`

// TestApart has code in a real sandbox try to get at the scanner, with all it can do to another process, and to lead it astray.
func TestApart(t *testing.T) {
	t.Parallel()
	e, spec, python := isolated(t)
	_, l := sandboxtest.Start(t, e, spec)
	if out := code(t, l, python, plant); out != "planted" {
		t.Fatal(out)
	}
	s := startOn(t, l, python)
	question := scan.Code{Text: "import numpy, requests\n!pip install polars"}
	const answer = "numpy requests pip=polars"
	if got := describe(look(t, s, question)); got != answer {
		t.Fatalf("scanned %s", got)
	}
	found := strings.Fields(code(t, l, python, findScanners))
	if len(found) != 3 {
		t.Fatalf("scanners: %q", found)
	}
	if uid := strings.TrimSpace(code(t, l, python, "import os; print(os.getuid())")); uid == found[1] {
		t.Errorf("the scanner runs as the user of sandboxed code, %s", uid)
	}
	if out := code(t, l, python, attack, found[0], found[2]); out != "tried" {
		t.Errorf("sandboxed code may do something to the scanner:\n%s", out)
	}
	_, _ = sandboxtest.Shell(t, l, "kill -9 -1")
	if _, out := sandboxtest.Shell(t, l, "cd /tmp; ls -d ran-as-*"); out != "ran-as-1000\n" {
		t.Errorf("the scanner ran what code had left for it, or the test is wrong and nobody did: %q", out)
	}
	if got := describe(look(t, s, question)); got != answer {
		t.Errorf("afterwards it scanned %s", got)
	}
	if again := strings.Fields(code(t, l, python, findScanners)); len(again) != 3 || again[0] != found[0] {
		t.Errorf("the scanner was %v and is %v", found, again)
	}
}

// TestEnds looks for scanners that outlive their use.
func TestEnds(t *testing.T) {
	t.Parallel()
	e, spec, python := isolated(t)
	sb, l := sandboxtest.Start(t, e, spec)
	s := startOn(t, l, python)
	look(t, s, scan.Code{Text: "1"})
	s.Close()
	s.Close()
	<-s.Ended()
	if out := code(t, l, python, findScanners); out != "" {
		t.Errorf("after Close there is %s", out)
	}
	_, err := s.Scan(t.Context(), scan.Code{Text: "1"})
	requireProblem(t, err, "scan_failed")

	// A link that ends takes its scanner along, also when the sandbox is saved at that moment.
	s = startOn(t, l, python)
	look(t, s, scan.Code{Text: "1"})
	if kernels := l.Kernels(); len(kernels) != 0 {
		t.Errorf("a scanner counts as a kernel: %v", kernels)
	}
	image := sandboxtest.Checkpoint(t, sb, l, true)
	<-s.Ended()
	_, restored := sandboxtest.Restore(t, e, spec, image)
	kept, err := guestlink.Dial(t.Context(), sb, guestlink.Session{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	for name, l := range map[string]*guestlink.Link{"kept": kept, "restored": restored} {
		if kernels := l.Kernels(); len(kernels) != 0 {
			t.Errorf("%s: there are kernels: %v", name, kernels)
		}
		awaitNone(t, l, python, name)
		if got := describe(look(t, startOn(t, l, python), scan.Code{Text: "import a"})); got != "a" {
			t.Errorf("%s: a new scanner says %s", name, got)
		}
	}
}

// awaitNone waits until no scanner is left.
func awaitNone(t *testing.T, l *guestlink.Link, python, where string) {
	t.Helper()
	for range 100 {
		if code(t, l, python, findScanners) == "" {
			return
		}
	}
	t.Errorf("%s: a scanner is still there", where)
}

// TestCannotBeKept has a host ask the guest to let a scanner go, and another to take it over: it is no kernel.
func TestCannotBeKept(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	e, spec, python := isolated(t)
	_, l := sandboxtest.Start(t, e, spec)
	p, err := l.StartApart(t.Context(), wire.ProcessSpec{Args: []string{python, "-I", "-S"}}, []byte("import time\ntime.sleep(1000)"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.AttachKernel(t.Context(), p.PID)
	requireProblem(t, err, "kernel_not_found")
	if err := p.Detach(); err != nil {
		t.Fatal(err)
	}
	awaitNone(t, l, python, "after Detach")
	if _, out := sandboxtest.Shell(t, l, "ls /proc/"+strconv.Itoa(p.PID)+" 2>&1"); !strings.Contains(out, "No such file") {
		t.Errorf("it lives on: %s", out)
	}
}

// TestBusySandbox has the scanner share its sandbox with code that leaves it little.
func TestBusySandbox(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	e, spec, python := isolated(t)
	spec.Limits = sandbox.Limits{Processes: 64, Memory: 512 << 20}
	_, l := sandboxtest.Start(t, e, spec)
	s := startOn(t, l, python)
	go func() {
		_, _ = l.Run(t.Context(), wire.ProcessSpec{Args: []string{"/bin/sh", "-c", "for i in $(seq 80); do (while :; do :; done) & done; wait"}}, &bytes.Buffer{}, &bytes.Buffer{})
	}()
	for lines := range 3 {
		if got := describe(look(t, s, scan.Code{Text: "import a" + strings.Repeat("\nx = 1", 100*lines)})); got != "a" {
			t.Errorf("scanned %s", got)
		}
	}
}
