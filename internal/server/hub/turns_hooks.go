package hub

import (
	"context"

	"cove/internal/server/hub/live"
)

// turnHooks is what package live calls of turns.
type turnHooks struct{ h *Hub }

// EndWaiting implements live.TurnHooks.
func (t turnHooks) EndWaiting(d *live.Detached) { t.h.endWaiting(d) }

// LoseWaiting implements live.TurnHooks.
func (t turnHooks) LoseWaiting(ctx context.Context, e Execution) error {
	return t.h.loseWaiting(ctx, e)
}

// RecoverTurns implements live.TurnHooks.
func (t turnHooks) RecoverTurns(ctx context.Context) error { return t.h.recoverTurns(ctx) }

// AskEvery implements live.TurnHooks.
func (t turnHooks) AskEvery(ctx context.Context) { t.h.askEvery(ctx) }

// StopWaiting implements live.TurnHooks.
func (t turnHooks) StopWaiting() {
	for _, l := range t.h.turns.waiting("") {
		l.stop(stoppedWaiting())
	}
}

// CountRunning implements live.TurnHooks.
func (t turnHooks) CountRunning() int { return t.h.turns.count() }
