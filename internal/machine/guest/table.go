package guest

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// table knows the processes that the guest started. Waiting is done in one place, because a reaper that waits
// for anything would take the exit status from the code that waits for one process.
type table struct {
	mu      sync.Mutex
	waiters map[int]chan syscall.WaitStatus
	starts  chan func() // of programs of the sandboxed user
	roots   chan func() // of programs of root
	ended   chan os.Signal
}

// newTable returns a table whose processes start confined (see confine), or as the guest itself.
func newTable(confined bool) (*table, error) {
	t := &table{waiters: map[int]chan syscall.WaitStatus{}, starts: make(chan func()), roots: make(chan func()), ended: make(chan os.Signal, 1)}
	// Before anything starts: on a busy machine a process can end before reap first runs, and nothing tells of it a second time.
	signal.Notify(t.ended, syscall.SIGCHLD)
	ready := make(chan error, 2)
	go spawn(t.starts, ready, confined, giveNothingOn)
	go spawn(t.roots, ready, confined, nil)
	return t, errors.Join(<-ready, <-ready)
}

// spawn starts processes from one thread that never ends, because a child's parent-death signal
// comes when the thread that started it ends.
func spawn(starts <-chan func(), ready chan<- error, confined bool, before func() error) {
	runtime.LockOSThread()
	var err error
	if confined && before != nil {
		err = before()
	}
	if confined && err == nil {
		err = confine()
	}
	ready <- err
	for f := range starts {
		f()
	}
}

// start starts a process. The channel delivers its status once, when it has ended.
func (t *table) start(path string, args []string, attr *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	return t.startBy(t.starts, path, args, attr)
}

// startRoot starts a process that keeps the capabilities of root.
func (t *table) startRoot(path string, args []string, attr *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	return t.startBy(t.roots, path, args, attr)
}

func (t *table) startBy(starts chan<- func(), path string, args []string, attr *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	var (
		pid  int
		err  error
		done = make(chan struct{})
		exit = make(chan syscall.WaitStatus, 1)
	)
	starts <- func() {
		defer close(done)
		// Held over the fork, so that the reaper cannot meet a process that it does not know yet.
		t.mu.Lock()
		defer t.mu.Unlock()
		if pid, err = syscall.ForkExec(path, args, attr); err == nil {
			t.waiters[pid] = exit
		}
	}
	<-done
	return pid, exit, err
}

// reap collects every ended child, its own and orphans.
func (t *table) reap() {
	for range t.ended {
		t.collect()
	}
}

func (t *table) collect() {
	for {
		t.mu.Lock()
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == nil && pid > 0 {
			if w, ok := t.waiters[pid]; ok {
				delete(t.waiters, pid)
				w <- status
			}
		}
		t.mu.Unlock()
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
	}
}

// killDescendants kills everything below the guest until nothing is left.
func (t *table) killDescendants() {
	for range 100 {
		pids := descendants(os.Getpid())
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		t.collect()
	}
}

// descendants lists the living processes below pid.
func descendants(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// pid (name) state ppid ...; the name may hold anything, so look from its closing parenthesis on.
		s := string(b)
		fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
		if len(fields) < 2 || fields[0] == "Z" {
			continue
		}
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], child)
	}
	var all []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		all = append(all, children[queue[0]]...)
		queue = append(queue, children[queue[0]]...)
	}
	return all
}
