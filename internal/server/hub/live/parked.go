package live

import (
	"context"
	"errors"
	"iter"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/hub/record"
	"cove/internal/sessions/ondisk"
)

// Code that waits for its client is parked after a moment: it lets its kernel go and gives its session back, which can then be paused and saved as any that nobody uses. The execution stays first in its kernel's line, also when the
// session is loaded again, so that other code waits behind it. The turn that brings the results has it go on. When it is stopped and its session is not in memory, it ends at once, and its code is interrupted when the session is loaded.

// Parker is a Live some of whose sessions can park executions.
type Parker interface {
	ondisk.Parker
	Parks() bool
}

// parks says whether code in a session that is held can be parked.
func (m *Manager) parks(s *seat) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := s.Live.(Parker)
	return ok && !s.attached && m.CanSave() && p.Parks()
}

// parkWanted returns a channel that is closed when the code is to be parked.
func (d *Detached) parkWanted() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wanted
}

// codeEvents has an execution's code run and yields what it emits, all of its parts. The caller does not leave before the end.
func (m *Manager) codeEvents(t *liveExecution, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		m.mu.Lock()
		live := m.seats[t.session].Live
		m.mu.Unlock()
		events := live.Execute(t.ctx, req)
		for events != nil {
			var parked *kernel.Parked
			for event, err := range events {
				if p, ok := event.(kernel.Parked); ok {
					parked = &p
				} else if !yield(event, err) {
					return
				}
			}
			events = nil
			if parked != nil {
				var end kernel.Done
				if events, end = m.awaitResults(t, *parked); events == nil {
					yield(end, nil)
				}
			}
		}
	}
}

// awaitResults gives the session back until parked code goes on or is stopped. It returns what the code emits then, or nil and its end.
func (m *Manager) awaitResults(t *liveExecution, p kernel.Parked) (iter.Seq2[kernel.Event, error], kernel.Done) {
	d := t.detached
	if !m.parkExecution(t, p) {
		return d.goOn(p), kernel.Done{}
	}
	var s *seat
	var lost error
	select {
	case s = <-d.seats:
	case <-t.ctx.Done():
		m.mu.Lock()
		stopped := t.parked != nil
		t.parked, lost = nil, t.lost
		m.mu.Unlock()
		switch {
		case !stopped:
			s = <-d.seats // a turn had it go on in this moment
		case lost == nil:
			s = m.acquireLoaded(d.work, t)
		}
	}
	if s == nil {
		p.End()
		return nil, stoppedAway(p, lost)
	}
	d.seat = s
	t.meter.begin(s, s.Live)
	return d.goOn(p), kernel.Done{}
}

// goOn has code go on in the session that is held.
func (d *Detached) goOn(p kernel.Parked) iter.Seq2[kernel.Event, error] {
	return d.seat.Live.(Parker).Resume(d.Running.ctx, p)
}

// parkExecution gives the session of parked code back, unless a turn hears the code again already, or it is to be stopped, or it has said so much that it has to wait as it would with a turn that does not listen.
func (m *Manager) parkExecution(t *liveExecution, p kernel.Parked) bool {
	d := t.detached
	much := p.Unheard() > mostUnheardBytes
	if much {
		d.mu.Lock()
		d.wanted = make(chan struct{})
		d.mu.Unlock()
	}
	t.meter.pause()
	m.mu.Lock()
	_, waits := d.WaitsForResults()
	s, parks := d.seat, waits && !much && t.ctx.Err() == nil
	if parks {
		t.parked, d.seat = &p, nil
		s.users--
		s.used = m.work.Now()
		m.noteUnused(s)
	}
	m.mu.Unlock()
	if !parks {
		t.meter.begin(s, s.Live)
	}
	return parks
}

// What is kept of parked code for the turn that will hear it: events, but for files, and bytes of messages that the kernel had sent.
const (
	mostUnheard      = 4
	mostUnheardBytes = 1 << 20
	mostUnheardText  = 64 << 10 // of one event
)

