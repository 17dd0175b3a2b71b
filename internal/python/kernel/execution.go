package kernel

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"cove/internal/machine/wire"
	"cove/internal/python/replaced"
)

// InterruptGrace is how long code has, on an idle machine, to end after it was interrupted; then it is interrupted again, and killed after as long.
const InterruptGrace = 2 * time.Second

// The interrupt ladder: how long code has on an idle machine after each step before the next, harder one (see patience).
var ladder = [...]rung{
	{syscall.SIGINT, InterruptGrace, 2},
	{syscall.SIGINT, InterruptGrace, 2},
	{syscall.SIGKILL, 5 * time.Second, 6}, // after that the sandbox counts as dead, and its files as lost
}

type rung struct {
	signal syscall.Signal
	grace  time.Duration
	most   float64 // how much longer it is at most on a busy machine
}

// execution is one run of code: a small state machine over the kernel's messages, the clock and the caller's context.
type execution struct {
	kernel *Kernel
	req    Request
	id     string
	yield  func(Event, error) bool
	began  time.Time

	silent  bool // the consumer has left; the execution goes on to its end without one
	limit   int64
	shown   int64 // bytes of displays and errors, delivered or not
	written int64 // bytes of streams, delivered or not
	dropped int64
	held    [2][]byte // an incomplete UTF-8 sequence at the end of stdout, stderr

	reason  Outcome // why the code is being interrupted: OutcomeTimeout or OutcomeInterrupted
	rung    int
	timer   *time.Timer
	inputs  inputs
	parking parking
	modules modules
	calls   calls
	// deadline is when the time is over; it does not count while the code waits for calls or for input. Zero: never.
	deadline time.Time
	left     time.Duration // of the execution's own time, while it stands still
}

// What an execution may do beyond its limits.
const (
	errorRoom = 1 << 20 // bytes of errors after the limit on what is shown: the last one says why
)

func (x *execution) send() error {
	mode := x.req.Mode
	if mode == "" {
		mode = Cell
	}
	if err := x.kernel.process.Send(wire.ToKernel{Kind: wire.ToBegin, Memory: x.kernel.config.Memory, Output: x.limit}, nil); err != nil {
		return err
	}
	args := x.req.Args
	if args == nil {
		args = []string{}
	}
	return x.kernel.send(map[string]any{
		"type": "execute", "id": x.id, "code": strings.ToValidUTF8(x.req.Code, "\uFFFD"), "mode": mode, "filename": x.req.Filename,
		"args": args, "input": x.req.Input != nil || x.req.Inputs != nil, "standalone": x.req.Standalone, "missing": x.req.Missing != nil, "model": x.req.Model, "columns": x.req.Columns, "environment": x.req.Environment, "unnumbered": x.req.Unnumbered,
		"payloads": x.req.Payloads, "widgets": x.req.Widgets, "parent": x.req.Parent, "tools": x.req.Tools.message(),
	})
}

// open readies the execution for loop.
func (x *execution) open(ctx context.Context) {
	x.inputs.answers = make(chan answer, mostAsking)
	x.timer = time.NewTimer(time.Hour)
	if x.timer.Stop(); x.req.Timeout > 0 {
		x.timer.Reset(x.req.Timeout)
		x.deadline = time.Now().Add(x.req.Timeout)
	}
	x.modules.open(ctx)
	x.calls.open(ctx)
}

// close undoes open, when the execution is over.
func (x *execution) close() {
	x.timer.Stop()
	x.calls.close()
	x.modules.close()
}

// loop has the execution go on until it is over or parked.
func (x *execution) loop(ctx context.Context) {
	canceled := ctx.Done()
	for {
		x.mayPark(ctx)
		select {
		case m := <-x.kernel.messages:
			if x.parking.begun && x.parks(m) || !x.parking.begun && x.handle(m) {
				return
			}
		case <-x.parkWanted(ctx): // the next round begins with that
		case <-x.calls.performed: // and may be parked now
		case <-x.kernel.closing:
			x.closed()
			return
		case <-canceled:
			canceled = nil
			x.interrupt(OutcomeInterrupted)
		case <-x.timer.C:
			if x.reason == "" {
				x.interrupt(OutcomeTimeout)
			} else if x.climb() {
				return
			}
		case a := <-x.inputs.answers:
			x.hand(a)
		case r := <-x.calls.replies:
			x.answered(r)
		case e := <-x.modules.told:
			x.emit(e)
		case r := <-x.modules.replies:
			x.modules.busy = false
			_ = x.kernel.send(r)
		}
		if x.silent && x.reason == "" {
			x.interrupt(OutcomeInterrupted)
		}
	}
}

