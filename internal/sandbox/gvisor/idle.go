package gvisor

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// idleInterval is how often a runsc process looks at its own memory.
	idleInterval = 2 * time.Second
	// idleWaste is how many bytes of memory may lie unused in it.
	idleWaste = 2 << 20
)

// returnMemory gives memory back to the host that this process does not use any more. Go does so by itself, but only in proportion to
// what it goes on to allocate, and an idle sandbox allocates nothing: what the start needed would stay for ever. It does
// not return.
func returnMemory() {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"},    // could go back now
		{Name: "/memory/classes/heap/unused:bytes"},  // in spans that are partly used
		{Name: "/memory/classes/heap/objects:bytes"}, // live, and garbage not yet found to be
		{Name: "/gc/heap/live:bytes"},                // live when garbage was last collected
	}
	var kept uint64 // waste that a collection did not help against
	for range time.Tick(idleInterval) {
		if waste := wasteOf(samples); waste > kept+idleWaste {
			debug.FreeOSMemory()
			kept = wasteOf(samples)
		}
	}
}

func wasteOf(samples []metrics.Sample) uint64 {
	metrics.Read(samples)
	waste := samples[0].Value.Uint64() + samples[1].Value.Uint64()
	if objects, live := samples[2].Value.Uint64(), samples[3].Value.Uint64(); objects > live {
		waste += objects - live
	}
	return waste
}
