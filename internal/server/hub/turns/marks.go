package turns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// mostReruns bounds the steps of a turn that can have been run again.
const mostReruns = 1000

// Outdated says of each turn of a branch, the oldest first, whether a step of it ran again after its answer was written, wherever that was, or one of an earlier turn in its session.
func Outdated(branch []record.Turn) []bool {
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
func (r *Runner) NoteRerun(ctx context.Context, who auth.Principal, id string, step int, execution string) (record.Turn, error) {
	t, err := r.noteRerun(ctx, who, id, step, execution)
	r.work.WriteAudit(ctx, who, "turn.rerun", id, execution, err)
	return t, err
}

func (r *Runner) noteRerun(ctx context.Context, who auth.Principal, id string, step int, execution string) (record.Turn, error) {
	t, err := r.toMark(ctx, who, id)
	rerun := record.Rerun{Step: step, Execution: execution, At: r.work.Now().UTC()}
	if err == nil && execution != "" {
		rerun.Session, err = r.sessionOfRerun(ctx, who, execution)
	}
	if err == nil {
		err = r.hasStep(ctx, t, step)
	}
	if err != nil {
		return record.Turn{}, err
	}
	return r.markTurnAs(ctx, t, func(m *record.TurnMarks) error {
		m.Reruns = slices.DeleteFunc(m.Reruns, func(r record.Rerun) bool { return r.Step == step })
		if execution != "" {
			m.Reruns = append(m.Reruns, rerun)
			slices.SortFunc(m.Reruns, func(a, b record.Rerun) int { return a.Step - b.Step })
		}
		return nil
	})
}

// sessionOfRerun returns the session of an execution that a person asked for. It refuses those of turns: their code is the model's, and is a step already.
func (r *Runner) sessionOfRerun(ctx context.Context, who auth.Principal, execution string) (string, error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return "", err
	}
	e, err := r.work.Store.Execution(ctx, who.Project, execution)
	if err == nil && e.Turn != "" {
		err = problem.New(problem.TurnInvalid, "the execution is a step of a turn itself").WithHint("run the code with an execution of its own, and note that one")
	}
	return e.Session, err
}

// hasStep says whether a turn ran that step. One that was stopped or lost did not count its steps: its executions say it.
func (r *Runner) hasStep(ctx context.Context, t record.Turn, step int) error {
	if step >= 1 && step <= min(t.Steps, mostReruns) {
		return nil
	}
	ran, err := r.work.Store.Executions(ctx, t.Project, record.ExecutionFilter{Turn: t.ID}, record.Page{Limit: 100, Oldest: true})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(ran.Items, func(e record.Execution) bool { return e.Step == step }) {
		return problem.New(problem.ExecutionNotFound, fmt.Sprintf("the turn has no step %d", step))
	}
	return nil
}

// toMark returns a turn that has ended and is kept.
func (r *Runner) toMark(ctx context.Context, who auth.Principal, id string) (record.Turn, error) {
	if err := who.Require(auth.ConversationsWrite); err != nil {
		return record.Turn{}, err
	}
	t, err := r.findTurn(ctx, who.Project, id)
	switch {
	case err != nil:
		return record.Turn{}, err
	case t.Hidden || t.IsTry():
		return record.Turn{}, problem.New(problem.TurnNotFound, "no conversation has this turn")
	case !t.State.Final():
		return record.Turn{}, ErrTurnRunning()
	}
	return t, nil
}

func (r *Runner) markTurnAs(ctx context.Context, t record.Turn, change func(*record.TurnMarks) error) (record.Turn, error) {
	marks, err := r.work.Store.MarkTurn(ctx, t.Project, t.ID, change)
	if err != nil {
		return record.Turn{}, err
	}
	t.Marks = marks
	return t, nil
}
