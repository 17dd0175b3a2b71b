package hub

import (
	"cmp"
	"context"
	"slices"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub/live"
)

// UndoTurns has what follows a turn go on with the variables and files from before an earlier turn of its branch, or from before itself: in a fork of that point, so that
// nothing is lost. Needs auth.ConversationsWrite and auth.SessionsWrite. Problems: turn_running, turn_invalid, point_unknown.
func (h *Hub) UndoTurns(ctx context.Context, who auth.Principal, id, from string) (Turn, error) {
	t, err := h.undoTurns(ctx, who, id, from)
	h.work.WriteAudit(ctx, who, "turn.undo", id, "from before "+from, err)
	return t, err
}

func (h *Hub) undoTurns(ctx context.Context, who auth.Principal, id, from string) (Turn, error) {
	t, err := h.toMark(ctx, who, id)
	if err == nil {
		err = who.Require(auth.SessionsWrite)
	}
	if err != nil {
		return Turn{}, err
	}
	branch, err := h.work.Store.Branch(ctx, who.Project, id)
	if err != nil {
		return Turn{}, err
	}
	at := slices.IndexFunc(branch, func(b Turn) bool { return b.ID == from })
	if at < 0 {
		return Turn{}, problem.New(problem.TurnInvalid, "the turn to return to is not in the branch of this one")
	}
	before := t.UndoneTo()
	if before != nil && before.From == from && h.isUnused(ctx, t, before.Session) {
		return t, nil
	}
	fork, err := h.forkBefore(ctx, who, branch[at])
	if err != nil {
		return Turn{}, err
	}
	marked, err := h.markTurnAs(ctx, t, func(m *TurnMarks) error {
		m.Undone = &Undone{From: from, Session: fork.ID, At: h.work.Now().UTC()}
		return nil
	})
	switch {
	case err != nil:
		h.deleteUnused(ctx, who, t, fork.ID)
	case before != nil:
		h.deleteUnused(ctx, who, t, before.Session)
	}
	return marked, err
}

// forkBefore makes a session with the variables and files from before a turn, which knows what it does not have.
func (h *Hub) forkBefore(ctx context.Context, who auth.Principal, first Turn) (Session, error) {
	if first.Session == "" || first.Origin != nil {
		return Session{}, problem.New(problem.PointUnknown, "no state from before that turn is kept")
	}
	c, err := h.work.Store.Conversation(ctx, who.Project, first.Conversation)
	if err != nil {
		return Session{}, err
	}
	fork, err := h.ForkSession(ctx, who, first.Session, NewSession{Point: first.ID, Name: c.Title, Undo: true}) // a list of sessions finds no other name for it
	if err != nil {
		return Session{}, err
	}
	if err := h.noteUndone(ctx, first.Session, fork); err != nil {
		h.deleteUnused(ctx, who, first, fork.ID)
		return Session{}, err
	}
	return fork, nil
}

// isUnused says whether a session that undoing turns made is there and as it was made: no code ran in it, no turn is for it, and nobody has named it.
func (h *Hub) isUnused(ctx context.Context, marked Turn, session string) bool {
	row, err := h.work.Store.Session(ctx, marked.Project, session)
	if err != nil || row.State != SessionPaused || row.Origin == nil || !row.Origin.Undo || !row.Used.Equal(row.Created) {
		return false
	}
	ran, err := h.work.Store.Executions(ctx, marked.Project, ExecutionFilter{Session: session}, Page{Limit: 1})
	if err != nil || len(ran.Items) > 0 {
		return false
	}
	turns, err := h.work.Store.Turns(ctx, marked.Project, marked.Conversation, Page{Limit: 100})
	return err == nil && !slices.ContainsFunc(turns.Items, func(t Turn) bool { return t.Session == session })
}

