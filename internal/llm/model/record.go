package model

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"sync"

	"cove/internal/core/problem"
)

// Record returns m with every complete turn written to w as a recording for Replay. A turn with calls is written when
// the next request tells what became of them, so one that nothing follows is left out. It serves one conversation.
func Record(m Model, w io.Writer) Model { return &recorder{Model: m, w: w} }

type recorder struct {
	Model
	mu      sync.Mutex
	w       io.Writer
	pending *recordedTurn
}

func (r *recorder) Stream(ctx context.Context, req Request) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		if err := r.settle(req); err != nil {
			yield(nil, err)
			return
		}
		var turn recordedTurn
		for part, err := range r.Model.Stream(ctx, req) {
			if err != nil {
				yield(nil, err)
				return
			}
			turn.add(part)
			if finish, ok := part.(Finish); ok {
				turn.close(finish)
				if err := r.keep(turn); err != nil {
					yield(nil, err)
					return
				}
			}
			if !yield(part, nil) {
				return
			}
		}
	}
}

func (t *recordedTurn) add(part Part) {
	switch part := part.(type) {
	case TextDelta:
		t.extend(part.Text, func(p *recordedPart) **lines { return &p.Text })
	case ReasoningDelta:
		t.extend(part.Text, func(p *recordedPart) **lines { return &p.Reasoning })
	}
}

// extend continues the last part when it is of the same kind, else begins one.
func (t *recordedTurn) extend(text string, field func(*recordedPart) **lines) {
	if n := len(t.Parts); n > 0 {
		if l := *field(&t.Parts[n-1]); l != nil {
			*l += lines(text)
			return
		}
	}
	var p recordedPart
	l := lines(text)
	*field(&p) = &l
	t.Parts = append(t.Parts, p)
}

func (t *recordedTurn) close(finish Finish) {
	if finish.Reason == FinishLength || finish.Reason == FinishFilter {
		t.Finish = finish.Reason
	}
	for _, call := range finish.Calls {
		var python struct {
			Code *lines `json:"code"`
		}
		if call.Name == pythonTool && json.Unmarshal([]byte(call.Arguments), &python) == nil && python.Code != nil {
			t.Parts = append(t.Parts, recordedPart{Code: python.Code})
			continue
		}
		t.Parts = append(t.Parts, recordedPart{Call: &recordedCall{Name: call.Name, Arguments: json.RawMessage(ArgumentsObject(call.Arguments))}})
	}
}

// keep writes a turn, or holds it until its outcome is known.
func (r *recorder) keep(turn recordedTurn) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if turn.calls() {
		r.pending = &turn
		return nil
	}
	return r.write(turn)
}

func (r *recorder) settle(req Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	turn := r.pending
	result, ok := lastResult(req)
	if turn == nil || !ok {
		return nil
	}
	r.pending = nil
	turn.Outcome = outcomeOf(result.IsError)
	return r.write(*turn)
}

func (r *recorder) write(turn recordedTurn) error {
	text, err := plainJSON(turn)
	if err == nil {
		_, err = fmt.Fprintf(r.w, "%s\n", text)
	}
	if err != nil {
		return problem.New(problem.RecordFailed, "the model's turn could not be recorded").
			WithHint("check that the disk has room and the file can be written").WithCause(err)
	}
	return nil
}
