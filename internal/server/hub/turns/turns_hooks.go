package turns

import (
	"context"

	"cove/internal/server/hub/live"
	"cove/internal/server/hub/record"
)

// turnHooks is what package live calls of turns.
type turnHooks struct{ r *Runner }

// EndWaiting implements live.TurnHooks.
func (t turnHooks) EndWaiting(d *live.Detached) { t.r.endWaiting(d) }

// LoseWaiting implements live.TurnHooks.
func (t turnHooks) LoseWaiting(ctx context.Context, e record.Execution) error {
	return t.r.loseWaiting(ctx, e)
}

// RecoverTurns implements live.TurnHooks.
func (t turnHooks) RecoverTurns(ctx context.Context) error { return t.r.recoverTurns(ctx) }

// AskEvery implements live.TurnHooks.
func (t turnHooks) AskEvery(ctx context.Context) { t.r.askEvery(ctx) }

// StopWaiting implements live.TurnHooks.
func (t turnHooks) StopWaiting() {
	for _, l := range t.r.table.waiting("") {
		l.stop(stoppedWaiting())
	}
}

// CountRunning implements live.TurnHooks.
func (t turnHooks) CountRunning() int { return t.r.table.count() }
