package gvisor_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/sandboxtest"
)

// TestFewThreads restores a sandbox with enough memory in it that gVisor would start a thread for each of its 128 readers.
func TestFewThreads(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	sb, l := sandboxtest.Start(t, e, sandbox.Spec{})
	if code, out := sandboxtest.Shell(t, l, "head -c 100000000 /dev/urandom > /tmp/much"); code != 0 {
		t.Fatal(out)
	}
	dir := sandboxtest.Checkpoint(t, sb, l, false)
	restored, l := sandboxtest.Restore(t, e, sandbox.Spec{}, dir)
	if code, out := sandboxtest.Shell(t, l, "cksum < /tmp/much"); code != 0 {
		t.Fatal(out)
	}
	sentries := sandboxtest.Processes(t, "runsc-sandbox", restored.ID())
	if len(sentries) != 1 {
		t.Fatalf("sentries: %v", sentries)
	}
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(sentries[0]) + "/task")
	if err != nil {
		t.Fatal(err)
	}
	if most := 34 + runtime.NumCPU(); len(threads) > most {
		t.Errorf("the sentry has %d threads, want at most %d: has the name of what keepParallelism sets changed?", len(threads), most)
	}
}
