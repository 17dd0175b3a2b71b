package gvisor_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

// theSentry is a sandbox's sentry on the host.
func theSentry(t *testing.T, id string) int {
	t.Helper()
	sentries := sandboxtest.Processes(t, "runsc-sandbox", id)
	if len(sentries) != 1 {
		t.Fatalf("sentries: %v", sentries)
	}
	return sentries[0]
}

// killWarden kills the process that drives a sandbox.
func killWarden(t *testing.T, id string) {
	t.Helper()
	warden := parent(t, theSentry(t, id))
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", warden)); err != nil || !strings.Contains(string(line), "\x00warden\x00") {
		t.Fatalf("the parent of the sentry is %q, %v", line, err)
	}
	if err := syscall.Kill(warden, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func parent(t *testing.T, pid int) int {
	t.Helper()
	ppid, err := findParent(pid)
	if err != nil {
		t.Fatal(err)
	}
	return ppid
}

// findParent fails when the process has ended.
func findParent(pid int) (ppid int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, "PPid: %d", &ppid)
	}
	return ppid, nil
}

// TestWardenKilled kills the process that drives several sandboxes. They go on, and everything can be done with them.
func TestWardenKilled(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	state := t.TempDir()
	e := gvisor.New(gvisor.Options{State: state, Executable: sandboxtest.Binary(t)})
	first, l := sandboxtest.Start(t, e, sandbox.Spec{})
	image := sandboxtest.Checkpoint(t, first, l, true)
	second, l := sandboxtest.Start(t, e, sandbox.Spec{})
	prepared, err := e.Prepare(t.Context(), sandbox.Spec{ID: sandbox.NewID("test"), Checkpoint: image})
	if err != nil {
		t.Fatal(err)
	}
	youngest := first // the one whose warden has not ended yet
	for round := range 2 {
		killWarden(t, youngest.ID())
		word := fmt.Sprintf("round-%d", round)
		if code, out := sandboxtest.Shell(t, l, "echo "+word+" > file; cat file"); code != 0 || out != word+"\n" {
			t.Errorf("a sandbox without its warden: %d %q", code, out)
		}
		dir := sandboxtest.Checkpoint(t, second, l, true)
		if l, err = guestlink.Dial(t.Context(), second, guestlink.Session{}); err != nil {
			t.Fatal(err)
		}
		restored, other := sandboxtest.Restore(t, e, sandbox.Spec{}, dir)
		youngest = restored
		if _, out := sandboxtest.Shell(t, other, "cat file"); out != word+"\n" {
			t.Errorf("what was saved without the first warden has %q", out)
		}
	}
	sb, err := prepared.Restore(t.Context(), image)
	if err != nil {
		t.Fatalf("restore what the first warden prepared: %v", err)
	}
	for _, b := range []sandbox.Sandbox{first, second, sb} {
		if err := b.Stop(t.Context()); err != nil || b.Cause() != nil {
			t.Errorf("stop: %v, cause %v", err, b.Cause())
		}
		if left := sandboxtest.Processes(t, "runsc", b.ID()); len(left) > 0 {
			t.Errorf("left running: %v", left)
		}
	}
}

// TestOwnerKilled kills a process that has sandboxes. They end, whichever of the two is there to see to that: they themselves or their warden.
func TestOwnerKilled(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	if state := os.Getenv("COVE_TEST_OWNER"); state != "" {
		e := gvisor.New(gvisor.Options{State: state, Executable: sandboxtest.Binary(t)})
		sb, _ := sandboxtest.Start(t, e, sandbox.Spec{})
		fmt.Println("\nsandbox", sb.ID())
		time.Sleep(time.Hour) // until it is killed
	}
	for name, before := range map[string]func(t *testing.T, sentry int){
		"all are well":        func(*testing.T, int) {},
		"without a warden":    func(t *testing.T, sentry int) { _ = syscall.Kill(parent(t, sentry), syscall.SIGKILL) },
		"the warden is stuck": func(t *testing.T, sentry int) { _ = syscall.Kill(parent(t, sentry), syscall.SIGSTOP) },
		"the sentry is stuck": func(_ *testing.T, sentry int) { _ = syscall.Kill(sentry, syscall.SIGSTOP) },
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOwnerKilled$", "-test.timeout=10m")
			cmd.Env = append(os.Environ(), "COVE_TEST_OWNER="+state, "COVE_TEST_BINARY="+sandboxtest.Binary(t))
			said, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			id := ""
			for lines := bufio.NewScanner(said); id == "" && lines.Scan(); {
				id, _ = strings.CutPrefix(lines.Text(), "sandbox ")
				if id == lines.Text() {
					id = ""
				}
			}
			sentry := theSentry(t, id)
			warden := parent(t, sentry)
			defer func() { _ = syscall.Kill(warden, syscall.SIGKILL) }()
			before(t, sentry)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			for deadline := time.Now().Add(time.Minute); len(sandboxtest.Processes(t, "runsc", id)) > 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("still there: %v", sandboxtest.Processes(t, "runsc", id))
				}
			}
			e := gvisor.New(gvisor.Options{State: state, Executable: sandboxtest.Binary(t)})
			if n, err := e.Sweep(t.Context()); n != 1 || err != nil {
				t.Errorf("swept %d, %v", n, err)
			}
		})
	}
}
