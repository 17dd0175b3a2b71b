package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
)

// detached is an execution of a turn's code that may outlive the turn, because the code may call functions of the client's: the turn ends with the calls, the code waits where it called, and the turn that brings the results
// hears what the code emits then. It is an execution like those without a turn, with a stream of its own.
type detached struct {
	h            *Hub
	e            Execution
	conversation string
	t            *liveExecution
	events       chan heardEvent // to the turn that hears it, one by one; closed after the last
	failed       error           // set before events is closed: the session's error instead of a Done
	ended        chan struct{}   // closed when all is recorded

	deafen sync.Once
	deaf   chan struct{} // closed when no turn will hear any more

	work  context.Context // ends when a drain stops waiting
	seat  *seat           // the session, which the goroutine of the execution holds; nil while it is parked
	seats chan *seat      // to that goroutine: the session again, when it goes on

	telling sync.Mutex // held while an event is told
	unheard []heardEvent

	mu        sync.Mutex
	answers   map[int]func(tool.Result) // the client's calls that wait, by number
	suspended *loop.Suspended           // nil while a turn hears
	waiter    string                    // the turn whose calls' results the code has not got yet; "": none
	stopWatch func() bool
	wanted    chan struct{} // closed when the code is to be parked
}

// heardEvent is an event for a turn, which has until ctx ends to take it.
type heardEvent struct {
	ctx   context.Context
	event Event
}

// callPrefix begins the ids of calls that code made. The id has the execution and the number, so that a result finds its call.
const callPrefix = "call_"

func (d *detached) callID(number int) string {
	return callPrefix + ident.Body(d.e.ID) + "_" + strconv.Itoa(number)
}

// CallOfCode returns the execution that made a call, by the call's id as a turn's answer has it, and the number of the call. A call that a model made itself has another kind of id.
func CallOfCode(id string) (execution string, number int, ok bool) {
	body, said, found := strings.Cut(strings.TrimPrefix(id, callPrefix), "_")
	execution = ident.Execution + "_" + body
	number, err := strconv.Atoi(said)
	return execution, number, found && err == nil && strings.HasPrefix(id, callPrefix) && ident.Valid(ident.Execution, execution)
}

// detach begins an execution that may outlive its turn. The caller hears its events.
func (h *Hub) detach(ctx context.Context, who auth.Principal, e Execution, conversation string, req kernel.Request, o *offer) (*detached, error) {
	work, end, err := h.begin(ctx)
	if err != nil {
		return nil, err
	}
	s, err := h.acquire(ctx, e.Project, e.Session)
	if err != nil {
		end()
		return nil, err
	}
	e.Detached = true
	d := &detached{h: h, conversation: conversation, events: make(chan heardEvent), deaf: make(chan struct{}), ended: make(chan struct{}), answers: map[int]func(tool.Result){},
		work: work, seat: s, seats: make(chan *seat, 1), wanted: make(chan struct{})}
	if h.parks(s) {
		req.Park = d.parkWanted
	}
	events := h.streams.Open(e.ID)
	if d.e, d.t, err = h.admit(work, e); err != nil {
		events.Close()
		h.release(s)
		end()
		return nil, err
	}
	h.mu.Lock()
	h.detached[d.e.ID], d.t.detached = d, d
	h.mu.Unlock()
	emit := func(ctx context.Context, event Event) error {
		if err := h.emit(ctx, events, d.e.ID, event); err != nil {
			return err
		}
		d.tell(ctx, event)
		return nil
	}
	req.Tools = h.overseen(who, d.e, o.tools(d.callClient(emit)))
	h.work.RunInBackground(func(context.Context) {
		defer end()
		defer d.giveBack()
		defer h.endWaiting(d)
		defer d.over()
		defer events.Close()
		var done kernel.Done
		_, failed := h.perform(work, d.t, d.e, req, emit, func(e *Execution, last kernel.Done, _ error) error {
			if why, ok := errors.AsType[*problem.Error](context.Cause(d.t.ctx)); ok && last.Outcome == kernel.OutcomeInterrupted {
				last.Message, e.Message = why.Message, why.Message
			}
			done = last
			return h.conclude(h.work.Ended, events, e, last)
		})
		if d.failed = failed; failed == nil {
			d.tell(d.t.ctx, done)
		}
	})
	return d, nil
}

