package gvisor

import (
	"runtime"
	_ "unsafe" // for go:linkname
)

// temporaryProcs is what gVisor adds to GOMAXPROCS while it moves memory from or to a checkpoint: 128, for as many readers. On a
// machine with few processors these crowd out the one goroutine that everything waits for, which rebuilds the kernel, and each leaves
// a thread with its stacks behind. There is no setting for it.
//
//go:linkname temporaryProcs gvisor.dev/gvisor/pkg/gomaxprocs.temp
var temporaryProcs int

// keepParallelism has GOMAXPROCS stay at the number of processors. It must be called before gVisor sets it: a sum below one
// changes nothing. Setting it here keeps Go from looking at the processors again, which gVisor's seccomp filter forbids.
func keepParallelism() {
	runtime.GOMAXPROCS(runtime.NumCPU())
	temporaryProcs = -1 << 30
}
