package turns

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/record"
)

// resumption is code of an earlier turn that goes on in this one.
type resumption struct {
	*live.Detached
	suspended *loop.Suspended
	results   map[int]tool.Result
}

// planResumption finds the code that called the functions whose results a turn brings, and takes these results out of the turn's input; nil: the turn brings none.
// Problems: calls_gone, turn_invalid.
func (r *Runner) planResumption(ctx context.Context, who auth.Principal, n *record.NewTurn) (*resumption, error) {
	resumed := &resumption{results: map[int]tool.Result{}}
	id := ""
	var input []model.Message
	for _, m := range n.Input {
		kept := m.Content[:0:0]
		for _, c := range m.Content {
			result, isResult := c.(model.ToolResult)
			execution, number, ofCode := live.CallOfCode(result.CallID)
			if !isResult || !ofCode {
				kept = append(kept, c)
				continue
			}
			if id != "" && id != execution {
				return nil, problem.New(problem.TurnInvalid, "the results are of calls of different code").WithHint("bring the results that the last answer asked for")
			}
			id = execution
			resumed.results[number] = resultOf(result)
		}
		if len(kept) > 0 {
			input = append(input, model.Message{Role: m.Role, Content: kept})
		}
	}
	if id == "" {
		return nil, nil
	}
	n.Input = input
	resumed.Detached = r.live.DetachedExecution(id)
	if resumed.Detached == nil || resumed.Execution.Project != who.Project {
		return nil, r.callsGone(ctx, who.Project, id)
	}
	var ok bool
	if resumed.suspended, ok = resumed.ClaimResults(); !ok {
		return nil, r.callsGone(ctx, who.Project, id)
	}
	for number := range resumed.results {
		if !slices.ContainsFunc(resumed.suspended.Calls, func(c kernel.WaitingCall) bool { _, n, _ := live.CallOfCode(c.ID); return n == number }) {
			resumed.unclaim()
			return nil, unknownCall(fmt.Sprintf("number %d of the code that waits", number))
		}
	}
	if n.Session = cmp.Or(n.Session, resumed.Execution.Session); n.Session != resumed.Execution.Session {
		resumed.unclaim()
		return nil, problem.New(problem.TurnInvalid, "the code that waits for these results runs in another session").WithHint("leave the session out")
	}
	return resumed, nil
}

// checkResults refuses results of calls that nobody made, in a conversation whose code waits for results: it would wait in vain.
func (r *Runner) checkResults(c record.Conversation, history, input []model.Message) error {
	waits := func(d *live.Detached) bool {
		_, waits := d.WaitsForResults()
		return waits && d.Conversation == c.ID
	}
	if len(r.live.DetachedWhere(waits)) == 0 {
		return nil
	}
	made := map[string]bool{}
	for _, m := range slices.Concat(history, input) {
		for _, c := range m.Content {
			if call, ok := c.(model.ToolCall); ok {
				made[call.ID] = true
			}
		}
	}
	for _, m := range input {
		for _, c := range m.Content {
			if result, ok := c.(model.ToolResult); ok && !made[result.CallID] {
				return unknownCall(fmt.Sprintf("%.100q", result.CallID))
			}
		}
	}
	return nil
}

func unknownCall(which string) error {
	return problem.New(problem.TurnInvalid, "there is a result for a call that was not made: "+which+"; the code goes on waiting for its results").
		WithHint("bring the results under the ids of the calls that the last answer asked for")
}

// unclaim has the code wait for another turn.
func (r *resumption) unclaim() {
	r.WaitAgain(r.suspended)
}

// lapse ends the code of a turn that failed before it went on.
func (r *resumption) lapse(why error) {
	if why != nil {
		r.StopExecution(why)
	}
}

// resultOf is what code gets of what a client brings: the value, if it is JSON, or else the text.
func resultOf(r model.ToolResult) tool.Result {
	if r.IsError {
		return tool.Failed(r.Text)
	}
	if text := json.RawMessage(r.Text); json.Valid(text) {
		return tool.Result{Value: text}
	}
	text, err := json.Marshal(r.Text)
	if err != nil {
		return tool.Failed("the result is no text")
	}
	return tool.Result{Value: text}
}

// withoutCallsOfCode returns a conversation that a client keeps without the calls that code made: the model has not made them, and sees what the code made of their results.
func withoutCallsOfCode(messages []model.Message) []model.Message {
	ofCode := func(c model.Content) bool {
		id := ""
		switch c := c.(type) {
		case model.ToolCall:
			id = c.ID
		case model.ToolResult:
			id = c.CallID
		}
		_, _, ok := live.CallOfCode(id)
		return ok
	}
	var out []model.Message
	for _, m := range messages {
		if slices.ContainsFunc(m.Content, ofCode) {
			if m.Content = slices.DeleteFunc(slices.Clone(m.Content), ofCode); len(m.Content) == 0 {
				continue
			}
		}
		out = append(out, m)
	}
	return out
}

// callsGone says why no code waits for results.
func (r *Runner) callsGone(ctx context.Context, project, execution string) *problem.Error {
	why := "it is not known here"
	if e, err := r.work.Store.Execution(ctx, project, execution); err == nil {
		switch {
		case e.State.Final() && e.Message != "":
			why = fmt.Sprintf("it has ended (%s): %s", e.State, e.Message)
		case e.State.Final():
			why = fmt.Sprintf("it has ended (%s)", e.State)
		default:
			why = "it got its results already, or it runs on another server"
		}
	}
	return problem.New(problem.CallsGone, "the code that made these calls does not wait for their results: "+why).WithHint("ask again")
}

// bring hands the results of the calls that were told of to the code. Those without a result fail: code that would wait for ever does nobody any good.
func (r *resumption) bring(calls []kernel.WaitingCall) {
	r.EndWaiting()
	for _, c := range calls {
		_, number, _ := live.CallOfCode(c.ID)
		answer := r.TakeAnswer(number)
		result, ok := r.results[number]
		if !ok {
			result = tool.Failed("the client brought no result for this call")
		}
		if answer != nil {
			answer(result)
		}
	}
}
