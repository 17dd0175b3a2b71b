package loop

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

// Suspended is code that has called functions of the client's, and waits where it called them. The turn ends with that; the next one brings the results, and the code goes on.
type Suspended struct {
	Calls []kernel.WaitingCall // whose results the next turn has to bring

	call    string // the id of the model's call that has the code; "": it came as text
	inCall  bool   // it came in a <tool_call> element
	written string // the code, as the model wrote it
	code    string // that runs
	kernel  string // that it runs in; "": the main one
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
	answer.Suspended, answer.Calls = s, slices.Clone(s.clients) // which events have told of, in this order
	for _, c := range s.Calls {
		answer.Calls = append(answer.Calls, model.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
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

// resume has the code of an earlier turn go on with the results that the input brings, and answers the call of the model's that it is of, and those after it.
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
	if err := t.emit(Start{Step: step, Code: run.code, Edited: run.code != run.written, Kernel: run.kernel, Resumed: true, Printed: cutMiddle(run.record.shown(), t.limits.Result)}); err != nil {
		return err
	}
	o, err := t.follow(ctx, step, run, t.spec.Resume(ctx))
	if err == nil {
		o = t.noted(run.written, o)
	}
	if run.call == "" {
		err = t.answerText(run.inCall, o, err)
	} else {
		err = t.answerCalls(ctx, t.unanswered(run), nil, func(context.Context, []model.ToolCall) ([]model.ToolResult, error) {
			if err != nil {
				return nil, err
			}
			return []model.ToolResult{o.result()}, nil
		})
	}
	if err != nil || len(words) == 0 {
		return err
	}
	t.spec.Input = words
	return t.takeInput(ctx)
}

// unanswered are the calls of code that the model's last message made and that have no results, from that of run on. A client that keeps the conversation may have left that call out, or given it another id.
func (t *turn) unanswered(run *Suspended) []model.ToolCall {
	var calls []model.ToolCall
	last := -1
	for n, m := range t.history.messages {
		if m.Role == model.RoleAssistant {
			last = n
		}
	}
	if last >= 0 {
		for _, c := range t.history.messages[last].Content {
			call, ok := c.(model.ToolCall)
			if !ok || t.isClient(call.Name) {
				continue
			}
			if code, err := codeOf(call.Arguments); len(calls) > 0 || call.ID == run.call || err == nil && code == run.written {
				calls = append(calls, call)
			}
		}
	}
	if len(calls) > 0 {
		return calls
	}
	arguments, err := json.Marshal(map[string]string{"code": run.written})
	if err != nil {
		arguments = []byte("{}")
	}
	call := model.ToolCall{ID: run.call, Name: toolName, Arguments: string(arguments)}
	t.history.add(model.RoleAssistant, call)
	return []model.ToolCall{call}
}
