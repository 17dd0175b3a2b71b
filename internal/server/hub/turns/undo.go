package turns

import (
	"cmp"
	"context"
	"slices"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/record"
)

// UndoTurns has what follows a turn go on with the variables and files from before an earlier turn of its branch, or from before itself: in a fork of that point, so that
// nothing is lost. Needs auth.ConversationsWrite and auth.SessionsWrite. Problems: turn_running, turn_invalid, point_unknown.
func (r *Runner) UndoTurns(ctx context.Context, who auth.Principal, id, from string) (record.Turn, error) {
	t, err := r.undoTurns(ctx, who, id, from)
	r.work.WriteAudit(ctx, who, "turn.undo", id, "from before "+from, err)
	return t, err
}

func (r *Runner) undoTurns(ctx context.Context, who auth.Principal, id, from string) (record.Turn, error) {
	t, err := r.toMark(ctx, who, id)
	if err == nil {
		err = who.Require(auth.SessionsWrite)
	}
	if err != nil {
		return record.Turn{}, err
	}
	branch, err := r.work.Store.Branch(ctx, who.Project, id)
	if err != nil {
		return record.Turn{}, err
	}
	at := slices.IndexFunc(branch, func(b record.Turn) bool { return b.ID == from })
	if at < 0 {
		return record.Turn{}, problem.New(problem.TurnInvalid, "the turn to return to is not in the branch of this one")
	}
	before := t.UndoneTo()
	if before != nil && before.From == from && r.isUnused(ctx, t, before.Session) {
		return t, nil
	}
	fork, err := r.forkBefore(ctx, who, branch[at])
	if err != nil {
		return record.Turn{}, err
	}
	marked, err := r.markTurnAs(ctx, t, func(m *record.TurnMarks) error {
		m.Undone = &record.Undone{From: from, Session: fork.ID, At: r.work.Now().UTC()}
		return nil
	})
	switch {
	case err != nil:
		r.deleteUnused(ctx, who, t, fork.ID)
	case before != nil:
		r.deleteUnused(ctx, who, t, before.Session)
	}
	return marked, err
}

// forkBefore makes a session with the variables and files from before a turn, which knows what it does not have.
func (r *Runner) forkBefore(ctx context.Context, who auth.Principal, first record.Turn) (record.Session, error) {
	if first.Session == "" || first.Origin != nil {
		return record.Session{}, problem.New(problem.PointUnknown, "no state from before that turn is kept")
	}
	c, err := r.work.Store.Conversation(ctx, who.Project, first.Conversation)
	if err != nil {
		return record.Session{}, err
	}
	fork, err := r.live.ForkSession(ctx, who, first.Session, live.NewSession{Point: first.ID, Name: c.Title, Undo: true}) // a list of sessions finds no other name for it
	if err != nil {
		return record.Session{}, err
	}
	if err := r.noteUndone(ctx, first.Session, fork); err != nil {
		r.deleteUnused(ctx, who, first, fork.ID)
		return record.Session{}, err
	}
	return fork, nil
}

// isUnused says whether a session that undoing turns made is there and as it was made: no code ran in it, no turn is for it, and nobody has named it.
func (r *Runner) isUnused(ctx context.Context, marked record.Turn, session string) bool {
	row, err := r.work.Store.Session(ctx, marked.Project, session)
	if err != nil || row.State != record.SessionPaused || row.Origin == nil || !row.Origin.Undo || !row.Used.Equal(row.Created) {
		return false
	}
	ran, err := r.work.Store.Executions(ctx, marked.Project, record.ExecutionFilter{Session: session}, record.Page{Limit: 1})
	if err != nil || len(ran.Items) > 0 {
		return false
	}
	turns, err := r.work.Store.Turns(ctx, marked.Project, marked.Conversation, record.Page{Limit: 100})
	return err == nil && !slices.ContainsFunc(turns.Items, func(t record.Turn) bool { return t.Session == session })
}

// deleteUnused deletes a session that undoing turns made, where it is as it was made and the caller may delete sessions. Another undo makes it again.
func (r *Runner) deleteUnused(ctx context.Context, who auth.Principal, marked record.Turn, session string) {
	if who.Require(auth.SessionsWrite) != nil || !r.isUnused(ctx, marked, session) {
		return
	}
	if err := r.live.DeleteSession(ctx, who, session); err != nil {
		r.work.Log.WarnContext(ctx, "a session that an undo made and nobody used was not deleted", "session", session, "error", err)
	}
}

