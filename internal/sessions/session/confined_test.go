package session_test

import (
	"testing"

	"cove/internal/machine/sandbox"
)

// namespaces asks for a namespace of each kind in all the ways that there are, and for threads and processes, which need none.
const namespaces = `
import ctypes, os, subprocess, threading
libc = ctypes.CDLL(None, use_errno=True)
KINDS = 0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
CLONE, SETNS = {"x86_64": (56, 308), "aarch64": (220, 268)}[os.uname().machine]

def refused(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) for a in arguments))
    if result == 0 and number == CLONE:
        os._exit(0)
    return os.strerror(ctypes.get_errno()) if result < 0 else "it worked"

print(sorted({refused(CLONE, kind | 17, 0, 0, 0, 0) for kind in KINDS}))
print(sorted({(libc.unshare(kind), ctypes.get_errno()) for kind in (*KINDS, 0x80)}))
print(refused(435, 0, 88), refused(SETNS, os.open("/proc/self/ns/user", os.O_RDONLY), 0x10000000))
print(*sorted(" ".join(line.split()) for line in open("/proc/self/status") if line.startswith(("CapPrm", "CapEff", "CapBnd", "NoNewPrivs"))))
thread = threading.Thread(target=print, args=("a thread",)); thread.start(); thread.join()
print(subprocess.run(["unshare", "-U", "id"], capture_output=True).returncode, subprocess.run(["true"]).returncode)
`

// TestNoNamespacesOfItsOwn shows that code cannot become the root of a namespace, where it would have every capability.
func TestNoNamespacesOfItsOwn(t *testing.T) {
	t.Parallel()
	const want = `stdout "['Operation not permitted']\n[(-1, 1)]\nFunction not implemented Operation not permitted\n` +
		`CapBnd: 0000000000000000 CapEff: 0000000000000000 CapPrm: 0000000000000000 NoNewPrivs: 1\na thread\n1 0\n"` + "\nok"
	e := newGVisor(t)
	s := open(t, e, sandbox.Limits{})
	runCell(t, s, code(namespaces, want))
	runCell(t, reopen(t, e, save(t, s, false), false), code(namespaces, want))
}
