package e2e_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

// patience is how long a command may take before a test takes it as hanging. It is no measure of speed.
const patience = testneeds.Patience

// command is one cove command with a working folder and sandboxes of its own, and without the models and settings of
// whoever runs the tests.
type command struct {
	t       *testing.T
	cmd     *exec.Cmd
	runtime string
	stdout  watched
	stderr  watched
	bound   time.Duration // how long it may take; patience unless a test says otherwise
}

// result is what a command left behind.
type result struct {
	code           int
	stdout, stderr string
}

func newCommand(t *testing.T, args ...string) *command {
	t.Helper()
	c := &command{t: t, cmd: exec.CommandContext(t.Context(), sandboxtest.Binary(t), args...), runtime: t.TempDir(), bound: patience}
	// Sandboxed code of another uid passes through the folder that holds it.
	if err := os.Chmod(filepath.Dir(c.runtime), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a command that still runs is ended, and what it leaves is at work in the test's folders for a moment
		if c.cmd.Process != nil && c.cmd.ProcessState == nil {
			_ = c.cmd.Process.Kill()
			_ = c.cmd.Wait()
		}
		deadline := time.Now().Add(patience)
		for len(processes(t, c.runtime)) > 0 && time.Now().Before(deadline) {
			time.Sleep(50 * time.Millisecond)
		}
		for os.RemoveAll(c.runtime) != nil && time.Now().Before(deadline) {
			time.Sleep(50 * time.Millisecond)
		}
	})
	c.cmd.Dir = t.TempDir()
	c.cmd.Stdout, c.cmd.Stderr = &c.stdout, &c.stderr
	c.cmd.WaitDelay = patience // for whoever keeps the output open after cove
	// A group of its own, as a shell gives each command: what a terminal's Ctrl-C goes to.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	testneeds.OnTimeout(t, func() {
		if c.cmd.Process != nil {
			_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		}
	})
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if name == "COVE_HOME" || !strings.HasPrefix(name, "COVE_") && !strings.HasPrefix(name, "OPENAI_") && !strings.HasPrefix(name, "ANTHROPIC_") {
			c.cmd.Env = append(c.cmd.Env, pair)
		}
	}
	c.setenv("COVE_LANG=en", "COVE_RUNTIME="+c.runtime, "COVE_PACKAGES=minimal", "OLLAMA_HOST=127.0.0.1:1",
		"COVE_DATABASE="+filepath.Join(c.runtime, "..", "cove-"+filepath.Base(c.runtime)+".db"), "COVE_SESSIONS="+t.TempDir())
	return c
}

// setenv adds NAME=VALUE pairs; a later one wins.
func (c *command) setenv(pairs ...string) { c.cmd.Env = append(c.cmd.Env, pairs...) }

// file puts a file into the working folder.
func (c *command) file(name, content string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.cmd.Dir, name), []byte(content), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

func (c *command) path(name string) string { return filepath.Join(c.cmd.Dir, name) }

func (c *command) start() {
	c.t.Helper()
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
}

// wait returns how the command ended, and checks that nothing of it is left.
func (c *command) wait() result {
	c.t.Helper()
	hanging := time.AfterFunc(c.bound, func() { _ = c.cmd.Process.Signal(syscall.SIGABRT) })
	err := c.cmd.Wait()
	if !hanging.Stop() {
		c.t.Errorf("the command did not end: %s", c.stderr.String())
	}
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		c.t.Fatal(err)
	}
	for _, engine := range []string{"gvisor", "docker", "local"} {
		if left := slices.DeleteFunc(folders(c.t, filepath.Join(c.runtime, engine)), func(n string) bool { return strings.HasPrefix(n, ".") }); len(left) > 0 {
			c.t.Errorf("folders left: %q", left)
		}
	}
	if left := processes(c.t, c.runtime); len(left) > 0 {
		c.t.Errorf("processes left: %q", left)
	}
	return result{c.cmd.ProcessState.ExitCode(), c.stdout.String(), c.stderr.String()}
}

func (c *command) run() result {
	c.t.Helper()
	c.start()
	return c.wait()
}

// ended checks the exit code and returns whether it was the wanted one.
func (r result) ended(t *testing.T, code int) {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.stdout, r.stderr)
	}
}

// told checks that standard error has each of the wanted texts.
func (r result) told(t *testing.T, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("standard error lacks %q:\n%s", want, r.stderr)
		}
	}
}

// complained checks that standard error is one clear complaint: a sentence, then any hints, and nothing of cove's inside.
func (r result) complained(t *testing.T, sentence string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	if !strings.HasPrefix(lines[0], "cove: ") || !strings.Contains(lines[0], sentence) {
		t.Errorf("the complaint is %q, want %q", lines[0], sentence)
	}
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, "  ") {
			t.Errorf("more than one complaint: %q", r.stderr)
		}
	}
	for _, inside := range []string{"goroutine ", ".go:", "panic", "0x"} {
		if strings.Contains(r.stderr, inside) {
			t.Errorf("the complaint shows %q: %s", inside, r.stderr)
		}
	}
}

// watched is output that can be waited for.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
	wait []waiter
}

type waiter struct {
	want string
	seen chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	w.wait = slices.DeleteFunc(w.wait, func(one waiter) bool {
		found := bytes.Contains(w.text.Bytes(), []byte(one.want))
		if found {
			close(one.seen)
		}
		return found
	})
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// until waits for want to be written.
func (w *watched) until(t *testing.T, want string) {
	t.Helper()
	seen := make(chan struct{})
	w.mu.Lock()
	if bytes.Contains(w.text.Bytes(), []byte(want)) {
		close(seen)
	} else {
		w.wait = append(w.wait, waiter{want, seen})
	}
	w.mu.Unlock()
	select {
	case <-seen:
	case <-time.After(patience):
		t.Fatalf("%q was never written: %s", want, w)
	}
}

var _ io.Writer = (*watched)(nil)
