package guest

import (
	"math"
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

	mu    sync.Mutex
	limit int64         // of the last execution; 0: none
	quit  chan struct{} // ends the watch; nil: none is kept
	over  chan struct{} // closed when the last watch has ended
}

func (w *memoryWatch) start(limit int64) {
	w.stop()
	if limit <= 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit, w.quit, w.over = limit, make(chan struct{}), make(chan struct{})
	go w.run(limit, w.quit, w.over)
}

func (w *memoryWatch) run(limit int64, quit, over chan struct{}) {
	defer close(over)
	interval := memoryInterval
	if w.guest.user == 0 {
		interval = memoryIntervalProc
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	// What processes had that were killed a moment ago comes back by and by. So the first look decides nothing, and later ones nothing while memory falls.
	before := int64(math.MaxInt64)
	for {
		select {
		case <-quit:
			return
		case <-w.runner.ended:
			return
		case <-tick.C:
		}
		used := w.guest.memoryUsed()
		if used > limit && used >= before {
			w.guest.killForMemory()
			return
		}
		before = used
	}
}

// conclude ends the watch of a kernel that has died, before the host hears of the death and starts another kernel: a watch that went on would kill that one
// for the memory that processes of the dead one still have. They are killed here.
func (w *memoryWatch) conclude() {
	w.mu.Lock()
	limit, over := w.limit, w.over
	w.mu.Unlock()
	w.stop()
	if over == nil {
		return
	}
	<-over
	if w.guest.memoryUsed() > limit {
		w.guest.killForMemory()
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

// killForMemory ends all kernels and processes, whichever of them used the memory up, with all that they started.
func (g *guest) killForMemory() {
	g.kernels.noteMemory()
	for _, p := range g.processes.list() {
		if !p.over() {
			p.memory.Store(true)
		}
	}
	g.killUser()
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
