package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

// runMark is the environment variable that every process of a run carries, so that none can get away.
const runMark = "COVE_BENCH_RUN"

const runPrefix = "run-"

// workshop is the folder <data>/bench. One run at a time works in it; what lasts only as long is below run.
type workshop struct {
	dir      string
	run      string
	id       string
	lock     *os.File
	progress io.Writer
}

// openWorkshop waits for nobody: two runs at once would measure each other.
func openWorkshop(data string, progress io.Writer) (*workshop, error) {
	dir, err := filepath.Abs(filepath.Join(data, "bench"))
	if err != nil {
		return nil, fmt.Errorf("locate the data folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, problem.New(problem.DataFolderUnusable, "cove cannot write to its data folder "+data).
			WithHint("make it writable, or set COVE_HOME to a folder that is").WithCause(err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the benchmark's folder: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, problem.New(codeBusy, "another benchmark is running").
			WithHint("wait for it: two at once would measure each other").WithCause(err)
	}
	w := &workshop{dir: dir, lock: lock, progress: progress}
	if err := w.sweep(); err != nil {
		lock.Close()
		return nil, err
	}
	token := make([]byte, 4)
	_, _ = rand.Read(token) // never fails
	w.id = hex.EncodeToString(token)
	w.run = filepath.Join(dir, runPrefix+w.id)
	if err := os.Mkdir(w.run, 0o755); err != nil {
		lock.Close()
		return nil, fmt.Errorf("make a folder for this run: %w", err)
	}
	return w, nil
}

// close removes everything that belongs to this run.
func (w *workshop) close() error {
	err := w.sweep()
	w.lock.Close()
	return err
}

// sweep removes every run's processes, mounts, cgroups and files. The caller holds the lock, so they are nobody else's.
func (w *workshop) sweep() error {
	runs, err := filepath.Glob(filepath.Join(w.dir, runPrefix+"*"))
	if err != nil {
		return fmt.Errorf("look for earlier runs: %w", err)
	}
	var errs []error
	for _, run := range runs {
		id := strings.TrimPrefix(filepath.Base(run), runPrefix)
		killMarked(id)
		unmountBelow(run)
		removeCgroups(id)
		errs = append(errs, os.RemoveAll(run))
	}
	return errors.Join(errs...)
}

// command is a program that belongs to this run. It is out of reach of the terminal's Ctrl-C: cove ends it.
func (w *workshop) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), w.mark())
	cmd.Dir = w.run
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

func (w *workshop) mark() string { return runMark + "=" + w.id }

// do runs a command to its end and returns its stdout; a failure is told with the end of its stderr.
func (w *workshop) do(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { killGroup(cmd) })
	defer stop()
	err := cmd.Wait()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, lastWords(stderr.String()))
	}
	return stdout.String(), err
}

// lastWords is the end of what a program said.
func lastWords(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return text[max(0, len(text)-300):]
}

func killGroup(cmd *exec.Cmd) {
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // it may be gone
}

// killMarked kills the processes that carry a run's mark until there are none.
func killMarked(id string) {
	for range 100 {
		pids := markedProcesses(id)
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func markedProcesses(id string) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		environ, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(environ), "\x00"), runMark+"="+id) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// unmountBelow unmounts what is mounted in dir, the latest first.
func unmountBelow(dir string) {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	var points []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, fields[4])
		}
	}
	slices.Reverse(points)
	for _, point := range points {
		_ = unix.Unmount(point, unix.MNT_DETACH) // RemoveAll says what stays
	}
}

// cgroupName is the parent of the cgroups of a run's containers.
func cgroupName(id string) string { return "cove-bench-" + id }

func removeCgroups(id string) {
	tops, _ := filepath.Glob("/sys/fs/cgroup/*/" + cgroupName(id))
	tops = append(tops, "/sys/fs/cgroup/"+cgroupName(id))
	for _, top := range tops {
		var dirs []string
		_ = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		slices.Reverse(dirs)
		for _, dir := range dirs {
			_ = os.Remove(dir) // an empty directory costs nothing
		}
	}
}

// allocated is the disk space of the files below dir that are nowhere else, in bytes: what all sessions share has other names too.
func allocated(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink == 1 {
				bytes += s.Blocks * 512
			}
		}
		return nil
	})
	return bytes
}
