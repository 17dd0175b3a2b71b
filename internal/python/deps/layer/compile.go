package layer

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // the compiler's script
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

const (
	compilers     = 2                // processes at a time
	compileTime   = 20 * time.Second // for one wheel; what is not compiled by then is compiled at each import
	crashes       = 3                // of the compiler, for one half of a wheel
	largestSource = 2 << 20
	worthSplit    = 50 // files
)

//go:embed compile.py
var compileScript string

// compilation is the compiling of one wheel.
type compilation struct {
	store  *Store
	python string
	tag    string
	work   *workspace
	tree   string
}

// run compiles the modules among files, of which it notes the sizes of the bytecode. Tests and what is huge are left out. That a
// module does not compile is no error.
func (c *compilation) run(ctx context.Context, files []entry) error {
	var chosen []*entry
	for i := range files {
		if f := &files[i]; path.Ext(f.path) == ".py" && f.size <= largestSource && !isTest(f.path) {
			chosen = append(chosen, f)
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	slices.SortStableFunc(chosen, func(a, b *entry) int { // what is imported first comes first, should time run out
		return cmp.Compare(strings.Count(a.path, "/"), strings.Count(b.path, "/"))
	})
	parts := 1
	if len(chosen) > worthSplit {
		parts = compilers
	}
	var wait sync.WaitGroup
	errs := make([]error, parts)
	for part := range parts {
		wait.Go(func() {
			var mine []*entry
			for i := part; i < len(chosen); i += parts {
				mine = append(mine, chosen[i])
			}
			errs[part] = c.compile(ctx, mine)
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

func isTest(name string) bool {
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if part == "test" || part == "tests" {
			return true
		}
	}
	return false
}

// compile compiles files in one process at a time, and in another one after a file that ended the last.
func (c *compilation) compile(ctx context.Context, files []*entry) error {
	select {
	case c.store.slots <- struct{}{}:
		defer func() { <-c.store.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, compileTime)
	defer cancel()
	for range crashes {
		said, err := c.start(limited, files)
		for i, f := range files[:len(said)] {
			if said[i] == '+' {
				f.compiled = c.bytecodeSize(f.path)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil || len(said) >= len(files) {
			return nil
		}
		if exit := (*exec.ExitError)(nil); len(said) == 0 && (!errors.As(err, &exit) || exit.ExitCode() > 0) {
			return problem.New(problem.EnvironmentDamaged, fmt.Sprintf("the Python at %s cannot compile packages", c.python)).
				WithHint("run `cove doctor`").WithCause(err)
		}
		c.discard(files[len(said)].path)
		if limited.Err() != nil {
			return nil
		}
		files = files[len(said)+1:]
		if len(files) == 0 {
			return nil
		}
	}
	return nil
}

// start runs the compiler and returns what it said about the first of the files. It ends with this process, and holds the workspace's lock until then.
func (c *compilation) start(ctx context.Context, files []*entry) ([]byte, error) {
	var in, out, errs bytes.Buffer
	for _, f := range files {
		in.WriteString(f.path + "\n")
	}
	cmd := exec.CommandContext(ctx, c.python, "-I", "-S", "-B", "-X", "utf8", "-c", compileScript, c.tree, cacheTag(c.tag))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH")}
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.tree, &in, &out, &errs
	cmd.ExtraFiles = []*os.File{c.work.lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second

	// The parent-death signal is tied to the thread that starts the child, so that thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, shortened(strings.TrimSpace(errs.String())))
	}
	said := out.Bytes()
	return said[:min(len(said), len(files))], err
}

func (c *compilation) bytecode(name string) string {
	return filepath.Join(c.tree, bytecodePath(name, c.tag))
}

// bytecodePath is where Python looks for the bytecode of a module (PEP 3147).
func bytecodePath(name, tag string) string {
	dir, base := path.Split(name)
	return dir + "__pycache__/" + strings.TrimSuffix(base, ".py") + "." + cacheTag(tag) + ".pyc"
}

// bytecodeSize looks at a file that the compiler says it has written.
func (c *compilation) bytecodeSize(name string) int64 {
	info, err := os.Lstat(c.bytecode(name))
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// discard removes what a compiler had begun to write.
func (c *compilation) discard(name string) {
	if err := os.Remove(c.bytecode(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = os.RemoveAll(filepath.Dir(c.bytecode(name)))
	}
}
