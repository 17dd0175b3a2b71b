package gvisor

import (
	"runtime"
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname

	_ "gvisor.dev/gvisor/pkg/sentry/platform/systrap" // has the variables
)

// The fast path is what gVisor calls it when a sentry and the code wait for each other spinning instead of asleep. System calls that follow one another take a
// tenth to a twentieth of the time then. But a start is page faults, between which the sentry has much to do: there the spinning gains nothing, and is an eighth of the processor
// time until the first result. So a sentry does without until its owner writes to its lifeline, startLasts after the guest has connected.
const startLasts = 100 * time.Millisecond

// fastPathLimit is 0 until gVisor's platform is there and has decided whether this machine is one for the fast path at all. There is no setting for when.
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
