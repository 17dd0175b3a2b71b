package gvisor

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFastPathWaits writes to a lifeline and looks at gVisor's variable. What gVisor does with the variable shows in nothing but the time of system calls.
func TestFastPathWaits(t *testing.T) {
	if runtime.NumCPU() == 1 {
		t.Log("gVisor never takes the fast path up with one processor")
		return
	}
	var pipe [2]int // which nobody closes: that would end this process
	if err := unix.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	started, over := make(chan struct{}), make(chan struct{})
	go endWith(pipe[0], started)
	go func() {
		defer close(over)
		delayFastPath(started)
	}()
	select {
	case <-over:
		t.Fatal("it did not wait")
	case <-time.After(10 * time.Millisecond):
	}
	atomic.StoreUint32(&fastPathLimit, 4) // the platform is there
	if _, err := unix.Write(pipe[1], []byte{0, 0}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("it has not heard that the start is over")
	}
	if fastPathOff {
		t.Error("there is no fast path")
	}
}