// callClient returns what has the calls of code wait for the client, after emit has told of them.
func (d *detached) callClient(emit emitter) tool.Calls {
	return func(ctx context.Context, calls []tool.Call, answer func(int, tool.Result)) {
		var waits kernel.CallsWait
		var refused []int
		room := mostArguments
		d.mu.Lock()
		for _, c := range calls {
			if room -= len(c.Arguments); room < 0 {
				refused = append(refused, c.Number)
				continue
			}
			d.answers[c.Number] = func(r tool.Result) { answer(c.Number, r) }
			waits.Calls = append(waits.Calls, kernel.WaitingCall{ID: d.callID(c.Number), Name: c.Name, Arguments: string(c.Arguments)})
		}
		d.mu.Unlock()
		if len(waits.Calls) > 0 {
			_ = emit(ctx, waits) // a turn that does not hear it has ended, and the code with it
		}
		for _, number := range refused {
			answer(number, tool.Failed("the arguments of calls that are made together are larger than 4 MiB; make fewer at a time"))
		}
	}
}

// tell hands an event to the turn that hears, or waits for one that will. An event of code that is to be parked is kept for that turn.
func (d *detached) tell(ctx context.Context, event Event) {
	d.telling.Lock()
	defer d.telling.Unlock()
	d.unheard = append(d.unheard, heardEvent{ctx, event})
	d.retell()
}

// retell hands on what no turn has heard yet. The caller holds telling.
func (d *detached) retell() {
	for len(d.unheard) > 0 {
		var wanted <-chan struct{}
		if mayKeep(d.unheard[len(d.unheard)-1].event, len(d.unheard)) {
			wanted = d.parkWanted()
		}
		select {
		case d.events <- d.unheard[0]:
			d.unheard = d.unheard[1:]
		case <-d.deaf:
			d.unheard = nil
		case <-wanted:
			if _, waits := d.waits(); waits {
				return // the turn that claims it retells
			}
		}
	}
}

// close says that no turn will hear any more.
func (d *detached) close() { d.deafen.Do(func() { close(d.deaf) }) }

func (d *detached) over() {
	d.h.mu.Lock()
	delete(d.h.detached, d.e.ID)
	d.h.mu.Unlock()
	close(d.events)
	close(d.ended)
}

// stop ends the code. It does nothing to code that has ended.
func (d *detached) stop(why error) {
	d.t.stop(why)
	d.close()
}

// hear yields what the code emits, until it ends or the consumer leaves. The end of ctx interrupts the code. A consumer that leaves behind a kernel.CallsWait has to suspend the code, or stop it.
func (d *detached) hear(ctx context.Context, yield func(ctx context.Context, event Event) bool) error {
	defer context.AfterFunc(ctx, func() { d.t.stop(context.Cause(ctx)) })()
	for heard := range d.events {
		if yield(heard.ctx, heard.event) {
			continue
		}
		if _, waits := heard.event.(kernel.CallsWait); !waits {
			d.stop(errUnheard)
		}
		return nil
	}
	return d.failed
}