// deleteUnused deletes a session that undoing turns made, where it is as it was made and the caller may delete sessions. Another undo makes it again.
func (h *Hub) deleteUnused(ctx context.Context, who auth.Principal, marked Turn, session string) {
	if who.Require(auth.SessionsWrite) != nil || !h.isUnused(ctx, marked, session) {
		return
	}
	if err := h.DeleteSession(ctx, who, session); err != nil {
		h.work.Log.WarnContext(ctx, "a session that an undo made and nobody used was not deleted", "session", session, "error", err)
	}
}

// sessionAfter returns the session that a turn after parent goes on with when none is named: the conversation's, or where turns were undone and the last turn since ran in that
// session, the one with the state from before them. Then marked is the turn that says so.
func (h *Hub) sessionAfter(ctx context.Context, c Conversation, parent Turn) (id string, marked Turn, err error) {
	if u := parent.UndoneTo(); u != nil {
		return u.Session, parent, nil
	}
	if parent.ID == "" || parent.Session == c.Session {
		return c.Session, Turn{}, nil
	}
	branch, err := h.work.Store.Branch(ctx, parent.Project, parent.ID)
	if err != nil {
		return "", Turn{}, err
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
	return c.Session, Turn{}, nil
}

// replaceUndone makes a session in place of the deleted one with the state from before undone turns: with that state, or an empty one where that is not kept any more.
func (h *Hub) replaceUndone(ctx context.Context, p *plan, n NewTurn, marked Turn) error {
	if n.Network != nil || n.Root {
		return sessionThere()
	}
	who := p.who
	who.Scopes = nil // a caller with the right to the turn may make what the turn needs
	row, err := h.remakeUndone(ctx, who, marked)
	notice := "The session of this conversation was deleted; the turn has a new one, with the state from before the undone turns, made again."
	if problem.Has(err, problem.PointUnknown) {
		notice = "The session of this conversation was deleted; the turn has an empty one: the state from before the undone turns is not kept any more."
		row, err = h.CreateSession(live.AsWork(ctx), who, NewSession{})
	}
	if err != nil {
		return err
	}
	p.notices = append(p.notices, notice)
	p.spec.Fresh, p.spec.Used = true, row.Executions > 0
	p.turn.Session, p.session = row.ID, row.ID
	_, err = h.markTurnAs(ctx, marked, func(m *TurnMarks) error {
		if m.Undone != nil {
			m.Undone.Session = row.ID
		}
		return nil
	})
	return err
}

// remakeUndone makes the session with the state from before undone turns again. A problem with code point_unknown says that nothing has that state any more.
func (h *Hub) remakeUndone(ctx context.Context, who auth.Principal, marked Turn) (Session, error) {
	from, err := h.turn(ctx, marked.Project, marked.UndoneTo().From)
	var row Session
	if err == nil {
		row, err = h.forkBefore(ctx, who, from)
	}
	if problem.Has(err, problem.TurnNotFound) || problem.Has(err, problem.SessionNotFound) {
		err = errStateGone()
	}
	return row, err
}

// noteUndone has the next code, and the model, hear what the fork of a session's point does not have.
func (h *Hub) noteUndone(ctx context.Context, session string, fork Session) error {
	origin, err := h.work.Store.Session(ctx, fork.Project, session)
	if err != nil {
		return err
	}
	origin.Rollback = fork.Rollback
	lost, err := h.FindRollback(ctx, origin, fork.Saved, live.ReturnedBack)
	if err != nil || len(lost.Executions) == 0 {
		return err
	}
	return h.NoteRollback(ctx, fork.Project, fork.ID, lost)
}

// RedoTurns takes UndoTurns back: what follows the turn goes on with the variables and files after it. Needs auth.ConversationsWrite.
func (h *Hub) RedoTurns(ctx context.Context, who auth.Principal, id string) (Turn, error) {
	t, err := h.toMark(ctx, who, id)
	before := t.UndoneTo()
	if err == nil {
		t, err = h.markTurnAs(ctx, t, func(m *TurnMarks) error {
			m.Undone = nil
			return nil
		})
	}
	if err == nil && before != nil {
		h.deleteUnused(ctx, who, t, before.Session)
	}
	h.work.WriteAudit(ctx, who, "turn.redo", id, "", err)
	return t, err
}