// closed ends an execution whose kernel was closed on this side.
func (x *execution) closed() {
	x.finish(Done{Outcome: OutcomeInterrupted, Lost: LostSession, ExitCode: 1, Message: "the kernel was closed while the code ran"})
}

// emit yields an event unless the consumer has left.
func (x *execution) emit(e Event) {
	if !x.silent && !x.yield(e, nil) {
		x.silent = true
	}
}

func (x *execution) interrupt(reason Outcome) {
	if x.reason == "" {
		x.reason = reason
		x.modules.cancel()
		x.calls.cancel()
		x.climb()
	}
}

// climb takes the next step of the interrupt ladder. It returns true when none is left: the sandbox does not answer.
func (x *execution) climb() bool {
	if x.rung == len(ladder) {
		x.kernel.markDead()
		x.finish(Done{Outcome: OutcomeSandboxDied, Lost: LostSession, ExitCode: 1, Message: "the sandbox does not answer any more"})
		return true
	}
	step := ladder[x.rung]
	x.rung++
	x.kernel.signal(step.signal)
	x.timer.Reset(step.patience())
	return false
}

// handle deals with one message and returns true when the execution is over.
func (x *execution) handle(m message) bool {
	if m.err != nil {
		select {
		case <-x.kernel.closing: // that is why the kernel died
			x.closed()
			return true
		default:
		}
		x.kernel.markDead()
		x.finish(Done{Outcome: OutcomeSandboxDied, Lost: LostSession, ExitCode: 1, Message: "the sandbox ended during the execution"})
		return true
	}
	switch m.head.Kind {
	case wire.FromStdout:
		x.stream(0, m.body)
	case wire.FromStderr:
		x.stream(1, m.body)
	case wire.FromExit:
		x.kernel.markDead()
		x.dropped += m.head.Dropped
		x.finish(x.death(m.head))
		return true
	case wire.FromMessage:
		done, err := x.message(m)
		if err != nil {
			x.kernel.Close()
			x.finish(Done{Outcome: OutcomeProtocol, Lost: LostKernel, ExitCode: 1, Message: "the kernel did not follow the protocol: " + err.Error()})
			return true
		}
		return done
	}
	return false
}

// death says how an execution ended whose kernel did.
func (x *execution) death(h wire.FromProcess) Done {
	d := Done{Lost: LostKernel, ExitCode: h.Code}
	switch {
	case h.Memory:
		d.Outcome, d.ExitCode = OutcomeMemory, 137
		d.Message = fmt.Sprintf("the code used more than the %d MiB of memory it may use and was ended; variables are lost, files are kept", x.kernel.config.Memory>>20)
	case h.Fault != "":
		d.Outcome, d.ExitCode = OutcomeProtocol, 1
		d.Message = "the kernel did not follow the protocol: " + h.Fault
	case x.reason != "":
		d.Outcome, d.ExitCode = x.reason, 1
		d.Message = x.why() + "; it did not stop when interrupted, so its kernel was killed: variables are lost, files are kept"
	case h.Signal != 0:
		d.Outcome, d.Signal = OutcomeDied, unix.SignalName(syscall.Signal(h.Signal))
		d.Message = fmt.Sprintf("the kernel was killed by %s; variables are lost, files are kept", d.Signal)
	default:
		d.Outcome = OutcomeDied
		d.Message = fmt.Sprintf("the code ended its kernel with exit status %d; variables are lost, files are kept", h.Code)
	}
	return d
}

