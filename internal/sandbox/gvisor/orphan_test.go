package gvisor_test

import (
	"os/exec"
	"testing"
	"time"

	"cove/internal/sandbox"
	"cove/internal/sandbox/gvisor"
	"cove/internal/sandbox/sandboxtest"
)

// TestOrphans sweeps a process that looks like a sentry of this engine and has no warden above it. A living sandbox beside it stays.
func TestOrphans(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	e := gvisor.New(gvisor.Options{State: state, Executable: sandboxtest.Binary(t)})
	_, l := sandboxtest.Start(t, e, sandbox.Spec{})
	// A shell under another name: its arguments are what a sentry's look like.
	orphan := exec.Command("/bin/sh")
	orphan.Args = []string{"runsc-sandbox", "-c", "read line", "x", "--root=" + state + "/sbx-gone/runsc", "boot"}
	stdin, err := orphan.StdinPipe() // never written to, so that the shell waits
	if err != nil {
		t.Fatal(err)
	}
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close() })
	ended := make(chan struct{})
	go func() {
		_ = orphan.Wait()
		close(ended)
	}()
	if _, err := e.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		_ = orphan.Process.Kill()
		t.Error("the orphan was left alive")
	}
	if code, out := sandboxtest.Shell(t, l, "echo alive"); code != 0 || out != "alive\n" {
		t.Errorf("the living sandbox: %d %q", code, out)
	}
}
