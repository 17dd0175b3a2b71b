package session_test

import (
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/testkit/testneeds"
)

// TestProgramsReserveAddresses starts programs in all ways that Python has: the limit on addresses, which makes absurd allocations of code a MemoryError, is not theirs.
func TestProgramsReserveAddresses(t *testing.T) {
	testneeds.FullTier(t)
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		runCell(t, s, code(`import multiprocessing, os, resource, subprocess, sys
own = resource.getrlimit(resource.RLIMIT_AS)
most = "unlimited" if own[1] == resource.RLIM_INFINITY else str(own[1] >> 10)
def same(*said):
    print(*(text.strip() == most for text in said), resource.getrlimit(resource.RLIMIT_AS) == own != (own[1], own[1]))
def through(start):
    reading, writing = os.pipe()
    start(writing)
    os.close(writing)
    with open(reading) as out:
        return out.read()`, "ok"))
		runRows(t, s, []row{
			{"subprocess", []cell{code(`same(subprocess.run(["bash", "-c", "ulimit -S -v"], capture_output=True, text=True).stdout, subprocess.check_output("ulimit -S -v", shell=True, text=True), os.popen("ulimit -S -v").read(),
     subprocess.run(["bash", "-c", "ulimit -S -v"], stdout=subprocess.PIPE, text=True, close_fds=False).stdout)`, "stdout \"True True True True True\\n\"\nok")}},
			{"IPython's", []cell{code("said = !ulimit -S -v\nsame(*said)", "stdout \"True True\\n\"\nok")}},
			{"system", []cell{code(`same(through(lambda w: (os.set_inheritable(w, True), os.system("ulimit -S -v >&%d" % w))))
print(os.waitstatus_to_exitcode(os.system("exit 3")))`, "stdout \"True True\\n3\\n\"\nok")}},
			{"posix_spawn", []cell{code(`def spawned(w):
    os.waitpid(os.posix_spawn("/bin/bash", ["bash", "-c", "sleep 0.2; ulimit -S -v"], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, w, 1)]), 0)
same(through(spawned))`, "stdout \"True True\\n\"\nok")}},
			{"fork and exec", []cell{code(`def forked(w):
    if not (pid := os.fork()):
        os.dup2(w, 1)
        try:
            os.execv("/nowhere", ["nowhere"])
        except FileNotFoundError:
            assert resource.getrlimit(resource.RLIMIT_AS) == own
        os.execvp("bash", ["bash", "-c", "ulimit -S -v"])
    os.waitpid(pid, 0)
same(through(forked))`, "stdout \"True True\\n\"\nok")}},
			{"absurd allocations", []cell{code("try:\n    bytearray(1 << 45)\nexcept MemoryError:\n    print('MemoryError')", "stdout \"MemoryError\\n\"\nok")}},
		})
	})
}