// mayKeep says whether an event is small enough to be kept.
func mayKeep(event record.Event, kept int) bool {
	switch e := event.(type) {
	case kernel.File:
		return true
	case kernel.Stream:
		return kept <= mostUnheard && len(e.Data) <= mostUnheardText
	case kernel.ToolCall, kernel.CallsWait:
		return kept <= mostUnheard
	}
	return false
}

// UnparkExecution hands its session to code that a turn has claimed, if the code is parked. The caller holds the session, and ctx says so.
func (m *Manager) UnparkExecution(ctx context.Context, d *Detached) error {
	m.mu.Lock()
	parked := d.Running.parked != nil
	m.mu.Unlock()
	if !parked {
		return nil // it has its session, or goes on by itself
	}
	s, err := m.AcquireSession(ctx, d.Execution.Project, d.Execution.Session)
	if err != nil {
		return err
	}
	m.mu.Lock()
	parked = d.Running.parked != nil
	d.Running.parked = nil
	m.mu.Unlock()
	if !parked { // it was stopped meanwhile
		m.releaseSeat(s)
		return nil
	}
	d.seats <- s
	return nil
}

// HearAgain hands on what parked code emitted that no turn has heard.
func (d *Detached) HearAgain() {
	d.telling.Lock()
	defer d.telling.Unlock()
	d.retell()
}

// giveBack releases the session, unless the code was parked at the end.
func (d *Detached) giveBack() {
	if d.seat != nil {
		d.m.releaseSeat(d.seat)
	}
}

// acquireLoaded acquires the session of an execution if it is in memory; nil: it is not, or was deleted.
func (m *Manager) acquireLoaded(ctx context.Context, t *liveExecution) *seat {
	s, err := m.awaitSeat(ctx, t.project, t.session, func() (*seat, <-chan struct{}, error) { return m.tryAcquireSeat(ctx, t.project, t.session, nil, false) })
	if err != nil {
		return nil
	}
	return s
}

// parkedIn returns the executions that wait in a session's kernels without holding it, by the kernels' names.
func (m *Manager) parkedIn(session string) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all map[string]string
	for _, t := range m.executions {
		if t.session == session && t.parked != nil && t.lost == nil {
			if all == nil {
				all = map[string]string{}
			}
			all[t.kernel] = t.parked.ID()
		}
	}
	return all
}

// readmit puts the parked executions of a session that is about to be loaded into the lines of their kernels. The caller holds mu.
func (m *Manager) readmit(s *seat) {
	for _, t := range m.executions {
		if t.session == s.id && t.parked != nil {
			s.lines[t.kernel] = &line{executions: []*liveExecution{t}} // it was the first there, and no other is parked
		}
	}
}

// LoseParked ends code that waits in a session which has gone back to a state without it. why is errReturned, or says how the session was lost.
func (m *Manager) LoseParked(session string, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.executions {
		if t.session == session && t.parked != nil {
			t.lost = why
			t.stop(why)
		}
	}
}

// errReturned is the reason of code that waited in a session which a client has returned to an earlier state.
var errReturned = problem.New(problem.GivenUp, "the session was returned to an earlier point while the code waited")

func lostWaiting(why string) error {
	return problem.New(problem.SessionLost, "the session was lost while the code waited: "+why)
}

// stoppedAway is the end of parked code that was stopped without being told, because its session is not in memory, or has lost it.
func stoppedAway(p kernel.Parked, lost error) kernel.Done {
	end := p.Gone(nil)
	switch {
	case lost == nil:
		end.Lost, end.Message = kernel.LostNothing, "the code was interrupted while it waited"
	case !errors.Is(lost, errReturned):
		end.Outcome, end.Lost, end.Message = kernel.OutcomeSandboxDied, kernel.LostSession, problem.Of(lost).Message
	}
	return end
}

// stopParkedIn stops the code that waits in a kernel of a session without holding it.
func (m *Manager) stopParkedIn(session, name string, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.executions {
		if t.session == session && t.kernel == name && t.parked != nil {
			t.stop(why)
		}
	}
}
