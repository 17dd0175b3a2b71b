package hub

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// waits are what of an execution waits for a person to say something: calls of tools, or requests for input. W is what is said.
type waits[W any] struct {
	h         *Hub
	execution string
	project   string

	mu  sync.Mutex
	all map[int]*wait[W] // by number, from before anybody hears of them until they do not wait any more
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

func newWaits[W any](h *Hub, e Execution) *waits[W] {
	return &waits[W]{h: h, execution: e.ID, project: e.Project, all: map[int]*wait[W]{}}
}

// add notes one that waits, before a client can hear of it.
func (a *waits[W]) add(number int) {
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

// over notes that one does not wait any more.
func (a *waits[W]) over(number int) {
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
	defer a.over(number)
	a.mu.Lock()
	said := a.all[number].said
	a.mu.Unlock()
	a.h.mu.Lock()
	t, draining := a.h.executions[a.execution], a.h.draining
	a.h.mu.Unlock()
	if draining {
		return word, errWaitStopped
	}
	if t != nil {
		a.h.rest(t)
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
		if err := a.h.goOnOnce(ctx, t); err != nil {
			return word, err
		}
	}
	return s.word, s.none
}

// goOnOnce waits for a slot for an execution that waited, unless something else of it that waited has done so.
func (h *Hub) goOnOnce(ctx context.Context, t *liveExecution) error {
	t.slot.Lock()
	defer t.slot.Unlock()
	if t.placed.Load() {
		return nil
	}
	return h.goOn(ctx, t)
}

// stop ends all waits, when the hub drains.
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

// stopAsking ends what waits for people, when the hub drains.
func (h *Hub) stopAsking() {
	h.mu.Lock()
	calls, inputs := slices.Collect(maps.Values(h.asked)), slices.Collect(maps.Values(h.inputs))
	h.mu.Unlock()
	for _, a := range calls {
		a.stop()
	}
	for _, a := range inputs {
		a.stop()
	}
}
