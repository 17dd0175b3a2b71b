package hub

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cove/internal/auth"
	"cove/internal/problem"
)

// TurnMarks are what people did after a turn that changes how it is to be read.
type TurnMarks struct {
	Undone *Undone `json:"undone,omitempty"`
	Reruns []Rerun `json:"reruns,omitempty"` // of its steps, in their order
}

// Undone says of a turn that what follows it goes on with the variables and files from before an earlier one, or from before itself.
type Undone struct {
	From    string    `json:"from"`    // the turn from before which they are
	Session string    `json:"session"` // that has them
	At      time.Time `json:"at"`
}

// Rerun is a step that a person ran again, with other code or as it was, which the answer does not know of.
type Rerun struct {
	Step      int       `json:"step"`
	Execution string    `json:"execution"`
	At        time.Time `json:"at"`
}

// mostReruns bounds the steps of a turn that can have been run again.
const mostReruns = 1000

// UndoneTo returns what follows a turn goes on with, or nil.
func (t Turn) UndoneTo() *Undone {
	if t.Marks == nil {
		return nil
	}
	return t.Marks.Undone
}

// Outdated says of each turn of a branch, the oldest first, whether a step of it or of an earlier one ran again after its answer was written.
func Outdated(branch []Turn) []bool {
	out, last := make([]bool, len(branch)), time.Time{}
	for i, t := range branch {
		if t.Marks != nil {
			for _, r := range t.Marks.Reruns {
				if r.At.After(last) {
					last = r.At
				}
			}
		}
		out[i] = last.After(t.Finished)
	}
	return out
}

// UndoTurns has what follows a turn go on with the variables and files from before an earlier turn of its branch, or from before itself: in a fork of that point, so that
// nothing is lost. Needs auth.ConversationsWrite and auth.SessionsWrite. Problems: turn_running, turn_invalid, point_unknown.
func (h *Hub) UndoTurns(ctx context.Context, who auth.Principal, id, from string) (Turn, error) {
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
	first := branch[at]
	if first.Session == "" || first.Origin != nil {
		return Turn{}, problem.New(problem.PointUnknown, "no state from before that turn is kept")
	}
	fork, err := h.ForkSession(ctx, who, first.Session, NewSession{Point: from})
	if err == nil {
		err = h.noteUndone(ctx, first.Session, fork)
	}
	if err != nil {
		return Turn{}, err
	}
	return h.markTurnAs(ctx, t, func(m *TurnMarks) error {
		m.Undone = &Undone{From: from, Session: fork.ID, At: h.now().UTC()}
		return nil
	})
}

// noteUndone has the next code, and the model, hear what the fork of a session's point does not have.
func (h *Hub) noteUndone(ctx context.Context, session string, fork Session) error {
	origin, err := h.o.Store.Session(ctx, fork.Project, session)
	if err != nil {
		return err
	}
	origin.Rollback = nil
	lost, err := h.rollback(ctx, origin, fork.Saved, returnedBack)
	if err != nil || len(lost.Executions) == 0 {
		return err
	}
	return h.noteRollback(ctx, fork.Project, fork.ID, lost)
}

// RedoTurns takes UndoTurns back: what follows the turn goes on with the variables and files after it. Needs auth.ConversationsWrite.
func (h *Hub) RedoTurns(ctx context.Context, who auth.Principal, id string) (Turn, error) {
	t, err := h.toMark(ctx, who, id)
	if err != nil {
		return Turn{}, err
	}
	return h.markTurnAs(ctx, t, func(m *TurnMarks) error {
		m.Undone = nil
		return nil
	})
}

// NoteRerun notes the execution with which a person ran a step of a turn again; "": the step is shown as it was. Needs auth.ConversationsWrite.
func (h *Hub) NoteRerun(ctx context.Context, who auth.Principal, id string, step int, execution string) (Turn, error) {
	t, err := h.toMark(ctx, who, id)
	if err == nil && execution != "" {
		_, err = h.o.Store.Execution(ctx, who.Project, execution)
	}
	if err == nil {
		err = h.hasStep(ctx, t, step)
	}
	if err != nil {
		return Turn{}, err
	}
	return h.markTurnAs(ctx, t, func(m *TurnMarks) error {
		m.Reruns = slices.DeleteFunc(m.Reruns, func(r Rerun) bool { return r.Step == step })
		if execution != "" {
			m.Reruns = append(m.Reruns, Rerun{Step: step, Execution: execution, At: h.now().UTC()})
			slices.SortFunc(m.Reruns, func(a, b Rerun) int { return a.Step - b.Step })
		}
		return nil
	})
}

// hasStep says whether a turn ran that step. One that was stopped or lost did not count its steps: its executions say it.
func (h *Hub) hasStep(ctx context.Context, t Turn, step int) error {
	if step >= 1 && step <= min(t.Steps, mostReruns) {
		return nil
	}
	ran, err := h.o.Store.Executions(ctx, t.Project, ExecutionFilter{Turn: t.ID}, Page{Limit: 100, Oldest: true})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(ran.Items, func(e Execution) bool { return e.Step == step }) {
		return problem.New(problem.ExecutionNotFound, fmt.Sprintf("the turn has no step %d", step))
	}
	return nil
}

// toMark returns a turn that has ended and is kept.
func (h *Hub) toMark(ctx context.Context, who auth.Principal, id string) (Turn, error) {
	if err := who.Require(auth.ConversationsWrite); err != nil {
		return Turn{}, err
	}
	t, err := h.turn(ctx, who.Project, id)
	if err == nil && !t.State.Final() {
		err = ErrTurnRunning()
	}
	return t, err
}

func (h *Hub) markTurnAs(ctx context.Context, t Turn, change func(*TurnMarks) error) (Turn, error) {
	marks, err := h.o.Store.MarkTurn(ctx, t.Project, t.ID, change)
	if err != nil {
		return Turn{}, err
	}
	t.Marks = marks
	return t, nil
}
