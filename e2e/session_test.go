package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// inSession returns a command of the real binary with folders of its own for sandboxes and sessions.
func inSession(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := cove(t, filepath.Join(dir, "run"), args...)
	cmd.Env = append(cmd.Env, "COVE_SESSIONS="+filepath.Join(dir, "sessions"))
	return cmd
}

// counter runs one more execution in the session lab and returns its number: what the session thinks and what it says about the past.
func counter(t *testing.T, dir string) (n int, stderr string) {
	t.Helper()
	cmd := inSession(t, dir, "run", "--session", "lab", "-c", "n = globals().get('n', 0) + 1; print(n)")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	n, err = strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return n, errs.String()
}

// TestSessionsSurviveKills kills the owner of a session at any moment. The session is afterwards where it was before, or where the
// killed command brought it; when it is not, the next command says so.
func TestSessionsSurviveKills(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	n, _ := counter(t, dir)
	if n != 1 {
		t.Fatalf("a new session has n = %d", n)
	}
	for range 12 {
		cmd := inSession(t, dir, "run", "--session", "lab", "-q", "-c", "n += 1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(1500 * time.Millisecond))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		saved := 0
		if cmd.ProcessState.Success() {
			saved = 1
		}
		next, said := counter(t, dir)
		told := strings.Contains(said, "ended before session lab was saved; the session is as it was at ")
		switch {
		case next == n+2 && !told: // it was saved, perhaps a moment before the kill
		case next == n+1 && saved == 0:
			// The kill came before anything ran, or the loss was told.
		default:
			t.Errorf("n went from %d to %d; the killed command had ended: %v; told: %q", n, next, saved == 1, said)
		}
		n = next
	}
	left := folders(t, filepath.Join(dir, "run", "gvisor"))
	if len(left) > 0 {
		t.Errorf("sandboxes left: %q", left)
	}
	if names := folders(t, filepath.Join(dir, "sessions", "lab", "snapshots")); len(names) != 1 {
		t.Errorf("snapshots left: %q", names)
	}
	if left := processes(t, dir); len(left) > 0 {
		t.Errorf("processes left: %q", left)
	}
}

// TestASessionHasOneOwner runs a second command while the first has the session.
func TestASessionHasOneOwner(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	first := inSession(t, dir, "run", "--session", "lab", "-c", "import time; print('mine', flush=True); time.sleep(600)")
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", "--session", "lab", "-c", "1"}, {"session", "rm", "lab"}, {"session", "fork", "lab", "other"}, {"session", "undo", "lab"}} {
		text, err := inSession(t, dir, args...).CombinedOutput()
		want := fmt.Sprintf("session lab is in use by process %d (cove run --session lab) since ", first.Process.Pid)
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != 125 || !strings.Contains(string(text), want) {
			t.Errorf("%q: %v, %s", args, err, text)
		}
	}
	// SIGTERM stops the code and saves the session all the same.
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	text, err := inSession(t, dir, "run", "--session", "lab", "-c", "time.__name__").CombinedOutput()
	if err != nil || string(text) != "'time'\n" {
		t.Errorf("after SIGTERM: %v, %s", err, text)
	}
}

// TestPausedSessionsAreFiles pauses and resumes one session often: nothing may stay behind but its head snapshot.
func TestPausedSessionsAreFiles(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	for want := 1; want <= 20; want++ {
		if n, said := counter(t, dir); n != want {
			t.Fatalf("n = %d, want %d; %s", n, want, said)
		}
		if left := processes(t, dir); len(left) > 0 {
			t.Fatalf("a paused session has processes: %q", left)
		}
	}
	if names := folders(t, filepath.Join(dir, "sessions", "lab", "snapshots")); len(names) != 1 {
		t.Errorf("snapshots: %q", names)
	}
	text, err := inSession(t, dir, "session", "show", "lab", "--json").Output()
	var shown struct {
		State      string
		Executions int
		Disk       int64 `json:"disk_bytes"`
	}
	if err == nil {
		err = json.Unmarshal(text, &shown)
	}
	if err != nil || shown.State != "paused" || shown.Executions != 20 {
		t.Errorf("%v: %+v", err, shown)
	}
	t.Logf("%d MiB on the disk", shown.Disk>>20)
	if mounts, _ := os.ReadFile("/proc/self/mounts"); strings.Contains(string(mounts), dir) {
		t.Errorf("mounts left: %s", mounts)
	}
}
