package kernel

import "time"

// While the code waits for calls of tools or for input, the time of its execution stands still. Waiting for calls has a time of its own, which runs then on the same timer.

// waits says whether the code waits for anything that somebody outside of the sandbox gives it.
func (x *execution) waits() bool { return len(x.calls.waiting)+x.inputs.asking > 0 }

// stopClock has the time stand still. The caller then notes what the code waits for.
func (x *execution) stopClock() {
	if x.waits() || x.reason != "" {
		return
	}
	x.timer.Stop()
	if x.left = 0; !x.deadline.IsZero() {
		x.left = max(time.Until(x.deadline), time.Millisecond)
	}
}

// startClock has the time go on, unless the code still waits. The caller has noted what it does not wait for any more.
func (x *execution) startClock() {
	if x.waits() || x.reason != "" || x.left == 0 {
		return
	}
	x.deadline = time.Now().Add(x.left)
	x.timer.Reset(x.left)
}