// sessionAfter returns the session that a turn after parent goes on with when none is named: the conversation's, or where turns were undone and the last turn since ran in that
// session, the one with the state from before them. Then marked is the turn that says so.
func (r *Runner) sessionAfter(ctx context.Context, c record.Conversation, parent record.Turn) (id string, marked record.Turn, err error) {
	if u := parent.UndoneTo(); u != nil {
		return u.Session, parent, nil
	}
	if parent.ID == "" || parent.Session == c.Session {
		return c.Session, record.Turn{}, nil
	}
	branch, err := r.work.Store.Branch(ctx, parent.Project, parent.ID)
	if err != nil {
		return "", record.Turn{}, err
	}
	last := ""
	for _, t := range slices.Backward(branch) {
		if u := t.UndoneTo(); u != nil {
			if last == "" || last == u.Session {
				return u.Session, t, nil
			}
			break
		}
		last = cmp.Or(last, t.Session)
	}
	return c.Session, record.Turn{}, nil
}

// replaceUndone makes a session in place of the deleted one with the state from before undone turns: with that state, or an empty one where that is not kept any more.
func (r *Runner) replaceUndone(ctx context.Context, p *plan, n record.NewTurn, marked record.Turn) error {
	if n.Network != nil || n.Root {
		return sessionThere()
	}
	who := p.who
	who.Scopes = nil // a caller with the right to the turn may make what the turn needs
	row, err := r.remakeUndone(ctx, who, marked)
	notice := "The session of this conversation was deleted; the turn has a new one, with the state from before the undone turns, made again."
	if problem.Has(err, problem.PointUnknown) {
		notice = "The session of this conversation was deleted; the turn has an empty one: the state from before the undone turns is not kept any more."
		row, err = r.live.CreateSession(live.AsWork(ctx), who, live.NewSession{})
	}
	if err != nil {
		return err
	}
	p.notices = append(p.notices, notice)
	p.spec.Fresh, p.spec.Used = true, row.Executions > 0
	p.turn.Session, p.session = row.ID, row.ID
	_, err = r.markTurnAs(ctx, marked, func(m *record.TurnMarks) error {
		if m.Undone != nil {
			m.Undone.Session = row.ID
		}
		return nil
	})
	return err
}

// remakeUndone makes the session with the state from before undone turns again. A problem with code point_unknown says that nothing has that state any more.
func (r *Runner) remakeUndone(ctx context.Context, who auth.Principal, marked record.Turn) (record.Session, error) {
	from, err := r.findTurn(ctx, marked.Project, marked.UndoneTo().From)
	var row record.Session
	if err == nil {
		row, err = r.forkBefore(ctx, who, from)
	}
	if problem.Has(err, problem.TurnNotFound) || problem.Has(err, problem.SessionNotFound) {
		err = errStateGone()
	}
	return row, err
}

// noteUndone has the next code, and the model, hear what the fork of a session's point does not have.
func (r *Runner) noteUndone(ctx context.Context, session string, fork record.Session) error {
	origin, err := r.work.Store.Session(ctx, fork.Project, session)
	if err != nil {
		return err
	}
	origin.Rollback = fork.Rollback
	lost, err := r.live.FindRollback(ctx, origin, fork.Saved, live.ReturnedBack)
	if err != nil || len(lost.Executions) == 0 {
		return err
	}
	return r.live.NoteRollback(ctx, fork.Project, fork.ID, lost)
}

// RedoTurns takes UndoTurns back: what follows the turn goes on with the variables and files after it. Needs auth.ConversationsWrite.
func (r *Runner) RedoTurns(ctx context.Context, who auth.Principal, id string) (record.Turn, error) {
	t, err := r.toMark(ctx, who, id)
	before := t.UndoneTo()
	if err == nil {
		t, err = r.markTurnAs(ctx, t, func(m *record.TurnMarks) error {
			m.Undone = nil
			return nil
		})
	}
	if err == nil && before != nil {
		r.deleteUnused(ctx, who, t, before.Session)
	}
	r.work.WriteAudit(ctx, who, "turn.redo", id, "", err)
	return t, err
}
