package hub

import (
	"context"
	"slices"

	"cove/internal/auth"
	"cove/internal/problem"
)

// UndoTurns has what follows a turn go on with the variables and files from before an earlier turn of its branch, or from before itself: in a fork of that point, so that
// nothing is lost. Needs auth.ConversationsWrite and auth.SessionsWrite. Problems: turn_running, turn_invalid, point_unknown.
func (h *Hub) UndoTurns(ctx context.Context, who auth.Principal, id, from string) (Turn, error) {
	t, err := h.undoTurns(ctx, who, id, from)
	h.audit(ctx, who, "turn.undo", id, "from before "+from, err)
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
	branch, err := h.o.Store.Branch(ctx, who.Project, id)
	if err != nil {
		return Turn{}, err
	}
	at := slices.IndexFunc(branch, func(b Turn) bool { return b.ID == from })
	if at < 0 {
		return Turn{}, problem.New(problem.TurnInvalid, "the turn to return to is not in the branch of this one")
	}
	before := t.UndoneTo()
	if before != nil && before.From == from && h.isThere(ctx, who, before.Session) {
		return t, nil
	}
	fork, err := h.forkBefore(ctx, who, branch[at])
	if err != nil {
		return Turn{}, err
	}
	marked, err := h.markTurnAs(ctx, t, func(m *TurnMarks) error {
		m.Undone = &Undone{From: from, Session: fork.ID, At: h.now().UTC()}
		return nil
	})
	if err != nil {
		h.deleteUnused(ctx, who.Project, fork.ID)
		return Turn{}, err
	}
	if before != nil {
		h.deleteUnused(ctx, who.Project, before.Session)
	}
	return marked, nil
}

// forkBefore makes a session with the variables and files from before a turn, which knows what it does not have.
func (h *Hub) forkBefore(ctx context.Context, who auth.Principal, first Turn) (Session, error) {
	if first.Session == "" || first.Origin != nil {
		return Session{}, problem.New(problem.PointUnknown, "no state from before that turn is kept")
	}
	c, err := h.o.Store.Conversation(ctx, who.Project, first.Conversation)
	if err != nil {
		return Session{}, err
	}
	fork, err := h.ForkSession(ctx, who, first.Session, NewSession{Point: first.ID, Name: c.Title}) // a list of sessions finds no other name for it
	if err != nil {
		return Session{}, err
	}
	if err := h.noteUndone(ctx, first.Session, fork); err != nil {
		h.deleteUnused(ctx, who.Project, fork.ID)
		return Session{}, err
	}
	return fork, nil
}

// isThere says whether a session can be used.
func (h *Hub) isThere(ctx context.Context, who auth.Principal, session string) bool {
	_, err := h.row(ctx, who, session)
	return err == nil
}

// deleteUnused deletes a session that an undo made, unless somebody has used it since.
func (h *Hub) deleteUnused(ctx context.Context, project, session string) {
	row, err := h.o.Store.Session(ctx, project, session)
	if err != nil || row.State != SessionPaused || !row.Used.Equal(row.Created) {
		return
	}
	ran, err := h.o.Store.Executions(ctx, project, ExecutionFilter{Session: session}, Page{Limit: 1})
	if err == nil && len(ran.Items) == 0 {
		err = h.deleteSession(ctx, project, session)
	}
	if err != nil {
		h.log.WarnContext(ctx, "a session that an undo made and nobody used was not deleted", "session", session, "error", err)
	}
}

// sessionAfter returns the session that a turn after parent goes on with when none is named: the conversation's, or where turns were undone and what came since ran in that
// session, the one with the state from before them. Then marked is the turn that says so.
func (h *Hub) sessionAfter(ctx context.Context, c Conversation, parent Turn) (id string, marked Turn, err error) {
	if u := parent.UndoneTo(); u != nil {
		return u.Session, parent, nil
	}
	if parent.ID == "" || parent.Session == c.Session {
		return c.Session, Turn{}, nil
	}
	branch, err := h.o.Store.Branch(ctx, parent.Project, parent.ID)
	if err != nil {
		return "", Turn{}, err
	}
	for i, t := range slices.Backward(branch) {
		u := t.UndoneTo()
		if u == nil {
			continue
		}
		if slices.ContainsFunc(branch[i+1:], func(t Turn) bool { return t.Session != "" && t.Session != u.Session }) {
			break
		}
		return u.Session, t, nil
	}
	return c.Session, Turn{}, nil
}

// replaceUndone makes a session in place of the deleted one with the state from before undone turns: with that state where it is still kept, else an empty one.
func (h *Hub) replaceUndone(ctx context.Context, p *plan, n NewTurn, marked Turn) error {
	who := p.who
	who.Scopes = nil // a caller with the right to the turn may make what the turn needs
	what := "the state from before the undone turns, made again"
	var row Session
	from, err := h.turn(ctx, marked.Project, marked.UndoneTo().From)
	if err == nil {
		row, err = h.forkBefore(ctx, who, from)
	}
	if err != nil {
		what = "no variables and files: those from before the undone turns are not kept any more"
		row, err = h.CreateSession(context.WithValue(ctx, workKey{}, true), who, NewSession{Network: n.Network, Root: n.Root})
	}
	if err != nil {
		return err
	}
	p.notices = append(p.notices, "The session of this conversation was deleted; the turn has a new one, with "+what+".")
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

// noteUndone has the next code, and the model, hear what the fork of a session's point does not have.
func (h *Hub) noteUndone(ctx context.Context, session string, fork Session) error {
	origin, err := h.o.Store.Session(ctx, fork.Project, session)
	if err != nil {
		return err
	}
	origin.Rollback = fork.Rollback
	lost, err := h.rollback(ctx, origin, fork.Saved, returnedBack)
	if err != nil || len(lost.Executions) == 0 {
		return err
	}
	return h.noteRollback(ctx, fork.Project, fork.ID, lost)
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
		h.deleteUnused(ctx, who.Project, before.Session)
	}
	h.audit(ctx, who, "turn.redo", id, "", err)
	return t, err
}
