package app

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// lookEvery is how often the server looks whether it has memory that it does not use.
	lookEvery = 10 * time.Second
	// worthIt is so much unused memory that giving it back is worth a collection of garbage.
	worthIt = 64 << 20
)

// requestMemory is what requests may take at the same time with what they sent: an eighth of the memory that there is, and between 128 MiB and 1 GiB.
func requestMemory() int64 { return min(max(memoryHere()/8, 128<<20), 1<<30) }

// limitMemory has the garbage collector work harder from a quarter of the memory that there is on, which is otherwise for the sessions; 512 MiB
// at least. Who sets GOMEMLIMIT knows better. The result takes it back.
func limitMemory() (undo func()) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	before := debug.SetMemoryLimit(max(memoryHere()/4, 512<<20))
	return func() { debug.SetMemoryLimit(before) }
}

// giveBackMemory returns to the machine what the server took for a short time, until ctx ends. By itself the runtime keeps what large requests and
// answers took for minutes, and a server that has nothing to do keeps it for longer.
func giveBackMemory(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if unusedMemory() > worthIt {
				debug.FreeOSMemory()
			}
		}
	}
}

// unusedMemory is how much memory the process holds beyond what the last collection of garbage found in use, in bytes.
func unusedMemory() int64 {
	read := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(read)
	objects, live, free := read[0].Value.Uint64(), read[1].Value.Uint64(), read[2].Value.Uint64()
	return int64(objects) - int64(live) + int64(free)
}

// memoryHere is how much memory this process and its sandboxes can have, in bytes: the machine's, or what a control group allows. Where that is not
// known it is as if there were much.
func memoryHere() int64 {
	room, err := machine().Look()
	if err != nil {
		return math.MaxInt64
	}
	return room.Total
}
