package gvisor_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

// held counts the wardens below this process, their threads and their descriptors.
func held(t *testing.T) (wardens, threads, files int) {
	t.Helper()
	for _, pid := range sandboxtest.Processes(t, "runsc", "warden") {
		if ppid, err := findParent(pid); err != nil || ppid != os.Getpid() {
			continue // another's, or it has just ended
		}
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			continue // it has just ended
		}
		open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		wardens, threads, files = wardens+1, threads+len(tasks), files+len(open)
	}
	return wardens, threads, files
}

// TestManyStarts starts 200 sandboxes, one after the other, beside some that stay. What the processes that drive them hold has a bound that has nothing to do with how many there were, and those that
// stay can still be used, saved and ended.
func TestManyStarts(t *testing.T) {
	testneeds.FullTier(t)
	e := gvisor.New(gvisor.Options{State: t.TempDir(), Executable: sandboxtest.Binary(t)})
	gvisor.CreateAtMost(e, 20)
	first, l := sandboxtest.Start(t, e, sandbox.Spec{})
	var most [3]int
	for range 200 {
		sb, err := e.Start(t.Context(), sandbox.Spec{ID: sandbox.NewID("test")})
		if err != nil {
			t.Fatal(err)
		}
		if err := sb.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		wardens, threads, files := held(t)
		most = [3]int{max(most[0], wardens), max(most[1], threads), max(most[2], files)}
	}
	// At most four at a moment: the present one, its successor, its predecessor and one that leaves. Each has some 20 threads and descriptors besides one for each sandbox that it created.
	if most[0] < 2 || most[0] > 4 || most[1] > 160 || most[2] > 160 {
		t.Errorf("%d wardens with %d threads and %d descriptors are held", most[0], most[1], most[2])
	}
	if code, out := sandboxtest.Shell(t, l, "echo still here"); code != 0 || out != "still here\n" {
		t.Errorf("the first sandbox: %d %q", code, out)
	}
	dir := sandboxtest.Checkpoint(t, first, l, true)
	if _, err := guestlink.Dial(t.Context(), first, guestlink.Session{}); err != nil {
		t.Errorf("the first sandbox, after it was saved: %v", err)
	}
	if _, restored := sandboxtest.Restore(t, e, sandbox.Spec{}, dir); restored != nil {
		if _, out := sandboxtest.Shell(t, restored, "echo again"); out != "again\n" {
			t.Errorf("what was saved of the first says %q", out)
		}
	}
}

// TestFewDescriptorsAreSaid has cove start a sandbox where a process may open 256 files.
func TestFewDescriptorsAreSaid(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -n 256 && exec "$0" doctor --engine gvisor`, sandboxtest.Binary(t))
	cmd.Env = append(os.Environ(), "COVE_HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "a process may open 256 files here, and sandboxes need 1024") || !strings.Contains(string(out), "ulimit -n 65536") {
		t.Errorf("%v\n%s", err, out)
	}
}
