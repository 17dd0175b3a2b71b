package e2e_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

// cove returns a command of the real binary whose sandboxes live in the folder runtime.
func cove(t *testing.T, runtime string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), sandboxtest.Binary(t), args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "COVE_RUNTIME="+runtime, "COVE_PACKAGES=minimal")
	return cmd
}

// TestKilledAtAnyMoment kills cove in the midst of starting, running and stopping. The next command must leave no trace of it.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for _, engine := range []string{"gvisor", "local"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			runtime := t.TempDir()
			// What a user's code leaves running in sessions of its own must go too.
			code := "import subprocess, time; subprocess.Popen(['setsid', 'sleep', '4711']); print('running', flush=True); time.sleep(" + "0.3" + ")"
			if out, err := cove(t, runtime, "run", "--engine", engine, "-c", "1").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var sandboxes []string
			for range 15 {
				cmd := cove(t, runtime, "run", "--engine", engine, "-c", code)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(rand.N(2 * time.Second))
				sandboxes = append(sandboxes, folders(t, filepath.Join(runtime, engine))...)
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
			if out, err := cove(t, runtime, "run", "--engine", engine, "-c", "6*7").Output(); err != nil || string(out) != "42\n" {
				t.Fatalf("the next command gave %q, %v", out, err)
			}
			t.Logf("killed %d living sandboxes", len(sandboxes))
			outliveGrace(t, filepath.Join(runtime, engine), func() *exec.Cmd { return cove(t, runtime, "run", "--engine", engine, "-c", "1") })
			if left := folders(t, filepath.Join(runtime, engine)); len(left) > 0 {
				t.Errorf("folders left: %q", left)
			}
			if left := processes(t, runtime); len(left) > 0 {
				t.Errorf("processes left: %q", left)
			}
			if mounts, _ := os.ReadFile("/proc/self/mounts"); bytes.Contains(mounts, []byte(runtime)) {
				t.Errorf("mounts left: %s", mounts)
			}
			for _, id := range sandboxes {
				groups, _ := filepath.Glob("/sys/fs/cgroup/*/cove/" + id)
				more, _ := filepath.Glob("/sys/fs/cgroup/cove/" + id)
				if groups = append(groups, more...); len(groups) > 0 {
					t.Errorf("cgroups left: %q", groups)
				}
			}
		})
	}
}

// outliveGrace waits while something is left in a folder that a command was killed in the midst of making, and has further commands see it: they leave that alone for ten
// seconds, since it may belong to a command that lives.
func outliveGrace(t *testing.T, dir string, next func() *exec.Cmd) {
	t.Helper()
	unborn := func(name string) bool { return strings.HasPrefix(name, ".new-") }
	for deadline := time.Now().Add(patience); slices.ContainsFunc(folders(t, dir), unborn) && time.Now().Before(deadline); {
		time.Sleep(time.Second)
		if out, err := next().CombinedOutput(); err != nil {
			t.Errorf("a further command: %v, %s", err, out)
		}
	}
}

// TestConcurrentRuns runs ten commands at once; none may see another's files, variables or output.
func TestConcurrentRuns(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	runtime := t.TempDir()
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			code := fmt.Sprintf("import os; x = %d; open('mine', 'w').write(str(x)); print(x * x, open('mine').read(), os.listdir('.'))", i)
			out, err := cove(t, runtime, "run", "--quiet", "-o", t.TempDir(), "-c", code).CombinedOutput()
			if want := fmt.Sprintf("%d %d ['mine']\n", i*i, i); err != nil || string(out) != want {
				t.Errorf("run %d gave %q, %v; want %q", i, out, err, want)
			}
		})
	}
	all.Wait()
	if left := folders(t, filepath.Join(runtime, "gvisor")); len(left) > 0 {
		t.Errorf("folders left: %q", left)
	}
}

func folders(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".roots-") { // what all sandboxes share
			names = append(names, e.Name())
		}
	}
	return names
}

func processes(t *testing.T, mention string) []string {
	t.Helper()
	var found []string
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range paths {
		if b, err := os.ReadFile(p); err == nil && bytes.Contains(b, []byte(mention)) {
			found = append(found, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return found
}
