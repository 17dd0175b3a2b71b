package live

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// waitTable has what of the executions of a hub waits for a person to say something: calls of tools, or requests for input. W is what is said.
type waitTable[W any] struct {
	m *Manager

	mu  sync.Mutex
	all map[string]*waits[W] // by execution, from before a client can hear of the first one until the execution ends
}

// newWaits are those of an execution, of which there are none yet.
func (t *waitTable[W]) newWaits(e record.Execution) *waits[W] {
	return &waits[W]{table: t, execution: e.ID, all: map[int]*wait[W]{}}
}

// ofExecution returns those of an execution, or nil.
func (t *waitTable[W]) ofExecution(execution string) *waits[W] {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[execution]
}

func (t *waitTable[W]) register(a *waits[W]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all[a.execution] = a
}

// dropExecution forgets those of an execution, which has ended.
func (t *waitTable[W]) dropExecution(execution string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, execution)
}

// stopAll ends all waits, when the hub drains.
func (t *waitTable[W]) stopAll() {
	t.mu.Lock()
	all := slices.Collect(maps.Values(t.all))
	t.mu.Unlock()
	for _, a := range all {
		a.stop()
	}
}

// say gives what a person says to what waits for it. Where that does not wait, or not any more, the problem is late, or one with code execution_elsewhere.
func (t *waitTable[W]) say(ctx context.Context, who auth.Principal, execution string, number int, s saidTo[W], late *problem.Error) (record.Execution, error) {
	e, err := t.m.work.Store.Execution(ctx, who.Project, execution)
	if err != nil {
		return record.Execution{}, err
	}
	if a := t.ofExecution(execution); a != nil {
		if said, ok := a.claim(number); ok {
			said <- s
			return e, nil
		}
	}
	if !e.State.Final() {
		if err := t.m.work.RunsElsewhereProblem(ctx, problem.ExecutionElsewhere, "execution", e.Owner); err != nil {
			return record.Execution{}, err
		}
	}
	return record.Execution{}, late
}

// waits are those of one execution.
type waits[W any] struct {
	table     *waitTable[W]
	execution string

	mu  sync.Mutex
	all map[int]*wait[W] // by number, from before a client can hear of them until they do not wait any more
}

// wait is one of them. It may be decided before anybody waits for that.
type wait[W any] struct {
	decided bool           // somebody has the right to say something, and says it; guarded by waits.mu
	said    chan saidTo[W] // holds one
}

// saidTo is what a person said, or why there will be nothing.
type saidTo[W any] struct {
	word W
	none error
}

// add notes one that waits, before a client can hear of it.
func (a *waits[W]) add(number int) {
	a.table.register(a)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all[number] = &wait[W]{said: make(chan saidTo[W], 1)}
}

// claim gives one caller the right to say something.
func (a *waits[W]) claim(number int) (chan<- saidTo[W], bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.all[number]
	if w == nil || w.decided {
		return nil, false
	}
	w.decided = true
	return w.said, true
}

// remove notes that one does not wait any more.
func (a *waits[W]) remove(number int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, number)
}

// Why a person said nothing.
var (
	errSaidLate    = errors.New("nobody said anything in time")
	errCodeEnded   = errors.New("the code has ended")
	errWaitStopped = errors.New("the server stopped")
)

// await waits, for so long at most, until a person says something. Others may run code in the execution's place meanwhile. The errors are those above, and of a wait for a place.
func (a *waits[W]) await(ctx context.Context, number int, patience time.Duration) (word W, err error) {
	defer a.remove(number)
	a.mu.Lock()
	said := a.all[number].said
	a.mu.Unlock()
	h := a.table.m
	h.mu.Lock()
	t, draining := h.executions[a.execution], h.draining
	h.mu.Unlock()
	if draining {
		return word, errWaitStopped
	}
	if t != nil {
		h.returnSlot(t)
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	var s saidTo[W]
	select {
	case s = <-said:
	case <-late.C:
		if _, mine := a.claim(number); !mine { // somebody has said it in this moment, and was told that it counts
			s = <-said
			break
		}
		s.none = errSaidLate
	case <-ctx.Done():
		return word, errCodeEnded
	}
	if t != nil {
		if err := h.goOnOnce(ctx, t); err != nil {
			return word, err
		}
	}
	return s.word, s.none
}

// goOnOnce waits for a slot for an execution that waited, unless something else of it that waited has done so.
func (m *Manager) goOnOnce(ctx context.Context, t *liveExecution) error {
	t.slot.Lock()
	defer t.slot.Unlock()
	if t.placed.Load() {
		return nil
	}
	return m.ContinueAfterWait(ctx, t)
}

func (a *waits[W]) stop() {
	a.mu.Lock()
	numbers := slices.Collect(maps.Keys(a.all))
	a.mu.Unlock()
	for _, number := range numbers {
		if said, ok := a.claim(number); ok {
			said <- saidTo[W]{none: errWaitStopped}
		}
	}
}
