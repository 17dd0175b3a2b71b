package hub

import (
	"context"
)

// AskDue is what Run does at its start and every five seconds.
func (h *Hub) AskDue(ctx context.Context) { h.askDue(ctx) }

// UntakeState is what a turn with tries does first, when it is asked again.
func (h *Hub) UntakeState(ctx context.Context, t Turn) error {
	return h.untakeState(ctx, &plan{turn: t, tries: &Tries{Again: t.ID}})
}
