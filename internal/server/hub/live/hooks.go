package live

import (
	"context"

	"cove/internal/server/hub/record"
)

// TurnHooks is what sessions and executions need of the turns that use them, and that know them: the calls against the direction of the imports.
type TurnHooks interface {
	// EndWaiting ends the turn that waits for results of code which has ended without them.
	EndWaiting(d *Detached)
	// LoseWaiting ends the turn that waited for results of an execution which was lost with its server.
	LoseWaiting(ctx context.Context, e record.Execution) error
	// RecoverTurns ends the turns of dead owners, after their executions and before their sessions.
	RecoverTurns(ctx context.Context) error
	// AskEvery asks the questions of queues that are due, until ctx or the hub ends.
	AskEvery(ctx context.Context)
	// StopWaiting ends the turns that wait for their user's word, at the beginning of a drain.
	StopWaiting()
	// CountRunning returns how many turns run.
	CountRunning() int
}
