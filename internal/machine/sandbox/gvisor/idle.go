package gvisor

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// idleInterval is how often a runsc process looks at its own memory.
	idleInterval = 2 * time.Second
	// idleGarbage is how many bytes a process allocates before it is worth collecting what of them is garbage, once it rests.
	idleGarbage = 2 << 20
	// idleRest is how many bytes a process allocates at most in an interval in which it rests.
	idleRest = 128 << 10
)

// returnMemory gives memory back to the host that this process does not use any more. Go does so by itself, but only in proportion to what it goes on to allocate,
// and an idle sandbox allocates nothing: what the start needed, or a save, would stay for ever. It does not return.
func returnMemory() {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	var rest resting
	for range time.Tick(idleInterval) {
		metrics.Read(sample)
		if rest.after(sample[0].Value.Uint64()) {
			debug.FreeOSMemory()
		}
	}
}

// resting says when a process has garbage and does nothing. How much of what it allocated is garbage is not known before a collection: what was live in the last one, in the
// middle of a save, need not be any more.
type resting struct {
	seen      uint64 // bytes allocated since the process began, at the last look
	collected uint64 // at the last collection
}

// after says whether to collect garbage now that so many bytes have been allocated since the process began.
func (r *resting) after(allocated uint64) bool {
	rests := allocated-r.seen <= idleRest
	r.seen = allocated
	if !rests || allocated-r.collected < idleGarbage {
		return false
	}
	r.collected = allocated
	return true
}
