package session_test

import (
	"testing"

	"cove/internal/machine/sandbox"
)

// TestFramesStayWhereTheyAre calls a function a thousand times at each of many depths. Where that takes a page of memory from the system each time, Python gives the memory of frames back and asks for it
// again. gVisor does not count pages, so the code runs without it.
func TestFramesStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	s := open(t, newLocal(t), sandbox.Limits{})
	runCell(t, s, code(`
import resource

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

exec("def leaf():\n if 0:\n  " + "; ".join(f"v{i} = 0" for i in range(60)))

def below(n):
    if n:
        return below(n - 1)
    before = faults()
    for _ in range(1000):
        leaf()
    return faults() - before

most = max(below(n) for n in range(0, 400, 2))
most if most >= 500 else "few"`, "result 'few'\nok"))
}
