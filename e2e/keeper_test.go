package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// keeper is the process that keeps the session lab in memory.
func keeper(t *testing.T, dir string) int {
	t.Helper()
	var record struct {
		Memory struct{ PID int } `json:"in_memory"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "sessions", "lab", "session.json"))
	if err == nil {
		err = json.Unmarshal(text, &record)
	}
	if err != nil || record.Memory.PID == 0 {
		t.Fatalf("nobody keeps the session: %v, %s", err, text)
	}
	return record.Memory.PID
}

func must(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := inSession(t, dir, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v, %s", args, err, out)
	}
	return string(out)
}

// gone waits for the end of a process, which may stay as a zombie where nobody collects those.
func gone(t *testing.T, pid int) {
	t.Helper()
	for range 1000 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d lives", pid)
}

// nothingLeft looks for what sessions and sandboxes in dir might have left.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	if left := folders(t, filepath.Join(dir, "run", "gvisor")); len(left) > 0 {
		t.Errorf("sandboxes left: %q", left)
	}
	if left := processes(t, dir); len(left) > 0 {
		t.Errorf("processes left: %q", left)
	}
	if mounts, _ := os.ReadFile("/proc/self/mounts"); strings.Contains(string(mounts), dir) {
		t.Errorf("mounts left: %s", mounts)
	}
	if sockets, _ := os.ReadFile("/proc/net/unix"); strings.Contains(string(sockets), dir) {
		t.Errorf("sockets left: %s", sockets)
	}
}

// TestKilledKeepers kills what keeps a session in memory at any moment: of a command, of a background save, of idleness. What the next
// command finds is all that ran, or it says what was lost.
func TestKilledKeepers(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	n, _ := counter(t, dir)
	if n != 1 {
		t.Fatalf("a new session has n = %d", n)
	}
	told := 0
	for round := range 10 {
		must(t, dir, "session", "resume", "lab")
		pid := keeper(t, dir)
		for range rand.N(3) {
			now, said := counter(t, dir)
			if now != n+1 || said != "" {
				t.Errorf("in memory n went from %d to %d; told %q", n, now, said)
			}
			n = now
		}
		atMost := n // what n may have become
		cmd := inSession(t, dir, "run", "--session", "lab", "-c", "n += 1; print(n)")
		if round%2 == 0 {
			cmd = inSession(t, dir, "session", "fork", "lab", fmt.Sprint("fork", round)) // which saves
		} else {
			atMost++
		}
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(300 * time.Millisecond))
		_ = syscall.Kill(pid, syscall.SIGKILL)
		err := cmd.Wait()
		if err != nil && strings.TrimSpace(said.String()) == "" {
			t.Errorf("%q failed without a word: %v", cmd.Args[1:], err)
		}
		gone(t, pid)
		next, loss := counter(t, dir)
		lost := strings.Contains(said.String(), "was not saved: its sandbox was lost")
		for _, told := range []string{loss, said.String()} { // the kill may have come before the command found it, or between that and its code
			lost = lost || strings.Contains(told, "its process ended before it was saved; the session is as it was at ") ||
				strings.Contains(told, "The session went back to its state of ")
		}
		switch {
		case next == atMost+1 && err == nil, next == n+1, next == atMost+1: // nothing is lost, or only what failed
		case lost && next <= n+1:
			told++
		default:
			t.Errorf("round %d: n went from %d to %d; told %q and %q", round, n, next, said.String(), loss)
		}
		n = next
	}
	t.Logf("%d of 10 kills cost something", told)
	must(t, dir, "session", "rm", "--all")
	nothingLeft(t, dir)
}

// TestAKilledCommandLeavesMemory kills a command in the midst of its code, and others at any moment: the session stays in memory, and the
// next command goes on there.
func TestAKilledCommandLeavesMemory(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	counter(t, dir)
	must(t, dir, "session", "resume", "lab", "--for", "0")
	pid := keeper(t, dir)
	t.Cleanup(func() {
		if log, err := os.ReadFile(filepath.Join(dir, "sessions", "lab", "keeper.log")); t.Failed() && err == nil {
			t.Logf("the keeper's log: %s", log)
		}
	})
	cmd := inSession(t, dir, "run", "--session", "lab", "-c", "n = 41; print('running', flush=True)\nimport time; time.sleep(600)")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if text, err := inSession(t, dir, "session", "pause", "lab").CombinedOutput(); err == nil || !strings.Contains(string(text), fmt.Sprintf("in use by process %d (cove run --session lab)", cmd.Process.Pid)) {
		t.Errorf("pause of a session in use: %v, %s", err, text)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if n, said := counter(t, dir); n != 42 || !strings.Contains(said, "ended while it used session lab: what it was running is interrupted") {
		t.Errorf("n = %d, told %q", n, said)
	}
	n := 42
	for round := range 10 {
		args := []string{"run", "--session", "lab", "-c", "n += 1"}
		if round%2 == 0 {
			args = append(args, "--undoable") // it saves
		}
		cmd := inSession(t, dir, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(400 * time.Millisecond))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		next, said := counter(t, dir)
		if next != n+2 && (next != n+1 || cmd.ProcessState.Success()) || strings.Contains(said, "lost") || strings.Contains(said, "saved") {
			t.Errorf("n went from %d to %d, told %q", n, next, said)
		}
		n = next
	}
	if keeper(t, dir) != pid {
		t.Error("the keeper is another")
	}
	// A request to end saves.
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
	if next, said := counter(t, dir); next != n+1 || said != "" {
		t.Errorf("n went from %d to %d, told %q", n, next, said)
	}
	must(t, dir, "session", "rm", "lab")
	nothingLeft(t, dir)
}

// TestASandboxThatDiesInMemory kills the sandbox alone, while nobody uses it.
func TestASandboxThatDiesInMemory(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	counter(t, dir)
	must(t, dir, "session", "resume", "lab")
	pid := keeper(t, dir)
	if n, _ := counter(t, dir); n != 2 {
		t.Errorf("n = %d", n)
	}
	killed := 0
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range paths {
		text, err := os.ReadFile(p)
		var sentry int
		if _, serr := fmt.Sscanf(p, "/proc/%d/", &sentry); err == nil && serr == nil && bytes.HasPrefix(text, []byte("runsc")) && bytes.Contains(text, []byte(dir)) {
			_ = syscall.Kill(sentry, syscall.SIGKILL)
			killed++
		}
	}
	if killed == 0 {
		t.Fatal("no sandbox was found")
	}
	gone(t, pid)
	if out := must(t, dir, "session", "ls"); !strings.Contains(out, "lost") {
		t.Errorf("it is said to be %s", out)
	}
	if n, said := counter(t, dir); n != 2 || !strings.Contains(said, "session lab was in memory and lost its sandbox: ") || !strings.Contains(said, "(1 execution is lost)") {
		t.Errorf("n = %d, told %q", n, said)
	}
	must(t, dir, "session", "rm", "lab")
	nothingLeft(t, dir)
}

// TestTwoKeepersAtOnce resumes a session many times at once, and uses it meanwhile.
func TestTwoKeepersAtOnce(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	counter(t, dir)
	said := make(chan string, 3)
	for range cap(said) {
		go func() {
			out, err := inSession(t, dir, "session", "resume", "lab", "--for", "3s").CombinedOutput()
			said <- fmt.Sprint(string(out), err)
		}()
	}
	first := 0
	for range cap(said) {
		text := <-said
		if !strings.HasPrefix(text, "session lab is in memory") {
			t.Errorf("resume: %s", text)
		}
		if !strings.Contains(text, "already") {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d processes say that they brought it into memory", first)
	}
	pid := keeper(t, dir)
	if n, told := counter(t, dir); n != 2 || told != "" {
		t.Errorf("n = %d, told %q", n, told)
	}
	gone(t, pid) // it was idle for long enough
	if out := must(t, dir, "session", "ls"); !strings.Contains(out, "paused") {
		t.Errorf("it is said to be %s", out)
	}
	if n, told := counter(t, dir); n != 3 || told != "" {
		t.Errorf("n = %d, told %q", n, told)
	}
	must(t, dir, "session", "rm", "lab")
	nothingLeft(t, dir)
}
