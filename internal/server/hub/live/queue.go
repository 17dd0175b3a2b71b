package live

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cove/internal/python/kernel"
	"cove/internal/server/hub/meter"
)

// line is the executions of one kernel, in the order in which they came. The first one runs, or waits for a slot. Guarded by Hub.mu.
type line struct{ executions []*liveExecution }

// liveExecution is an execution that has not ended.
type liveExecution struct {
	id, session, kernel, project, key string

	of    string // the turn that it is a step of; "" for none
	apart bool   // Execution.Detached

	unheard bool // NewExecution.Unheard

	front  chan struct{} // closed when the execution is the first of its line
	placed atomic.Bool   // the execution has a slot
	left   atomic.Bool   // it has ended, and takes no slot any more
	slot   sync.Mutex    // held while a slot is waited for after a person was
	ran    bool          // its code has ended, which is still to be recorded; guarded by Hub.mu
	ctx    context.Context
	stop   context.CancelCauseFunc
	came   time.Time
	over   func(error) // ends the execution's span
	meter  *metering

	// Of an execution that may outlive its turn; guarded by Hub.mu.
	detached *Detached
	parked   *kernel.Parked // its code waits, and does not hold its session
	lost     error          // why the session has gone back to a state without the code that waited
}

// byKey is the key of Hub.flying under which the executions of its API key are counted.
func (t *liveExecution) byKey() string { return t.project + " " + t.key }

// join puts an execution at the end of its kernel's line; waiting is how many may wait there. It returns false when the line is full. The caller holds Hub.mu.
func (s *seat) join(t *liveExecution, waiting int) bool {
	l := s.lines[t.kernel]
	if l == nil {
		l = &line{}
		s.lines[t.kernel] = l
	}
	if len(l.executions) > waiting {
		return false
	}
	l.executions = append(l.executions, t)
	if len(l.executions) == 1 {
		close(t.front)
	}
	return true
}

// busy says whether code of a kernel runs or waits. A client that has heard of the end of its code finds the kernel idle. The caller holds Hub.mu.
func (s *seat) busy(kernel string) bool {
	l := s.lines[kernel]
	return l != nil && slices.ContainsFunc(l.executions, func(t *liveExecution) bool { return !t.ran })
}

// leave takes an execution out of its line. The caller holds Hub.mu.
func (s *seat) leave(t *liveExecution) {
	l := s.lines[t.kernel]
	if l == nil {
		return // the seat holds the place of a session that is not in memory
	}
	at := slices.Index(l.executions, t)
	if at < 0 {
		return
	}
	l.executions = slices.Delete(l.executions, at, at+1)
	switch {
	case len(l.executions) == 0:
		delete(s.lines, t.kernel)
	case at == 0:
		close(l.executions[0].front)
	}
}

// slots bound how many executions a server runs at once. Projects with waiting executions get slots one after the other, so that a project with many of them
// waits no less than one with few; within a project the order is that of arrival.
type slots struct {
	all     int // 0: no limit
	mu      sync.Mutex
	used    int
	turns   []string // projects with waiting executions, the next one first
	waiting map[string][]chan struct{}
}

func newSlots(n int) *slots { return &slots{all: n, waiting: map[string][]chan struct{}{}} }

// take waits for a slot, which give returns.
func (s *slots) take(ctx context.Context, project string) error {
	s.mu.Lock()
	if !meter.IsFull(s.used, s.all) {
		s.used++
		s.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	if len(s.waiting[project]) == 0 {
		s.turns = append(s.turns, project)
	}
	s.waiting[project] = append(s.waiting[project], mine)
	s.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.waiting[project], mine)
	if at < 0 {
		s.pass() // the slot was given at this very moment
		return context.Cause(ctx)
	}
	s.waiting[project] = slices.Delete(s.waiting[project], at, at+1)
	if len(s.waiting[project]) == 0 {
		delete(s.waiting, project)
		s.turns = slices.DeleteFunc(s.turns, func(p string) bool { return p == project })
	}
	return context.Cause(ctx)
}

// try takes a slot if one is free and no execution waits for it.
func (s *slots) try() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if meter.IsFull(s.used, s.all) {
		return false
	}
	s.used++
	return true
}

// taken returns how many slots are in use.
func (s *slots) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass()
}

// pass gives a slot to the execution that is next. The caller holds mu.
func (s *slots) pass() {
	if len(s.turns) == 0 {
		s.used--
		return
	}
	project := s.turns[0]
	s.turns = s.turns[1:]
	next := s.waiting[project][0]
	if s.waiting[project] = s.waiting[project][1:]; len(s.waiting[project]) > 0 {
		s.turns = append(s.turns, project)
	} else {
		delete(s.waiting, project)
	}
	close(next)
}
