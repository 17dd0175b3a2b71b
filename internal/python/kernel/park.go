package kernel

import (
	"context"
	"fmt"
	"iter"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/wire"
)

// parking is how an execution lets its kernel go. What the guest had sent before it did so is kept, and heard when the execution goes on; it is at most what a channel of the connection holds, and a message that had begun.
type parking struct {
	begun, done bool
	unheard     []message
}

// parkWanted returns what says that the execution is to be parked; nil while it is too early to park it, or too late.
func (x *execution) parkWanted(ctx context.Context) <-chan struct{} {
	if x.parking.begun || ctx.Err() != nil || !x.onlyWaits() {
		return nil
	}
	return x.req.Park()
}

// onlyWaits says whether the code waits for calls, and nobody on this side has anything to do for it.
func (x *execution) onlyWaits() bool {
	return x.req.Park != nil && x.kernel.process.Parks && len(x.calls.waiting) > 0 && x.calls.performing.Load() == 0 && x.reason == "" && !x.silent && x.inputs.asking == 0 && !x.modules.busy
}

// mayPark begins to let the kernel go, if that is wanted.
func (x *execution) mayPark(ctx context.Context) {
	select {
	case <-x.parkWanted(ctx):
		x.parking.begun = true
		_ = x.kernel.process.Park() // an error means that the connection has ended, which its reader says
	default:
	}
}

// parks takes a message that comes while the guest lets the kernel go, and returns true when it has, or when the execution is over.
func (x *execution) parks(m message) bool {
	switch {
	case m.err != nil:
		x.parking.done = true
		x.timer.Stop()
		if x.reason == "" {
			x.calls.spent += time.Since(x.calls.began)
		}
		return true
	case m.head.Kind == wire.FromExit:
		return x.catchUp() || x.handle(m)
	}
	x.parking.unheard = append(x.parking.unheard, m)
	return false
}

// catchUp hears what was not heard yet. It returns true when the execution is over.
func (x *execution) catchUp() bool {
	unheard := x.parking.unheard
	x.parking = parking{}
	for _, m := range unheard {
		if x.handle(m) {
			return true
		}
	}
	return false
}

// ID tells the execution from all others.
func (p Parked) ID() string {
	if p.execution == nil {
		return ""
	}
	return p.execution.id
}

// Kernel is the name that Request gave the kernel.
func (p Parked) Kernel() string { return p.execution.req.Kernel }

// Unheard is how many bytes of the kernel's messages are kept for Continue.
func (p Parked) Unheard() (size int) {
	if p.execution != nil {
		for _, m := range p.execution.parking.unheard {
			size += len(m.body)
		}
	}
	return size
}

// End ends a parked execution that will not go on: its code is not told.
func (p Parked) End() {
	if p.execution != nil {
		p.execution.close()
	}
}

// Rejoin takes over the kernel of a parked execution, which is to go on with Continue. waits is false when the code does not wait any more, because somebody has taken over the kernel with Attach meanwhile. Of c, Python and Env
// are not used. The errors are those of Attach.
func Rejoin(ctx context.Context, l *guestlink.Link, c Config, pid int, p Parked) (k *Kernel, waits bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	process, err := l.AttachKernel(ctx, pid)
	if err != nil {
		return nil, false, err
	}
	k = newKernel(process, c)
	k.version, k.tools = p.execution.kernel.version, p.execution.kernel.tools
	if process.Busy {
		return k, true, nil
	}
	if err := k.settle(ctx, false); err != nil {
		k.Close()
		return nil, false, err
	}
	return k, false, nil
}

// Missing is Request.Missing.
type Missing = func(ctx context.Context, module string, loaded []string, tell func(Event)) (Paths, error)

// Continue has a parked execution go on in its kernel, which Rejoin has returned, with missing in the place of its Request.Missing. It yields events as Execute does. When ctx has ended, the code is interrupted.
func (k *Kernel) Continue(ctx context.Context, p Parked, missing Missing) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		select {
		case <-k.idle:
			defer func() { k.idle <- struct{}{} }()
		case <-k.closing:
			yield(nil, ended())
			return
		}
		x := p.execution
		x.kernel, x.yield, x.silent, x.rung, x.req.Missing = k, yield, false, 0, missing
		if x.catchUp() {
			x.close()
			return
		}
		switch {
		case x.reason != "": // it was to be interrupted while the guest let the kernel go
			x.climb()
		case len(x.calls.waiting) > 0:
			x.waitLonger()
		}
		x.run(ctx)
	}
}

// Gone is the end of a parked execution whose kernel has ended or was ended meanwhile.
func (p Parked) Gone(err error) Done {
	d := Done{Outcome: OutcomeInterrupted, ExitCode: 1, Lost: LostKernel, Message: "the kernel was ended while the code waited; variables are lost, files are kept"}
	if p.execution != nil {
		d.Wall = time.Since(p.execution.began)
	}
	if err != nil {
		d.Outcome, d.Message = OutcomeDied, fmt.Sprintf("the kernel ended while the code waited (%s); variables are lost, files are kept", problem.Of(err).Message)
	}
	return d
}
