package gvisor

import (
	"runtime"
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname

	_ "gvisor.dev/gvisor/pkg/sentry/platform/systrap" // has the variables
)

// On gVisor's fast path, the sentry and the code spin while they wait for each other, instead of sleeping. System calls that follow one another take a tenth to a twentieth of the time
// there. A start consists of page faults, between which the sentry has much to do: spinning gains nothing then, and takes a sixth of the processor time until the first
// result. So a sentry stays off the fast path until its owner writes to its lifeline, startLasts after the guest has connected.
const startLasts = 100 * time.Millisecond

// fastPathLimit is 0 until gVisor's platform has been set up and has decided whether this machine may use the fast path. gVisor has no setting for the moment at which it does.
//
//go:linkname fastPathLimit gvisor.dev/gvisor/pkg/sentry/platform/systrap.fastPathContextLimit
var fastPathLimit uint32

// fastPathOff is looked at whenever the fast path could be taken up.
//
//go:linkname fastPathOff gvisor.dev/gvisor/pkg/sentry/platform/systrap.neverEnableFastPath
var fastPathOff bool

// delayFastPath keeps this process from the fast path until started is closed.
func delayFastPath(started <-chan struct{}) {
	if runtime.NumCPU() == 1 {
		return // gVisor never takes it up
	}
	const look = 2 * time.Millisecond
	for atomic.LoadUint32(&fastPathLimit) == 0 {
		select {
		case <-started:
			return
		case <-time.After(look):
		}
	}
	fastPathOff = true
	<-started
	fastPathOff = false
}
