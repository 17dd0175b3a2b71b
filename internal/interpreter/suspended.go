package interpreter

import (
	"context"
	"iter"
	"time"

	"cove/internal/kernel"
	"cove/internal/model"
)

// Suspended is code that has called functions of the client's, and waits where it called them. The turn ends with that; the next one brings the results, and the code goes on.
type Suspended struct {
	Calls []kernel.WaitingCall // whose results the next turn has to bring

	call    string // the id of the model's call that has the code; "": it came as text
	inCall  bool   // it came in a <tool_call> element
	written string // the code, as the model wrote it
	code    string // that runs
	timeout time.Duration
	record  *record // what it has emitted until now

	clients []model.ToolCall // functions that the model called beside the code
	words   string           // what it said before
}

// Size is about how much memory it takes, in bytes.
func (s *Suspended) Size() int64 {
	n := len(s.written) + len(s.code) + s.record.size
	for _, segment := range s.record.segments {
		n += len(segment.text)
	}
	for _, p := range s.record.pictures {
		n += len(p.image.Data)
	}
	for _, c := range s.Calls {
		n += len(c.Arguments)
	}
	return int64(n)
}

// suspension ends a turn with code that waits.
type suspension struct{ *Suspended }

func (s *suspension) Error() string { return "the code waits for results that the client brings" }

// suspended is the answer of a turn that ends with code that waits.
func (t *turn) suspended(s *Suspended) Answer {
	answer := t.answer(s.words, ClientCalls)
	answer.Suspended = s
	for _, c := range s.Calls {
		answer.Calls = append(answer.Calls, model.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	answer.Calls = append(answer.Calls, s.clients...)
	return answer
}

// follow takes in what code emits, until it ends or waits for the client.
func (t *turn) follow(ctx context.Context, step int, run *Suspended, events iter.Seq2[kernel.Event, error]) (outcome, error) {
	for event, err := range events {
		if err != nil {
			return outcome{}, err
		}
		run.record.add(event)
		if err := t.emit(Output{step, event}); err != nil {
			return outcome{}, err
		}
		if waits, ok := event.(kernel.CallsWait); ok {
			run.Calls = waits.Calls
			return outcome{}, &suspension{run}
		}
	}
	return t.ended(ctx, step, run)
}

// resume has the code of an earlier turn go on with the results that the input brings, and answers the call of the model's that it is of, and those behind it.
func (t *turn) resume(ctx context.Context) error {
	run := t.spec.Suspended
	run.clients, run.words = nil, ""
	words := t.spec.Input[:0:0]
	for _, m := range t.spec.Input {
		if m.Role == model.RoleTool {
			t.history.add(m.Role, m.Content...) // of functions that the model called itself
		} else {
			words = append(words, m)
		}
	}
	step := t.next()
	t.steps++
	t.attempts++
	if err := t.emit(Start{Step: step, Code: run.code, Edited: run.code != run.written, Resumed: true}); err != nil {
		return err
	}
	o, err := t.follow(ctx, step, run, t.spec.Resume(ctx))
	if err == nil {
		o = t.noted(run.written, o)
	}
	calls := t.unanswered(run.call)
	switch {
	case run.call == "" || len(calls) == 0:
		err = t.answerText(run.inCall, o, err)
	default:
		err = t.answerCalls(ctx, calls, nil, func(context.Context, model.ToolCall) (model.ToolResult, error) { return o.result(), err })
	}
	if err != nil || len(words) == 0 {
		return err
	}
	t.spec.Input = words
	return t.takeInput(ctx)
}

// unanswered are the calls of code, from the one with an id on, that the model's last message made and that have no results.
func (t *turn) unanswered(id string) []model.ToolCall {
	for n := len(t.history.messages) - 1; n >= 0; n-- {
		m := t.history.messages[n]
		if m.Role != model.RoleAssistant {
			continue
		}
		var calls []model.ToolCall
		for _, c := range m.Content {
			if call, ok := c.(model.ToolCall); ok && !t.isClient(call.Name) && (len(calls) > 0 || call.ID == id) {
				calls = append(calls, call)
			}
		}
		return calls
	}
	return nil
}
