package turns

import (
	"context"
	"encoding/json"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/llm/loop"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// Turn returns a turn. Needs auth.ConversationsRead.
func (r *Runner) Turn(ctx context.Context, who auth.Principal, id string) (record.Turn, error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return record.Turn{}, err
	}
	return r.findTurn(ctx, who.Project, id)
}

// findTurn returns a turn's record; for a hidden turn that is the one in memory.
func (r *Runner) findTurn(ctx context.Context, project, id string) (record.Turn, error) {
	if t, ok := r.table.record(id); ok && t.Project == project && t.Hidden {
		return t, nil
	}
	if _, err := r.chargeRecall(ctx, project, "", id); err != nil {
		return record.Turn{}, err
	}
	return r.work.Store.Turn(ctx, project, id)
}

// Turns lists the turns of a conversation, all branches. Needs auth.ConversationsRead.
func (r *Runner) Turns(ctx context.Context, who auth.Principal, conversation string, p record.Page) (record.Listing[record.Turn], error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return record.Listing[record.Turn]{}, err
	}
	p, err := p.OrDefault()
	if err != nil {
		return record.Listing[record.Turn]{}, err
	}
	if _, err := r.work.Store.Conversation(ctx, who.Project, conversation); err != nil {
		return record.Listing[record.Turn]{}, err
	}
	if _, err := r.chargeRecall(ctx, who.Project, conversation, ""); err != nil {
		return record.Listing[record.Turn]{}, err
	}
	return r.work.Store.Turns(ctx, who.Project, conversation, p)
}

// Branch returns a turn and those that it goes on from, the oldest first. Needs auth.ConversationsRead.
func (r *Runner) Branch(ctx context.Context, who auth.Principal, turn string) ([]record.Turn, error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return nil, err
	}
	t, err := r.findTurn(ctx, who.Project, turn)
	if err != nil {
		return nil, err
	}
	if _, err := r.chargeRecall(ctx, who.Project, t.Conversation, ""); err != nil {
		return nil, err
	}
	return r.work.Store.Branch(ctx, who.Project, turn)
}

const (
	// largestConversation bounds the records of a conversation that a turn goes on in, in bytes: each turn reads them and sends them to the model.
	largestConversation = 64 << 20
	// copiesOfRecord is how much memory reading a record takes, as a multiple of its length.
	copiesOfRecord = 4
)

// chargeRecall reserves memory for the records of a conversation's turns, or of one turn, and returns their length.
func (r *Runner) chargeRecall(ctx context.Context, project, conversation, turn string) (int64, error) {
	size, err := r.work.Store.TurnsSize(ctx, project, conversation, turn)
	if err != nil {
		return 0, err
	}
	return size, bodybudget.Recall(ctx, copiesOfRecord*size)
}

// CancelTurn stops a turn and the code that it runs, and returns at once. Of a turn that has ended it stops the code that waits for results of the client. Needs auth.ConversationsWrite.
func (r *Runner) CancelTurn(ctx context.Context, who auth.Principal, id string) (record.Turn, error) {
	t, err := record.Turn{}, who.Require(auth.ConversationsWrite)
	if err == nil {
		if running := r.table.running(id); running != nil && running.project == who.Project {
			running.stop(canceledTurn()) // also while the store is away
		}
		t, err = r.findTurn(ctx, who.Project, id)
	}
	switch {
	case err != nil:
	case !t.State.Final():
		err = r.work.RunsElsewhereProblem(ctx, problem.TurnElsewhere, "turn", t.Owner)
	case t.State == record.TurnWaiting:
		r.live.StopCodeOfTurn(ctx, t, "the turn that waited for results was cancelled")
	}
	r.work.WriteAudit(ctx, who, "turn.cancel", id, "", err)
	return t, err
}

func canceledTurn() *problem.Error {
	return problem.New(problem.GivenUp, "the turn was cancelled")
}

// ErrTurnRunning is the problem of a conversation in which a turn has not ended.
func ErrTurnRunning() *problem.Error {
	return problem.New(problem.TurnRunning, "the conversation has a turn that has not ended").
		WithHint("wait for its end, cancel it, or begin another conversation")
}

// DeleteTurn removes a finished turn. Turns that go on from it stay. Needs auth.ConversationsWrite. Problems: turn_running.
func (r *Runner) DeleteTurn(ctx context.Context, who auth.Principal, id string) error {
	err := who.Require(auth.ConversationsWrite)
	var t record.Turn
	if err == nil {
		t, err = r.findTurn(ctx, who.Project, id)
	}
	switch {
	case err != nil:
	case !t.State.Final():
		err = ErrTurnRunning()
	case t.State == record.TurnWaiting:
		r.live.StopCodeOfTurn(ctx, t, "the turn that waited for results was deleted")
	}
	switch {
	case err != nil:
	case t.Hidden:
		err = r.forgetTurn(ctx, t)
	default:
		if err = r.work.Store.DeleteTurn(ctx, who.Project, id); err == nil && t.Tries != nil {
			r.forgetTries(t.Project, t.Conversation, id)
		}
	}
	r.work.WriteAudit(ctx, who, "turn.delete", id, "", err)
	return err
}

// SetForeign replaces Turn.Foreign, which is the surface's own record and leaves no row in the audit log. Needs auth.ConversationsWrite.
func (r *Runner) SetForeign(ctx context.Context, who auth.Principal, turn string, foreign json.RawMessage) error {
	if err := who.Require(auth.ConversationsWrite); err != nil {
		return err
	}
	if r.table.setForeign(who.Project, turn, foreign) {
		return nil
	}
	return r.work.Store.SetForeign(ctx, who.Project, turn, foreign)
}

var _ loop.Executor = (*stepper)(nil)