// suspend keeps the code of a turn until another turn brings the results that it waits for. Problems: too_many_waiting.
func (h *Hub) suspend(d *detached, turn string, s *loop.Suspended) error {
	total, ofProject, room := 0, 0, s.Size()
	h.mu.Lock()
	for _, other := range h.detached {
		if size, waits := other.waits(); waits {
			if total++; other.e.Project == d.e.Project {
				ofProject++
			}
			room += size
		}
	}
	draining := h.draining
	h.mu.Unlock()
	switch {
	case draining:
		return stoppedWaitingForResults()
	case total >= mostWaiting || ofProject >= mostProjectWaiting || room > mostSuspended:
		return problem.New(problem.TooManyWaiting, "too much code waits for results of its clients").WithHint("bring the results of some of it, or cancel it")
	}
	h.rest(d.t)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiter = turn
	d.watch(s)
	return nil
}

// parkAfter is how long code waits in memory for a client before it is parked: one that is quick pays nothing for that.
const parkAfter = time.Second

// watch keeps code that waits until a turn claims it, but not for ever. The caller holds d.mu.
func (d *detached) watch(s *loop.Suspended) {
	patience := d.h.o.Limits.Results
	late := time.AfterFunc(patience, func() {
		d.t.stop(problem.New(problem.ResultsLate, fmt.Sprintf("nobody brought within %s the results that the code waited for", patience)))
	})
	wanted := d.wanted // which is open
	park := time.AfterFunc(parkAfter, func() { close(wanted) })
	watching := context.AfterFunc(d.t.ctx, d.close)
	d.suspended, d.stopWatch = s, func() bool {
		late.Stop()
		if !park.Stop() {
			d.wanted = make(chan struct{})
		}
		return watching()
	}
}

// mostArguments bounds the arguments of calls that are told together, in bytes: they are part of a turn's record.
const mostArguments = 4 << 20

// mostSuspended bounds what is kept of all code that waits for clients, in bytes.
const mostSuspended = 1 << 30

func stoppedWaitingForResults() *problem.Error {
	return problem.New(problem.Draining, "the server stopped while code waited for results of its client").WithHint("ask again in a moment")
}

func (d *detached) waits() (size int64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.suspended == nil {
		return 0, false
	}
	return d.suspended.Size(), true
}

// claim gives one turn the code that waits.
func (d *detached) claim() (*loop.Suspended, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.suspended
	if s == nil || !d.stopWatch() {
		return nil, false
	}
	d.suspended = nil
	return s, true
}

// forsake ends code of a conversation that waits for results which will not come.
func (h *Hub) forsake(conversation, why string) {
	h.stopSuspended(func(d *detached) bool { return d.conversation == conversation }, why)
}

// forsakeTurn ends the code that waits for the results of a turn's calls, and returns when it has ended.
func (h *Hub) forsakeTurn(ctx context.Context, t Turn, why string) {
	stopped := h.stopSuspended(func(d *detached) bool {
		return slices.ContainsFunc(t.Calls, func(c model.ToolCall) bool { return d.waitsFor(c.ID) })
	}, why)
	for _, d := range stopped {
		select {
		case <-d.ended:
		case <-ctx.Done():
		}
	}
}

func (h *Hub) stopSuspended(which func(*detached) bool, why string) (stopped []*detached) {
	for _, d := range h.detachedWhere(which) {
		if _, ok := d.claim(); ok {
			d.stop(problem.New(problem.GivenUp, why))
			stopped = append(stopped, d)
		}
	}
	return stopped
}

// waitsFor says whether the code waits for the result of a call.
func (d *detached) waitsFor(call string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.suspended != nil && slices.ContainsFunc(d.suspended.Calls, func(c kernel.WaitingCall) bool { return c.ID == call })
}

func (h *Hub) detachedWhere(is func(*detached) bool) (out []*detached) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.detached {
		if is(d) {
			out = append(out, d)
		}
	}
	return out
}

// detachedEnded waits until the executions of a turn that outlive it have ended: their records are removed with that of the turn.
func (h *Hub) detachedEnded(ctx context.Context, turn string) {
	for _, d := range h.detachedWhere(func(d *detached) bool { return d.e.Turn == turn }) {
		select {
		case <-d.ended:
		case <-ctx.Done():
		}
	}
}
