package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// mostReruns bounds the steps of a turn that can have been run again.
const mostReruns = 1000

// Outdated says of each turn of a branch, the oldest first, whether a step of it ran again after its answer was written, wherever that was, or one of an earlier turn in its session.
func Outdated(branch []Turn) []bool {
	out, last := make([]bool, len(branch)), map[string]time.Time{} // by session
	for i, t := range branch {
		if t.Marks != nil {
			for _, r := range t.Marks.Reruns {
				out[i] = out[i] || r.At.After(t.Finished)
				if session := cmp.Or(r.Session, t.Session); r.At.After(last[session]) {
					last[session] = r.At
				}
			}
		}
		out[i] = out[i] || last[t.Session].After(t.Finished)
	}
	return out
}

// NoteRerun notes the execution with which a person ran a step of a turn again; "": the step is shown as it was. Needs auth.ConversationsWrite.
func (h *Hub) NoteRerun(ctx context.Context, who auth.Principal, id string, step int, execution string) (Turn, error) {
	t, err := h.noteRerun(ctx, who, id, step, execution)
	h.work.WriteAudit(ctx, who, "turn.rerun", id, execution, err)
	return t, err
}

func (h *Hub) noteRerun(ctx context.Context, who auth.Principal, id string, step int, execution string) (Turn, error) {
	t, err := h.toMark(ctx, who, id)
	rerun := Rerun{Step: step, Execution: execution, At: h.work.Now().UTC()}
	if err == nil && execution != "" {
		rerun.Session, err = h.sessionOfRerun(ctx, who, execution)
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
			m.Reruns = append(m.Reruns, rerun)
			slices.SortFunc(m.Reruns, func(a, b Rerun) int { return a.Step - b.Step })
		}
		return nil
	})
}

// sessionOfRerun returns the session of an execution that a person asked for. It refuses those of turns: their code is the model's, and is a step already.
func (h *Hub) sessionOfRerun(ctx context.Context, who auth.Principal, execution string) (string, error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return "", err
	}
	e, err := h.work.Store.Execution(ctx, who.Project, execution)
	if err == nil && e.Turn != "" {
		err = problem.New(problem.TurnInvalid, "the execution is a step of a turn itself").WithHint("run the code with an execution of its own, and note that one")
	}
	return e.Session, err
}

// hasStep says whether a turn ran that step. One that was stopped or lost did not count its steps: its executions say it.
func (h *Hub) hasStep(ctx context.Context, t Turn, step int) error {
	if step >= 1 && step <= min(t.Steps, mostReruns) {
		return nil
	}
	ran, err := h.work.Store.Executions(ctx, t.Project, ExecutionFilter{Turn: t.ID}, Page{Limit: 100, Oldest: true})
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
	switch {
	case err != nil:
		return Turn{}, err
	case t.Hidden || t.IsTry():
		return Turn{}, problem.New(problem.TurnNotFound, "no conversation has this turn")
	case !t.State.Final():
		return Turn{}, ErrTurnRunning()
	}
	return t, nil
}

func (h *Hub) markTurnAs(ctx context.Context, t Turn, change func(*TurnMarks) error) (Turn, error) {
	marks, err := h.work.Store.MarkTurn(ctx, t.Project, t.ID, change)
	if err != nil {
		return Turn{}, err
	}
	t.Marks = marks
	return t, nil
}
