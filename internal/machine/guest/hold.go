package guest

import (
	"maps"
	"slices"
	"sync"
	"syscall"

	"cove/internal/machine/wire"
)

// hold says which channel a process belongs to. A plain process has the one that it was started on, until it ends. A kernel
// may be let go, and be taken over by another channel of the same or of a later connection.
type hold struct {
	kernel bool

	mu   sync.Mutex
	ch   *wire.Channel // nil while nobody holds the process
	deaf bool          // ch takes no more; its reader gets the reason
	back bool          // nothing is read from the process until another channel takes it over
	over bool          // the process has ended and cannot be taken over any more
}

func (h *hold) take(ch *wire.Channel) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ch = ch
}

// takeOver answers a request to attach and makes its channel the kernel's. It returns false when the kernel has ended. One whose
// channel was closed a moment ago may still be saved by it.
func (r *runner) takeOver(ch *wire.Channel) bool {
	h := &r.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	// Under the lock, so that nothing of the kernel's gets onto the channel before the answer. A new channel has
	// credit for it.
	if wire.WriteMessage(ch, wire.Response{PID: r.pid, Busy: r.busy.Load()}, nil) != nil {
		return true
	}
	if h.ch != nil {
		_ = h.ch.Reset("the kernel was taken over by another channel")
	}
	h.ch, h.deaf = ch, false
	if h.back {
		h.back = false
		r.watchAll() // its execution goes on, with the room for output that it has left
	} else {
		r.left.Store(drainLimit)
	}
	return true
}

// park leaves the kernel without a channel, if ch was it, and reads nothing from it until another takes it over. All that was read is on the channel then.
func (r *runner) park(ch *wire.Channel) {
	r.reading.Lock() // not while something that was read is on its way
	defer r.reading.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ch != ch {
		return
	}
	r.ch, r.deaf = nil, false
	if r.over {
		return
	}
	r.back = true
	for _, fd := range []int{r.out[0], r.out[1], r.socket} {
		if fd >= 0 {
			_ = syscall.EpollCtl(r.epoll, syscall.EPOLL_CTL_DEL, fd, nil)
		}
	}
}

// watchAll undoes what park did to the loop. The caller holds mu, and the loop has nothing in hand.
func (r *runner) watchAll() {
	for _, fd := range []int{r.out[0], r.out[1], r.socket} {
		if fd >= 0 {
			_ = r.watch(fd) // it was watched before
		}
	}
}

// heldBack says whether nothing is to be read.
func (h *hold) heldBack() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.back
}

// readAgain has what is left be read after the process's end.
func (h *hold) readAgain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.back = false
}

// listener returns the channel to write to, or nil.
func (h *hold) listener() *wire.Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.deaf {
		return nil
	}
	return h.ch
}

func (h *hold) heldBy(ch *wire.Channel) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ch == ch
}

// mute notes that a channel cannot be written to. That alone decides nothing about the process.
func (h *hold) mute(ch *wire.Channel) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ch == ch {
		h.deaf = true
	}
}

// letGo leaves the process without a channel, if ch was it.
func (h *hold) letGo(ch *wire.Channel) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ch == ch {
		h.ch, h.deaf = nil, false
	}
}

// retire ends taking over; the channel stays for the last words.
func (h *hold) retire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
}

// release ends the channel in good order.
func (h *hold) release() {
	h.retire()
	if ch := h.listener(); ch != nil {
		_ = ch.CloseWrite()
		_ = ch.Close()
	}
}

// endsKept is how many ended kernels are remembered.
const endsKept = 64

// kernels knows the kernels of a guest. Its zero value is ready for use.
type kernels struct {
	mu     sync.Mutex
	living map[int]*runner
	ends   []ending // the oldest first
}

type ending struct {
	pid int
	how string
}

func (k *kernels) add(r *runner) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.living == nil {
		k.living = map[int]*runner{}
	}
	k.living[r.pid] = r
}

func (k *kernels) remove(r *runner) {
	k.mu.Lock()
	defer k.mu.Unlock()
	// The number may be in use again.
	if k.living[r.pid] == r {
		delete(k.living, r.pid)
	}
	if len(k.ends) == endsKept {
		k.ends = k.ends[1:]
	}
	k.ends = append(k.ends, ending{r.pid, r.how()})
}

// find returns the living kernel with a process id, or how the last kernel that had it ended: "" when there was none.
func (k *kernels) find(pid int) (r *runner, how string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.living[pid]; r != nil {
		return r, ""
	}
	for _, e := range slices.Backward(k.ends) {
		if e.pid == pid {
			return nil, e.how
		}
	}
	return nil, ""
}

func (k *kernels) pids() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.living))
}

// noteMemory records of every living kernel that it ends for the sandbox's memory.
func (k *kernels) noteMemory() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.living {
		r.memory.Store(true)
	}
}
