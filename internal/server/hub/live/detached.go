package live

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
	"cove/internal/server/hub/record"
)

// Detached is an execution of a turn's code that may outlive the turn, because the code may call functions of the client's: the turn ends with the calls, the code waits where it called, and the turn that brings the results
// hears what the code emits then. It is an execution like those without a turn, with a stream of its own.
type Detached struct {
	m            *Manager
	Execution    record.Execution
	Conversation string
	Running      *liveExecution
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
	event record.Event
}

// WaitingTurn returns the turn that waits for the results of the code's calls; "" for none.
func (d *Detached) WaitingTurn() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiter
}

// EndWaiting notes that no turn waits for results any more, which are brought now.
func (d *Detached) EndWaiting() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiter = ""
}

// TakeAnswer returns what answers a call that waits, which is called once; nil: the call does not wait.
func (d *Detached) TakeAnswer(number int) func(tool.Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer := d.answers[number]
	delete(d.answers, number)
	return answer
}

// WaitAgain has the code wait for another turn to bring the results.
func (d *Detached) WaitAgain(s *loop.Suspended) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watchSuspended(s)
}

// DetachedExecution returns a detached execution that has not ended, or nil.
func (m *Manager) DetachedExecution(id string) *Detached {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.detached[id]
}

// How many turns may wait for their users' word, and how many executions for results of clients: each keeps what it is about in memory meanwhile.
const (
	MostWaiting        = 1000
	MostProjectWaiting = 100
)

// callPrefix begins the ids of calls that code made. The id has the execution and the number, so that a result finds its call.
const callPrefix = "call_"

func (d *Detached) callID(number int) string {
	return callPrefix + ident.Body(d.Execution.ID) + "_" + strconv.Itoa(number)
}

// CallOfCode returns the execution that made a call, by the call's id as a turn's answer has it, and the number of the call. A call that a model made itself has another kind of id.
func CallOfCode(id string) (execution string, number int, ok bool) {
	body, said, found := strings.Cut(strings.TrimPrefix(id, callPrefix), "_")
	execution = ident.Execution + "_" + body
	number, err := strconv.Atoi(said)
	return execution, number, found && err == nil && strings.HasPrefix(id, callPrefix) && ident.Valid(ident.Execution, execution)
}

// StartDetached begins an execution that may outlive its turn. The caller hears its events.
func (m *Manager) StartDetached(ctx context.Context, who auth.Principal, e record.Execution, conversation string, req kernel.Request, o *Offer) (*Detached, error) {
	work, end, err := m.BeginWork(ctx)
	if err != nil {
		return nil, err
	}
	s, err := m.AcquireSession(ctx, e.Project, e.Session)
	if err != nil {
		end()
		return nil, err
	}
	e.Detached = true
	d := &Detached{m: m, Conversation: conversation, events: make(chan heardEvent), deaf: make(chan struct{}), ended: make(chan struct{}), answers: map[int]func(tool.Result){},
		work: work, seat: s, seats: make(chan *seat, 1), wanted: make(chan struct{})}
	if m.parks(s) {
		req.Park = d.parkWanted
	}
	events := m.Streams.Open(e.ID)
	if d.Execution, d.Running, err = m.admitExecution(work, e); err != nil {
		events.Close()
		m.releaseSeat(s)
		end()
		return nil, err
	}
	m.mu.Lock()
	m.detached[d.Execution.ID], d.Running.detached = d, d
	m.mu.Unlock()
	emit := func(ctx context.Context, event record.Event) error {
		if err := m.emitEvent(ctx, events, d.Execution.ID, event); err != nil {
			return err
		}
		d.tell(ctx, event)
		return nil
	}
	req.Tools = m.WithApproval(who, d.Execution, o.Tools(d.callClient(emit)))
	m.work.RunInBackground(func(context.Context) {
		defer end()
		defer d.giveBack()
		defer m.hooks.EndWaiting(d)
		defer d.over()
		defer events.Close()
		var done kernel.Done
		_, failed := m.performExecution(work, d.Running, d.Execution, req, emit, func(e *record.Execution, last kernel.Done, _ error) error {
			if why, ok := errors.AsType[*problem.Error](context.Cause(d.Running.ctx)); ok && last.Outcome == kernel.OutcomeInterrupted {
				last.Message, e.Message = why.Message, why.Message
			}
			done = last
			return m.concludeExecution(m.work.Ended, events, e, last)
		})
		if d.failed = failed; failed == nil {
			d.tell(d.Running.ctx, done)
		}
	})
	return d, nil
}

// callClient returns what has the calls of code wait for the client, after emit has told of them.
func (d *Detached) callClient(emit emitter) tool.Calls {
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
func (d *Detached) tell(ctx context.Context, event record.Event) {
	d.telling.Lock()
	defer d.telling.Unlock()
	d.unheard = append(d.unheard, heardEvent{ctx, event})
	d.retell()
}

// retell hands on what no turn has heard yet. The caller holds telling.
func (d *Detached) retell() {
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
			if _, waits := d.WaitsForResults(); waits {
				return // the turn that claims it retells
			}
		}
	}
}

