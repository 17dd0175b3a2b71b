package e2e_test

import (
	"testing"

	"cove/internal/testkit/testneeds"
)

// countedProcessors has all that programs count processors by say how many there are, and prints those that say otherwise than wanted.
const countedProcessors = `import os, subprocess, multiprocessing
import duckdb, polars, pyarrow, numpy, joblib, psutil, threadpoolctl
def said(command): return int(subprocess.check_output(command, shell=True, text=True))
numpy.ones((50, 50)) @ numpy.ones((50, 50))
counts = {
    "os.cpu_count": os.cpu_count(), "multiprocessing": multiprocessing.cpu_count(), "affinity": len(os.sched_getaffinity(0)), "sysconf": os.sysconf("SC_NPROCESSORS_ONLN"),
    "/proc/cpuinfo": said("grep -c ^processor /proc/cpuinfo"), "/sys": 1 + int(open("/sys/devices/system/cpu/online").read().split("-")[-1]), "getconf": said("getconf _NPROCESSORS_ONLN"), "nproc": said("nproc"),
    "DuckDB": duckdb.sql("SELECT current_setting('threads')").fetchall()[0][0], "Polars": polars.thread_pool_size(), "Arrow": pyarrow.cpu_count(), "joblib": joblib.cpu_count(), "psutil": psutil.cpu_count(),
    **{"threads of " + pool["internal_api"]: pool["num_threads"] for pool in threadpoolctl.threadpool_info()},
}
print({what: number for what, number in counts.items() if number != 1}, len(counts) > 13)
`

// TestProcessorsCounted gives a session less than the machine has, by the flag and by the setting.
func TestProcessorsCounted(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for name, c := range map[string]*command{
		"flag":    newCommand(t, "run", "--packages", "standard", "--cpus", "1", "-c", countedProcessors),
		"part":    newCommand(t, "run", "--packages", "standard", "--cpus", "0.5", "-c", countedProcessors),
		"setting": newCommand(t, "run", "--packages", "standard", "-c", countedProcessors),
	} {
		if name == "setting" {
			c.setenv("COVE_CPUS=1")
		}
		if r := c.run(); r.code != 0 || r.stdout != "{} True\n" {
			t.Errorf("%s: exit code %d\n%s\n%s", name, r.code, r.stdout, r.stderr)
		}
	}
}