// diedBefore ends an execution whose kernel had died before, while it was idle: other code in the sandbox can kill it. It returns false when the connection has
// ended too.
func (x *execution) diedBefore(ctx context.Context) bool {
	for {
		select {
		case <-x.kernel.messages: // messages that the kernel had still sent are for no execution
		case <-x.kernel.exited:
			if x.kernel.exit.err != nil {
				return false
			}
			x.kernel.markDead()
			d := x.death(x.kernel.exit.head)
			d.Message = "nothing was run, because the kernel had died before: " + d.Message
			x.finish(d)
			return true
		case <-x.kernel.closing:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func (x *execution) why() string {
	if x.reason == OutcomeTimeout && len(x.calls.waiting) > 0 {
		return "the tools that the code called did not answer in time"
	}
	if x.reason == OutcomeTimeout {
		return "the code ran longer than " + x.req.Timeout.String()
	}
	return "the code was interrupted"
}

// finish yields the output that is left and the Done.
func (x *execution) finish(d Done) {
	for i := range x.held {
		if len(x.held[i]) > 0 {
			x.emit(Stream{Name: streams[i], Data: x.held[i]})
		}
	}
	_ = x.kernel.process.Send(wire.ToKernel{Kind: wire.ToEnd}, nil)
	d.Wall = time.Since(x.began)
	d.Dropped = x.dropped
	x.emit(d)
}

var streams = [2]string{"stdout", "stderr"}

// stream emits text, keeping back an incomplete UTF-8 sequence until the rest of it comes. The guest drops output beyond the limit; the check here is for a
// guest that does not.
func (x *execution) stream(i int, data []byte) {
	if x.written += int64(len(data)); x.written > x.limit {
		x.dropped += int64(len(data))
		return
	}
	if len(x.held[i]) > 0 {
		data = append(x.held[i], data...)
		x.held[i] = nil
	}
	if n := incomplete(data); n > 0 {
		x.held[i] = append([]byte(nil), data[len(data)-n:]...)
		data = data[:len(data)-n]
	}
	if len(data) > 0 {
		x.emit(Stream{Name: streams[i], Data: data})
	}
}

// incomplete returns the length of the UTF-8 sequence that data breaks off in, or 0.
func incomplete(data []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if b := data[len(data)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(data[len(data)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// message deals with a driver's message and returns true when it ends the execution.
func (x *execution) message(m message) (bool, error) {
	s, err := hear(m.body)
	if err != nil {
		return false, err
	}
	switch s.Type {
	case "display", "result", "error", "clear_output":
		return false, x.show(s, int64(len(m.body)))
	case "widgets":
		return false, x.widgets(s, int64(len(m.body)))
	case "input_request":
		return false, x.ask(s)
	case "module_request":
		return false, x.askFor(s)
	case "tool_calls":
		return false, x.call(s)
	case "reply":
		if s.ID != x.id {
			return false, fmt.Errorf("it answered %.100q when %q was asked", s.ID, x.id)
		}
		x.dropped += m.head.Dropped
		x.finish(x.outcome(s))
		return true, nil
	}
	return false, nil
}

// show emits what a message of some size shows, unless there is too much.
func (x *execution) show(s spoken, size int64) error {
	x.shown += size
	if x.shown > x.limit && (s.Type == "display" || s.Type == "result") || x.shown > x.limit+errorRoom {
		x.dropped += size
		return nil
	}
	switch s.Type {
	case "error":
		lines, err := texts(s.Traceback, mostLines)
		if err != nil {
			return err
		}
		x.emit(Error{Name: s.Name, Value: s.Value, Traceback: lines, Hint: cmp.Or(replaced.Hint(s.Name, s.Value, lines), hintOf(s.Hint))})
		return nil
	case "clear_output":
		x.emit(ClearOutput{Wait: s.Wait})
		return nil
	}
	data, err := bundleOf(s.Data)
	if err != nil {
		return err
	}
	metadata, err := members(s.Metadata)
	if err != nil {
		return err
	}
	told := x.told(data)
	if s.Type == "result" {
		x.emit(Result{Count: s.Count, Data: data, Metadata: metadata, Told: told})
	} else {
		x.emit(Display{Data: data, Metadata: metadata, ID: s.DisplayID, Update: s.Update, Told: told})
	}
	return nil
}

func (x *execution) outcome(s spoken) Done {
	d := Done{Outcome: OutcomeOK, ExitCode: s.ExitCode & 0xff}
	switch {
	case x.reason != "" && (s.Interrupted || s.Status != "ok"):
		d.Outcome, d.Message = x.reason, x.why()
	case s.Interrupted:
		d.Outcome, d.Message = OutcomeInterrupted, "the code was interrupted"
	case s.Status != "ok" || s.ExitCode != 0:
		d.Outcome = OutcomeError
	}
	return d
}
