package hub

import (
	"context"

	"cove/internal/interpreter"
	"cove/internal/kernel"
	"cove/internal/problem"
	"cove/internal/transcript"
)

// recoverTurns ends the turns that a killed server ran, and removes what there is of hidden ones. Their executions have ended before.
func (h *Hub) recoverTurns(ctx context.Context) error {
	for before := ""; ; {
		unfinished, err := h.o.Store.AbandonedTurns(ctx, recoverBatch)
		if err != nil || len(unfinished) == 0 {
			return err
		}
		if unfinished[0].ID == before { // others may have ended it, but then it would not be here again
			return problem.New(problem.RecoverStuck, "turns that a former server left cannot be ended")
		}
		before = unfinished[0].ID
		for _, t := range unfinished {
			if t.Hidden {
				err = h.forgetTurn(ctx, t)
			} else {
				_, err = h.loseTurn(ctx, t)
			}
			if err != nil && !problem.Is(err, problem.NotFound) {
				return err
			}
		}
	}
}

func (h *Hub) loseTurn(ctx context.Context, t Turn) (first bool, err error) {
	p := t.fail(problem.New(problem.TurnLost, "cove ended while the turn ran").WithHint("ask again"))
	body, err := transcript.Failure(p)
	if err != nil {
		return false, err
	}
	last, err := h.lostEnd(ctx, t.ID, "", 0, body)
	if err != nil {
		return false, err
	}
	steps, err := h.lostSteps(ctx, t)
	if err != nil {
		return false, err
	}
	end := last[len(last)-1]
	last = append(last[:len(last)-1], steps...)
	last = append(last, end)
	for n := 1; n < len(last); n++ {
		last[n].Seq, last[n].At = last[n-1].Seq+1, end.At
	}
	t.State, t.Finished, t.Events = TurnLost, end.At, last[len(last)-1].Seq
	if first, err = h.o.Store.FinishTurn(ctx, t, last); first && err == nil {
		h.lost.Add(1)
		h.turnSeen(ctx, t)
	}
	return first, err
}

// lostSteps are the ends of a turn's executions whose own end was not emitted, or not stored, each behind a gap. They have no Seq yet.
func (h *Hub) lostSteps(ctx context.Context, t Turn) ([]StoredEvent, error) {
	executions, err := h.o.Store.Executions(ctx, t.Project, ExecutionFilter{Turn: t.ID}, Page{Limit: 100, Oldest: true})
	if err != nil {
		return nil, err
	}
	var out []StoredEvent
	for _, e := range executions.Items {
		if e.State != ExecutionLost {
			if told, err := h.toldEnd(ctx, t, e); err != nil {
				return nil, err
			} else if told {
				continue
			}
		}
		body, err := transcript.TurnEvent(interpreter.Output{Step: e.Step, Event: kernel.Done{
			Outcome: kernel.Outcome(e.State), ExitCode: e.ExitCode, Lost: e.Lost, Message: e.Message,
		}})
		if err != nil {
			return nil, err
		}
		out = append(out, StoredEvent{Stream: t.ID, Execution: e.ID, Step: e.Step, Body: gapBody}, StoredEvent{Stream: t.ID, Execution: e.ID, Step: e.Step, Body: body})
	}
	return out, nil
}

// toldEnd says whether a turn's stream has the end of one of its executions: the record of that is written before.
func (h *Hub) toldEnd(ctx context.Context, t Turn, e Execution) (bool, error) {
	for after := int64(0); ; {
		events, err := h.o.Store.Events(ctx, t.ID, e.ID, after, batchEvents)
		if err != nil {
			return false, err
		}
		for _, event := range events {
			if after = event.Seq; transcript.TypeOf(transcript.OutputOf(event.Body)) == "done" {
				return true, nil
			}
		}
		if len(events) < batchEvents {
			return false, nil
		}
	}
}
