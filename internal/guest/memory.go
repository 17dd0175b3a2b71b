package guest

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// How often memory is looked at during an execution. Without a sandbox of its own that takes a walk over all of /proc.
const (
	memoryInterval     = 50 * time.Millisecond
	memoryIntervalProc = 500 * time.Millisecond
)

// memoryWatch kills what runs in the sandbox before the sandbox as a whole hits its limit and is lost with its files.
type memoryWatch struct {
	guest  *guest
	runner *runner

	mu   sync.Mutex
	quit chan struct{}
}

func (w *memoryWatch) start(limit int64) {
	w.stop()
	if limit <= 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quit = make(chan struct{})
	go w.run(limit, w.quit)
}

func (w *memoryWatch) run(limit int64, quit chan struct{}) {
	interval := memoryInterval
	if w.guest.user == 0 {
		interval = memoryIntervalProc
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-quit:
			return
		case <-w.runner.ended:
			return
		case <-tick.C:
		}
		if w.guest.memoryUsed() > limit {
			w.guest.kernels.doom() // they all go, whichever of them used it up
			w.guest.killUser()
			return
		}
	}
}

func (w *memoryWatch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.quit != nil {
		close(w.quit)
		w.quit = nil
	}
}

// memoryUsed returns the bytes that sandboxed code holds: in a sandbox of its own what is in use there, else what the guest's
// descendants have resident.
func (g *guest) memoryUsed() int64 {
	if g.user == 0 {
		var pages int64
		for _, pid := range descendants(os.Getpid()) {
			b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
			if f := strings.Fields(string(b)); len(f) > 2 {
				resident, _ := strconv.ParseInt(f[1], 10, 64)
				shared, _ := strconv.ParseInt(f[2], 10, 64)
				pages += resident - shared
			}
		}
		return pages * int64(os.Getpagesize())
	}
	// In gVisor AnonPages counts anonymous memory and tmpfs, as a limit should; file pages can be dropped at any time.
	b, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "AnonPages:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(v), "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// killUser kills every process of sandboxed code.
func (g *guest) killUser() {
	if g.user != 0 {
		_ = syscall.Kill(-1, syscall.SIGKILL)
		return
	}
	for _, pid := range descendants(os.Getpid()) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
