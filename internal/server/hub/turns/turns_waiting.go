package turns

import (
	"context"
	"slices"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/record"
)

// endWaiting ends the turn that waits for results of code which has ended without them.
func (r *Runner) endWaiting(d *live.Detached) {
	turn := d.WaitingTurn()
	if turn == "" {
		return
	}
	if running := r.table.running(turn); running != nil {
		<-running.ended // it is about to be recorded as waiting
	}
	if err := r.work.WriteUntilStored(r.work.Ended, func(ctx context.Context) error { return r.failWaiting(ctx, d.Execution.Project, turn, d.Execution.ID) }); err != nil {
		r.work.Log.ErrorContext(r.work.Ended, "a turn is still recorded as waiting, and its code has ended", "turn", turn, "execution", d.Execution.ID, "error", err)
		return
	}
	if t, err := r.work.Store.Turn(r.work.Ended, d.Execution.Project, turn); err == nil {
		r.askLater(t.Project, t.Conversation)
	}
}

// failWaiting records that a turn waits no more, because an execution has ended.
func (r *Runner) failWaiting(ctx context.Context, project, turn, execution string) error {
	e, err := r.work.Store.Execution(ctx, project, execution)
	if err != nil {
		return unlessMissing(err)
	}
	var t record.Turn
	_ = t.MarkFailed(r.callsGone(ctx, project, execution)) // sets the problem
	if e.State == record.ExecutionState(kernel.OutcomeInterrupted) {
		t.State = record.TurnCanceled
	}
	return r.work.Store.EndWaiting(ctx, project, turn, t.State, t.Problem)
}

// mostWaiters is how many turns of a conversation, from its last one, are looked at for the one that waits for lost code.
const mostWaiters = 100

// loseWaiting ends the turn that waited for results of an execution which was lost with its server. A turn that others go on from has got its results.
func (r *Runner) loseWaiting(ctx context.Context, e record.Execution) error {
	first, err := r.work.Store.Turn(ctx, e.Project, e.Turn)
	if err != nil {
		return unlessMissing(err)
	}
	turns, err := r.work.Store.Turns(ctx, e.Project, first.Conversation, record.Page{Limit: mostWaiters})
	if err != nil {
		return unlessMissing(err)
	}
	isOf := func(c model.ToolCall) bool {
		execution, _, ok := live.CallOfCode(c.ID)
		return ok && execution == e.ID
	}
	for _, t := range turns.Items {
		continued := slices.ContainsFunc(turns.Items, func(other record.Turn) bool { return other.Parent == t.ID })
		if t.State == record.TurnWaiting && !continued && slices.ContainsFunc(t.Calls, isOf) {
			return r.failWaiting(ctx, e.Project, t.ID, e.ID)
		}
	}
	return nil
}

// unlessMissing returns an error but that of a record that is not there.
func unlessMissing(err error) error {
	if problem.Is(err, problem.NotFound) {
		return nil
	}
	return err
}
