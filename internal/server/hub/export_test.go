package hub

import (
	"context"
	"iter"
	"time"

	"cove/internal/code/redact"
	"cove/internal/machine/process"
)

// SaveUnsaved is what Run does every second.
func (h *Hub) SaveUnsaved(ctx context.Context) { h.saveDue(ctx, h.due()) }

// HurrySaves has sessions saved again before it is their time.
func (h *Hub) HurrySaves() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.seats {
		s.saveFrom = time.Time{}
	}
}

// InMemory is how many sessions are.
func (h *Hub) InMemory() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.seats {
		if s.live != nil {
			n++
		}
	}
	return n
}

// LookAgain has the hub look at the memory anew.
func (h *Hub) LookAgain() { h.gauge.forget() }

// PauseIdle is what Run does every five seconds.
func (h *Hub) PauseIdle(ctx context.Context) {
	h.chargeAll(ctx)
	h.pauseIdle(ctx)
}

// RecoverAbandoned is what Run does every five seconds.
func (h *Hub) RecoverAbandoned(ctx context.Context) error { return h.recoverAbandoned(ctx) }

// Sweep is what Run does every minute.
func (h *Hub) Sweep(ctx context.Context) { h.sweep(ctx) }

// Masked yields the output of a process with masks.
func Masked(ctx context.Context, kinds redact.Kinds, from int64, follow func(context.Context, int64) iter.Seq2[process.Event, error]) iter.Seq2[process.Event, error] {
	return masked(ctx, kinds, from, nil, follow)
}

// MaskedAtTerminal is Masked where somebody types; the function that it returns notes what.
func MaskedAtTerminal(ctx context.Context, kinds redact.Kinds, follow func(context.Context, int64) iter.Seq2[process.Event, error]) (all iter.Seq2[process.Event, error], typed func(string)) {
	e := &echo{}
	return masked(ctx, kinds, 0, e, follow), func(keys string) { e.expect([]byte(keys)) }
}

// AskDue is what Run does at its start and every five seconds.
func (h *Hub) AskDue(ctx context.Context) { h.askDue(ctx) }

// UntakeState is what a turn with tries does first, when it is asked again.
func (h *Hub) UntakeState(ctx context.Context, t Turn) error {
	return h.untakeState(ctx, &plan{turn: t, tries: &Tries{Again: t.ID}})
}
