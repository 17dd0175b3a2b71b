package pyenv_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
)

// childData makes the test binary build the minimal environment in that data folder, so that a build can be killed.
const childData = "PYENV_TEST_CHILD_DATA"

func TestMain(m *testing.M) {
	if data := os.Getenv(childData); data != "" {
		_, err := pyenv.Ensure(context.Background(), pyenv.Options{Data: data, Set: pyenv.Minimal, Progress: os.Stdout})
		fmt.Println("ended:", err)
		return
	}
	os.Exit(m.Run())
}

// buffer is a writer that several goroutines share.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestMinimal builds the minimal environment and looks at it from all sides.
func TestMinimal(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.FindPython(t)
	data := filepath.Join(t.TempDir(), "data")
	var progress buffer
	o := pyenv.Options{Data: data, Set: pyenv.Minimal, Progress: &progress}
	e := ensureTogether(t, o, 6)
	if n := strings.Count(progress.String(), "Preparing the minimal"); n != 1 {
		t.Fatalf("%d builds for one environment:\n%s", n, progress.String())
	}
	if !strings.Contains(progress.String(), "waiting for it") {
		t.Errorf("nobody was told about waiting:\n%s", progress.String())
	}

	t.Run("is complete", func(t *testing.T) {
		for _, name := range []string{"ipython", "matplotlib-inline", "traitlets"} {
			if e.Packages[name] == "" {
				t.Errorf("no version of %s in %v", name, e.Packages)
			}
		}
		if e.Python != filepath.Join(e.Dir, "bin", "python") || filepath.Base(e.Dir) != e.Key || e.Set != pyenv.Minimal {
			t.Errorf("inconsistent environment: %+v", e)
		}
		out := python(t, e.Python, "import IPython, sys; print(sys.version.split()[0], sys.base_prefix)")
		if want := e.Version + " " + e.Base; out != want {
			t.Errorf("the environment's Python says %q, want %q", out, want)
		}
	})
	t.Run("opens without starting anything", func(t *testing.T) {
		var quiet buffer
		again, err := pyenv.Ensure(context.Background(), pyenv.Options{Data: data, Set: pyenv.Minimal, Progress: &quiet})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, again); diff != "" || quiet.String() != "" {
			t.Errorf("opened another one (-built +opened):\n%s\nand said %q", diff, quiet.String())
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // no program can be started with it
		named := python(t, e.Python, "import sys; print(sys._base_executable)")
		again, err = pyenv.Ensure(ctx, pyenv.Options{Data: data, Set: pyenv.Minimal, Python: named})
		if err != nil || again.Dir != e.Dir {
			t.Errorf("with the Python named: %+v, %v", again, err)
		}
	})
	t.Run("is taken from a folder of what was made ahead", func(t *testing.T) {
		var quiet buffer
		elsewhere := pyenv.Options{Data: filepath.Join(t.TempDir(), "data"), Ahead: data, Set: pyenv.Minimal, Progress: &quiet}
		for range 2 {
			taken, err := pyenv.Ensure(t.Context(), elsewhere)
			if err != nil || taken.Key != e.Key || quiet.String() != "" {
				t.Fatalf("%+v, %v, said %q", taken, err, quiet.String())
			}
			if out := python(t, taken.Python, "import IPython; print(IPython.__file__.startswith("+strconv.Quote(taken.Dir)+"))"); out != "True" {
				t.Errorf("the environment's own IPython is not used: %s", out)
			}
		}
		link := filepath.Join(elsewhere.Data, "pyenv", e.Key)
		if target, err := os.Readlink(link); err != nil || target != e.Dir {
			t.Errorf("it leads to %q, %v", target, err)
		}
		// What was made ahead may go, as with another release of the image; and come back.
		if err := errors.Join(os.Remove(link), os.Symlink(filepath.Join(t.TempDir(), "gone"), link)); err != nil {
			t.Fatal(err)
		}
		if again, err := pyenv.Ensure(t.Context(), elsewhere); err != nil || again.Key != e.Key || quiet.String() != "" {
			t.Errorf("%+v, %v, said %q", again, err, quiet.String())
		}
	})
	t.Run("is opened by its key", func(t *testing.T) {
		again, err := pyenv.Open(data, e.Key)
		if diff := cmp.Diff(e, again); err != nil || diff != "" {
			t.Errorf("%v (-built +opened):\n%s", err, diff)
		}
		for _, key := range []string{"minimal-0000", "", "..", "../pyenv/" + e.Key} {
			if _, err := pyenv.Open(data, key); problem.Of(err) == nil || problem.Of(err).Code != "environment_missing" {
				t.Errorf("%q gave %v", key, err)
			}
		}
	})
	t.Run("is for everybody to read and nobody to write", func(t *testing.T) {
		err := filepath.WalkDir(e.Dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Type()&fs.ModeSymlink != 0 {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			want := fs.FileMode(0o444)
			if entry.IsDir() {
				want = 0o555
			}
			if mode := info.Mode().Perm(); mode&want != want || mode&0o022 != 0 {
				t.Errorf("%s has mode %o", path, mode)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	t.Run("works where it is mounted", func(t *testing.T) {
		moved := filepath.Join(t.TempDir(), "moved")
		if out, err := exec.Command("cp", "-a", e.Dir, moved).CombinedOutput(); err != nil {
			t.Fatalf("copy: %v: %s", err, out)
		}
		out := python(t, filepath.Join(moved, "bin", "python"), "import IPython, sys; print(sys.prefix, IPython.__file__.startswith(sys.prefix))")
		if out != moved+" True" {
			t.Errorf("a moved environment says %q", out)
		}
		version, err := exec.Command(filepath.Join(moved, "bin", "ipython"), "--version").CombinedOutput()
		if got := strings.TrimSpace(string(version)); err != nil || got != e.Packages["ipython"] {
			t.Errorf("a moved program says %q, %v", got, err)
		}
	})
	t.Run("has its modules compiled", func(t *testing.T) {
		out := python(t, e.Python, "import IPython.core.interactiveshell as m, os; print(os.path.exists(m.__cached__))")
		if out != "True" {
			t.Errorf("compiled file exists: %s", out)
		}
	})
	t.Run("stands in for pip", func(t *testing.T) {
		testStandIn(t, e)
	})
	t.Run("compares versions", func(t *testing.T) {
		testVersions(t, e)
	})
	t.Run("lets child processes find packages", func(t *testing.T) {
		testLayers(t, e)
	})
	t.Run("needs no variables", func(t *testing.T) {
		if v := e.Variables(pyenv.MountPoint, ""); len(v) != 0 {
			t.Errorf("variables of a set without matplotlib: %v", v)
		}
	})
}

// ensureTogether calls Ensure n times at once and returns the environment that all calls got.
func ensureTogether(t *testing.T, o pyenv.Options, n int) *pyenv.Environment {
	t.Helper()
	got := make([]*pyenv.Environment, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { got[i], errs[i] = pyenv.Ensure(context.Background(), o) })
	}
	wg.Wait()
	for i := range n {
		if errs[i] != nil {
			t.Fatal(explained(errs[i]))
		}
		if diff := cmp.Diff(got[0], got[i]); diff != "" {
			t.Fatalf("different environments: %s", diff)
		}
	}
	return got[0]
}

// TestInterrupted builds after builds that were killed, cancelled and damaged, in one data folder.
// killBuild has a process build the minimal environment, and kills it when it has said a word and moment has returned.
func killBuild(t *testing.T, data, word string, moment func()) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childData+"="+data)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	for said.Scan() && !strings.Contains(said.Text(), word) {
		if strings.HasPrefix(said.Text(), "ended:") {
			t.Fatal(said.Text())
		}
	}
	moment()
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
}

// awaitCompilers waits until as many processes compile an environment below data as enough says.
func awaitCompilers(t *testing.T, data string, enough func(n int) bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		n := 0
		processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range processes {
			command, _ := os.ReadFile(path)
			if bytes.Contains(command, []byte(data)) && bytes.Contains(command, []byte("compile.py")) {
				n++
			}
		}
		if enough(n) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d processes compile", n)
		}
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.FindPython(t)
	data := filepath.Join(t.TempDir(), "data")

	ctx, cancel := context.WithCancel(context.Background())
	_, err := pyenv.Ensure(ctx, pyenv.Options{Data: data, Set: pyenv.Minimal, Progress: cancelAt{"Resolved", cancel}})
	if p := problem.Of(err); p == nil || p.Code != "canceled" {
		t.Fatalf("a cancelled build ended with %v", err)
	}
	if left := shelf(t, data); len(left) != 0 {
		t.Fatalf("a cancelled build left %v", left)
	}

	killBuild(t, data, "Resolved", func() {})
	left := shelf(t, data)
	if len(left) != 1 || !strings.HasPrefix(left[0], ".tmp-") {
		t.Fatalf("a killed build left %v, want only its temporary folder", left)
	}
	// The workers that compile would sleep for ever, with the lock on the environments.
	killBuild(t, data, "Compiling", func() { awaitCompilers(t, data, func(n int) bool { return n > 1 }) })
	awaitCompilers(t, data, func(n int) bool { return n == 0 })

	e, err := pyenv.Ensure(context.Background(), pyenv.Options{Data: data, Set: pyenv.Minimal})
	if err != nil {
		t.Fatal(explained(err))
	}
	if left := shelf(t, data); !cmp.Equal(left, []string{e.Key}) {
		t.Errorf("after a build there is %v, want only %s", left, e.Key)
	}

	manifest := filepath.Join(e.Dir, "environment.json")
	good, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(good), `"modified": `, `"modified": 1`, 1)
	if err := os.WriteFile(manifest, []byte(other), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"minimal-old", "minimal-needed"} {
		forgotten := filepath.Join(data, "pyenv", key, "environment.json")
		if err := os.Mkdir(filepath.Dir(forgotten), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(forgotten, good, 0o644); err != nil {
			t.Fatal(err)
		}
		long := time.Now().AddDate(0, -2, 0)
		if err := os.Chtimes(forgotten, long, long); err != nil {
			t.Fatal(err)
		}
	}
	var progress buffer
	needed := func() []string { return []string{"minimal-needed"} }
	rebuilt, err := pyenv.Ensure(context.Background(), pyenv.Options{Data: data, Set: pyenv.Minimal, Progress: &progress, Needed: needed})
	if err != nil {
		t.Fatal(explained(err))
	}
	if diff := cmp.Diff(e, rebuilt); diff != "" || !strings.Contains(progress.String(), "Ready:") {
		t.Errorf("an environment for another Python was not rebuilt:\n%s%s", diff, progress.String())
	}
	if left := shelf(t, data); !cmp.Equal(left, []string{e.Key, "minimal-needed"}) {
		t.Errorf("after a long time there is %v, want the new one and the one that is needed", left)
	}
}

func TestUnknownSet(t *testing.T) {
	t.Parallel()
	_, err := pyenv.Ensure(context.Background(), pyenv.Options{Data: t.TempDir(), Set: "enormous"})
	if p := problem.Of(err); p == nil || p.Kind != problem.Invalid || !strings.Contains(p.Hint, "minimal") {
		t.Errorf("an unknown set gave %v", err)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	e := pyenv.Environment{Set: pyenv.Standard}
	for name, value := range maps.All(e.Variables("/somewhere", "")) {
		if !strings.HasPrefix(value, "/somewhere/") {
			t.Errorf("%s=%s does not follow the place where the environment is seen", name, value)
		}
	}
	if e.Variables("/somewhere", "")["COVE_FONTCACHE"] == "" {
		t.Error("no font cache for charts")
	}
}

// cancelAt cancels when it is told something.
type cancelAt struct {
	word   string
	cancel context.CancelFunc
}

func (c cancelAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), c.word) {
		c.cancel()
	}
	return len(p), nil
}

// shelf lists the environments in a data folder, whole and otherwise.
func shelf(t *testing.T, data string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(data, "pyenv"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

func python(t *testing.T, path, code string) string {
	t.Helper()
	out, err := exec.Command(path, "-I", "-c", code).CombinedOutput()
	if err != nil {
		t.Fatalf("%s -c %q: %v: %s", path, code, err, out)
	}
	return strings.TrimSpace(string(out))
}

// explained shows all of an error.
func explained(err error) string {
	p := problem.Of(err)
	return fmt.Sprintf("%s: %s (%s): %v", p.Code, p.Message, p.Hint, p.Cause)
}
