package kernel

import "time"

// While the code waits for calls of tools or for input, the time of its execution stands still. Waiting for calls has a time of its own, which runs then on the same timer.

// isWaiting says whether the code waits for anything that somebody outside of the sandbox gives it.
func (x *execution) isWaiting() bool { return len(x.calls.waiting)+x.inputs.asking > 0 }

// pauseClock has the time stand still. The caller then notes what the code waits for.
func (x *execution) pauseClock() {
	if x.isWaiting() || x.reason != "" {
		return
	}
	x.timer.Stop()
	if x.left = 0; !x.deadline.IsZero() {
		x.left = max(time.Until(x.deadline), time.Millisecond)
	}
}

// resumeClock has the time go on, unless the code still waits. The caller has noted what it does not wait for any more.
func (x *execution) resumeClock() {
	if x.isWaiting() || x.reason != "" || x.left == 0 {
		return
	}
	x.deadline = time.Now().Add(x.left)
	x.timer.Reset(x.left)
}