// close says that no turn will hear any more.
func (d *Detached) close() { d.deafen.Do(func() { close(d.deaf) }) }

func (d *Detached) over() {
	d.m.mu.Lock()
	delete(d.m.detached, d.Execution.ID)
	d.m.mu.Unlock()
	close(d.events)
	close(d.ended)
}

// StopExecution ends the code. It does nothing to code that has ended.
func (d *Detached) StopExecution(why error) {
	d.Running.stop(why)
	d.close()
}

// HearEvents yields what the code emits, until it ends or the consumer leaves. The end of ctx interrupts the code. A consumer that leaves behind a kernel.CallsWait has to suspend the code, or stop it.
func (d *Detached) HearEvents(ctx context.Context, yield func(ctx context.Context, event record.Event) bool) error {
	defer context.AfterFunc(ctx, func() { d.Running.stop(context.Cause(ctx)) })()
	for heard := range d.events {
		if yield(heard.ctx, heard.event) {
			continue
		}
		if _, waits := heard.event.(kernel.CallsWait); !waits {
			d.StopExecution(ErrUnheard)
		}
		return nil
	}
	return d.failed
}

// SuspendExecution keeps the code of a turn until another turn brings the results that it waits for. Problems: too_many_waiting.
func (m *Manager) SuspendExecution(d *Detached, turn string, s *loop.Suspended) error {
	total, ofProject, room := 0, 0, s.Size()
	m.mu.Lock()
	for _, other := range m.detached {
		if size, waits := other.WaitsForResults(); waits {
			if total++; other.Execution.Project == d.Execution.Project {
				ofProject++
			}
			room += size
		}
	}
	draining := m.draining
	m.mu.Unlock()
	switch {
	case draining:
		return stoppedWaitingForResults()
	case total >= MostWaiting || ofProject >= MostProjectWaiting || room > mostSuspended:
		return problem.New(problem.TooManyWaiting, "too much code waits for results of its clients").WithHint("bring the results of some of it, or cancel it")
	}
	m.returnSlot(d.Running)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiter = turn
	d.watchSuspended(s)
	return nil
}

// parkAfter is how long code waits in memory for a client before it is parked: one that is quick pays nothing for that.
const parkAfter = time.Second

// watchSuspended keeps code that waits until a turn claims it, but not for ever. The caller holds d.mu.
func (d *Detached) watchSuspended(s *loop.Suspended) {
	patience := d.m.o.Limits.Results
	late := time.AfterFunc(patience, func() {
		d.Running.stop(problem.New(problem.ResultsLate, fmt.Sprintf("nobody brought within %s the results that the code waited for", patience)))
	})
	wanted := d.wanted // which is open
	park := time.AfterFunc(parkAfter, func() { close(wanted) })
	watching := context.AfterFunc(d.Running.ctx, d.close)
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

// WaitsForResults says whether the code waits for a client, and how many bytes its calls have.
func (d *Detached) WaitsForResults() (size int64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.suspended == nil {
		return 0, false
	}
	return d.suspended.Size(), true
}

// ClaimResults gives one turn the code that waits.
func (d *Detached) ClaimResults() (*loop.Suspended, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.suspended
	if s == nil || !d.stopWatch() {
		return nil, false
	}
	d.suspended = nil
	return s, true
}

// StopWaitingCode ends code of a conversation that waits for results which will not come.
func (m *Manager) StopWaitingCode(conversation, why string) {
	m.stopSuspended(func(d *Detached) bool { return d.Conversation == conversation }, why)
}

// StopCodeOfTurn ends the code that waits for the results of a turn's calls, and returns when it has ended.
func (m *Manager) StopCodeOfTurn(ctx context.Context, t record.Turn, why string) {
	stopped := m.stopSuspended(func(d *Detached) bool {
		return slices.ContainsFunc(t.Calls, func(c model.ToolCall) bool { return d.waitsFor(c.ID) })
	}, why)
	for _, d := range stopped {
		select {
		case <-d.ended:
		case <-ctx.Done():
		}
	}
}

func (m *Manager) stopSuspended(which func(*Detached) bool, why string) (stopped []*Detached) {
	for _, d := range m.DetachedWhere(which) {
		if _, ok := d.ClaimResults(); ok {
			d.StopExecution(problem.New(problem.GivenUp, why))
			stopped = append(stopped, d)
		}
	}
	return stopped
}

// waitsFor says whether the code waits for the result of a call.
func (d *Detached) waitsFor(call string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.suspended != nil && slices.ContainsFunc(d.suspended.Calls, func(c kernel.WaitingCall) bool { return c.ID == call })
}

// DetachedWhere returns the detached executions for which is returns true.
func (m *Manager) DetachedWhere(is func(*Detached) bool) (out []*Detached) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.detached {
		if is(d) {
			out = append(out, d)
		}
	}
	return out
}

// DetachedEnded waits until the executions of a turn that outlive it have ended: their records are removed with that of the turn.
func (m *Manager) DetachedEnded(ctx context.Context, turn string) {
	for _, d := range m.DetachedWhere(func(d *Detached) bool { return d.Execution.Turn == turn }) {
		select {
		case <-d.ended:
		case <-ctx.Done():
		}
	}
}
