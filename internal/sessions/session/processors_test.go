package session_test

import (
	"strings"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/kernel"
	"cove/internal/sessions/session"
)

// counts has libraries and programs say how many processors there are, and threads that ran before and children, too.
const counts = `import ctypes, multiprocessing, os, subprocess, sys, joblib, numpy, threadpoolctl
libc = ctypes.CDLL(None)
def affinities():
    for thread in os.listdir(f"/proc/{os.getpid()}/task"):
        try: yield len(os.sched_getaffinity(int(thread)))
        except ProcessLookupError: pass  # it has ended
def seen():
    fork = multiprocessing.get_context("fork").Pool(1)
    counts = {os.cpu_count(), multiprocessing.cpu_count(), joblib.cpu_count(), int(subprocess.getoutput("nproc")), int(subprocess.check_output([sys.executable, "-c", "import os; print(os.cpu_count())"])), fork.apply(os.cpu_count)}
    counts |= {int(subprocess.getoutput("getconf _NPROCESSORS_ONLN")), open("/proc/cpuinfo").read().count("processor\t"), os.sysconf("SC_NPROCESSORS_ONLN"), libc.get_nprocs()}
    counts |= {*affinities()} | {pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
    fork.terminate(); fork.join()
    return counts
`

// TestProcessors has code see as many processors as its session has the time of: after a start, from a checkpoint of a session with other limits, in a new interpreter, and after a new start of all programs.
func TestProcessors(t *testing.T) {
	t.Parallel()
	e := newGVisor(t)
	see := func(s *session.Live, want string) {
		t.Helper()
		runCell(t, s, code("seen()", "result "+want+"\nok"))
	}
	one := open(t, e, sandbox.Limits{CPUs: 0.5})
	runCell(t, one, code(counts, "ok"))
	see(one, "{1}")
	saved := save(t, one, true)
	see(one, "{1}")
	two, err := session.Open(t.Context(), session.Options{Engine: e, Env: standard(t), Checkpoint: saved, Limits: sandbox.Limits{CPUs: 2}})
	if err != nil {
		t.Fatalf("open: %+v", err)
	}
	defer func() { _ = two.Close(t.Context()) }()
	see(two, "{2}")
	wantCode(t, "restart", two.RestartKernel(t.Context(), kernel.Main), "")
	runCell(t, two, code(counts, "ok"))
	see(two, "{2}")
	runCell(t, two, code("os.sched_setaffinity(0, {0}); os.cpu_count()", "result 1\nok")) // which code may say itself
	if err := one.Reboot(t.Context()); err != nil {
		t.Fatalf("reboot: %+v", err)
	}
	runCell(t, one, code(counts, "ok"))
	see(one, "{1}")
}

// TestProcessorsOfPrograms has programs count the processors of a session with one, which is told for the table of docs/engines.md.
func TestProcessorsOfPrograms(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{CPUs: 1})
		said := runCell(t, s, codeLike(`import subprocess; subprocess.getoutput("echo $(nproc) $(getconf _NPROCESSORS_ONLN) $(grep -c ^processor /proc/cpuinfo)")`, "result.*ok")).transcript()
		is := map[bool]string{true: "yes", false: "no"}[strings.Contains(said, "'1 1 1'")]
		if is == "no" && strings.HasSuffix(t.Name(), "/gvisor") {
			t.Error(said)
		}
		t.Logf("%sprograms count the processors that they may use: %s", sandboxtest.GivesMark, is)
	})
}
