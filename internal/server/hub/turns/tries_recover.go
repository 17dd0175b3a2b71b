package turns

import (
	"context"
	"encoding/json"
	"errors"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/server/hub/record"
)

// triesOf returns the tries of a turn.
func (r *Runner) triesOf(ctx context.Context, project, conversation, turn string) (tries []record.Turn, err error) {
	for page := (record.Page{Limit: 100}); ; {
		turns, err := r.work.Store.Turns(ctx, project, conversation, page)
		if err != nil {
			return nil, err
		}
		for _, t := range turns.Items {
			if t.Tries != nil && t.Tries.Of == turn {
				tries = append(tries, t)
			}
		}
		if page.After = turns.Next; page.After == "" {
			return tries, nil
		}
	}
}

// earlierTries returns by their places the tries of a turn that asked in a server that died, as far as they had ended and their state is kept. What the others left is removed.
func (r *Runner) earlierTries(ctx context.Context, p *plan) (map[int]*try, error) {
	if p.tries.Again == "" {
		return nil, nil
	}
	turns, err := r.triesOf(ctx, p.turn.Project, p.turn.Conversation, p.tries.Again)
	if err != nil {
		return nil, err
	}
	kept := map[int]*try{}
	for _, t := range turns {
		row, err := r.work.Store.Session(ctx, t.Project, t.Session)
		if err != nil && problem.Of(err).Kind != problem.NotFound {
			return nil, err
		}
		if err == nil && t.State == record.TurnCompleted && t.Tries.Saved && row.State == record.SessionPaused && row.Rollback == nil {
			kept[t.Tries.Place] = &try{place: t.Tries.Place, turn: t, answer: loop.Answer{Text: t.Answer, Reason: loop.AnswerReason(t.Reason), Steps: t.Steps, Messages: t.Messages, Usage: t.Usage}}
		} else {
			r.dropTries(ctx, t.Project, t)
		}
	}
	return kept, nil
}

// loseTries ends a turn with tries of a process that died and asks no more, and removes what the tries left.
func (r *Runner) loseTries(ctx context.Context, t record.Turn) error {
	tries, err := r.triesOf(ctx, t.Project, t.Conversation, t.ID)
	if err != nil {
		return err
	}
	r.dropTries(ctx, t.Project, tries...)
	t.Tries.Request = nil
	_, err = r.loseTurn(ctx, t)
	return err
}

// askTriesAgain puts a turn with tries that a dead server has not ended back in the queue of its conversation, before the others.
func (r *Runner) askTriesAgain(ctx context.Context, t record.Turn) error {
	asked := *t.Tries.Request
	n, now := asked.Turn, r.work.Now()
	tries := *n.Tries
	tries.Again = t.ID
	n.Tries, n.Parent, n.First, n.Session, n.Network, n.Root, n.Approval = &tries, t.Parent, t.Parent == "", t.Session, nil, false, record.ApprovalNever
	q := record.Question{ID: ident.New(ident.Question), Project: t.Project, User: t.User, Key: t.Key, Scopes: asked.Scopes, Conversation: t.Conversation, Turn: n, Files: t.Files, Created: now, Changed: now}
	queue, err := r.work.Store.Questions(ctx, t.Project, t.Conversation)
	if err != nil {
		return err
	}
	if len(queue) > 0 {
		q.Place = queue[0].Place - 1
	}
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	q.Size = int64(len(text))
	return r.work.Store.UndoTurn(ctx, t, q)
}

// recoverTries has a turn with tries, of a process that died, asked again, or ends it.
func (r *Runner) recoverTries(ctx context.Context, t record.Turn) error {
	again, err := r.asksTriesAgain(ctx, t)
	switch {
	case err != nil:
		return err
	case again:
		return r.askTriesAgain(ctx, t)
	}
	return r.loseTries(ctx, t)
}

// asksTriesAgain says whether a turn with tries, of a process that died, is asked again: by the server that has its session, or by that one later, when a command finds it.
func (r *Runner) asksTriesAgain(ctx context.Context, t record.Turn) (bool, error) {
	row, err := r.work.Store.Session(ctx, t.Project, t.Session)
	if problem.Is(err, problem.NotFound) {
		return false, nil
	}
	return (row.Home == r.work.HomeID()) == r.asksQuestions(), err
}

// triesOfQuestion returns the id of the turn that a question in a queue was, if tries of that are kept for it.
func (r *Runner) triesOfQuestion(ctx context.Context, project, conversation, id string) (turn string, err error) {
	list, err := r.work.Store.Questions(ctx, project, conversation)
	for _, q := range list {
		if q.ID == id && q.Turn.Tries != nil {
			turn = q.Turn.Tries.Again
		}
	}
	return turn, err
}

// forgetTries removes, later, the tries of a turn ("": none) with their sessions.
func (r *Runner) forgetTries(project, conversation, turn string) {
	if turn == "" {
		return
	}
	r.work.RunInBackground(func(ctx context.Context) {
		tries, err := r.triesOf(ctx, project, conversation, turn)
		for _, t := range tries {
			r.dropTries(ctx, project, t)
			err = errors.Join(err, r.work.Store.DeleteTurn(ctx, project, t.ID))
		}
		if err != nil {
			r.work.Log.WarnContext(ctx, "tries of a question that is gone were not removed", "turn", turn, "error", err)
		}
	})
}

// UntakeState is what a turn with tries does first, when it is asked again.
func (r *Runner) UntakeState(ctx context.Context, t record.Turn) error {
	return r.untakeState(ctx, &plan{turn: t, tries: &record.Tries{Again: t.ID}})
}
