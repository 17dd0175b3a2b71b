package gvisor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

// TestOrphans sweeps processes that look like a sentry of this engine and have no warden above them: of a warden with the host's root, and of one with its own. A living sandbox beside
// them stays, and a process of another engine, in whose folder's path this one's is contained.
func TestOrphans(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	e := gvisor.New(gvisor.Options{State: state, Executable: sandboxtest.Binary(t)})
	_, l := sandboxtest.Start(t, e, sandbox.Spec{})
	orphan := func(root string) (ended <-chan struct{}) {
		t.Helper()
		// A shell under another name: its arguments are what a sentry's look like.
		cmd := exec.Command("/bin/sh")
		cmd.Args = []string{"runsc-sandbox", "-c", "read line", "x", "--root=" + root + "/sbx-gone/runsc", "boot"}
		stdin, err := cmd.StdinPipe() // never written to, so that the shell waits
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(over)
		}()
		t.Cleanup(func() {
			_ = stdin.Close()
			<-over
		})
		return over
	}
	ours, ownRoot, others := orphan(state), orphan("/h/r"+state), orphan("/elsewhere"+state)
	if _, err := e.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, ended := range map[string]<-chan struct{}{"with the host's root": ours, "with a root of its own": ownRoot} {
		select {
		case <-ended:
		case <-time.After(testneeds.Patience):
			t.Errorf("the orphan %s was left alive", name)
		}
	}
	select {
	case <-others:
		t.Error("another engine's process was ended")
	default:
	}
	if code, out := sandboxtest.Shell(t, l, "echo alive"); code != 0 || out != "alive\n" {
		t.Errorf("the living sandbox: %d %q", code, out)
	}
}

// TestForgottenGroups sweeps a cgroup whose sandbox has lost its folder. A new one, which may be about to get a sandbox, stays.
func TestForgottenGroups(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	sb, _ := sandboxtest.Start(t, e, sandbox.Spec{})
	groups, _ := filepath.Glob("/sys/fs/cgroup/memory/cove/" + sb.ID())
	v2, _ := filepath.Glob(gvisor.UnifiedGroup(sb.ID()))
	if groups = append(groups, v2...); len(groups) == 0 {
		testneeds.RunsElsewhere(t, "a user who may make cgroups", "none can be forgotten")
	}
	parent := filepath.Dir(groups[0])
	old, fresh := filepath.Join(parent, sandbox.NewID("old")), filepath.Join(parent, sandbox.NewID("fresh"))
	for _, dir := range []string{old, fresh} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Remove(fresh) })
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	// Nothing is removed while a sandbox is being started somewhere, as in other tests.
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, err := e.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(old); os.IsNotExist(err) {
			break
		}
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Error("the forgotten group was left")
	}
	for _, dir := range []string{fresh, groups[0]} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}
