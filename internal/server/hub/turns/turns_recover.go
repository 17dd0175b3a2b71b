package turns

import (
	"context"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/record"
	"cove/internal/server/stream"
	"cove/internal/server/transcript"
)

// recoverTurns ends the turns of killed servers, and removes their hidden turns. recoverExecutions has ended the turns' executions before.
func (r *Runner) recoverTurns(ctx context.Context) error {
	for before := ""; ; {
		unfinished, err := r.work.Store.AbandonedTurns(ctx, live.RecoverBatch)
		if err != nil || len(unfinished) == 0 {
			return err
		}
		if unfinished[0].ID == before { // another process may have ended it, but then it is not listed again
			return problem.New(problem.RecoverStuck, "unfinished turns of a former server cannot be ended")
		}
		before = unfinished[0].ID
		for _, t := range unfinished {
			switch {
			case t.Hidden:
				err = r.forgetTurn(ctx, t)
			case t.Tries != nil && t.Tries.Request != nil:
				err = r.recoverTries(ctx, t)
			default:
				_, err = r.loseTurn(ctx, t)
			}
			if err != nil && !problem.Is(err, problem.NotFound) {
				return err
			}
		}
	}
}

func (r *Runner) loseTurn(ctx context.Context, t record.Turn) (first bool, err error) {
	why := "cove ended while the turn ran"
	if t.Waiting != nil {
		why, t.Waiting = "cove ended while the turn waited for its user's word about code, which did not run", nil
	}
	p := t.MarkFailed(problem.New(problem.TurnLost, why).WithHint("ask again"))
	body, err := transcript.Failure(p)
	if err != nil {
		return false, err
	}
	steps, err := r.lostSteps(ctx, t)
	if err != nil {
		return false, err
	}
	last, err := r.live.Streams.Ending(ctx, t.ID, append(steps, stream.Event{Body: body})...)
	if err != nil {
		return false, err
	}
	end := last[len(last)-1]
	t.State, t.Finished, t.Events = record.TurnLost, end.At, end.Seq
	if first, err = r.work.Store.FinishTurn(ctx, t, last); first && err == nil {
		r.live.Lost.Add(1)
		r.turnSeen(ctx, t)
	}
	return first, err
}

// lostSteps returns the missing ends of a turn's executions, those that were not emitted or not stored, each after a gap. They have no Seq yet.
func (r *Runner) lostSteps(ctx context.Context, t record.Turn) ([]stream.Event, error) {
	executions, err := r.work.Store.Executions(ctx, t.Project, record.ExecutionFilter{Turn: t.ID}, record.Page{Limit: 100, Oldest: true})
	if err != nil {
		return nil, err
	}
	var out []stream.Event
	for _, e := range executions.Items {
		e.Detached = false // what of it is in the turn's own stream counts
		if e.State != record.ExecutionLost {
			if told, err := r.toldEnd(ctx, e); err != nil {
				return nil, err
			} else if told {
				continue
			}
		}
		body, err := transcript.TurnEvent(loop.Output{Step: e.Step, Event: kernel.Done{
			Outcome: kernel.Outcome(e.State), ExitCode: e.ExitCode, Lost: e.Lost, Message: e.Message,
		}})
		if err != nil {
			return nil, err
		}
		from := stream.Origin{Part: e.ID, Step: e.Step}
		out = append(out, stream.Gap(from), stream.Event{Origin: from, Body: body})
	}
	return out, nil
}

// toldEnd says whether a turn's stream has the end of one of its executions. The execution's record is written before that event.
func (r *Runner) toldEnd(ctx context.Context, e record.Execution) (bool, error) {
	for n, err := range r.live.Streams.Recorded(ctx, r.live.ExecutionEvents(e)) {
		if err != nil {
			return false, err
		}
		if transcript.TypeOf(transcript.OutputOf(n.Event)) == "done" {
			return true, nil
		}
	}
	return false, nil
}
