package loop

import (
	"context"
	"errors"
	"fmt"

	"cove/internal/llm/model"
)

// runCalls runs the calls of one answer. It returns the calls of the client's functions, which the client has to answer.
func (t *turn) runCalls(ctx context.Context, r reply) (clients []model.ToolCall, err error) {
	content := []model.Content{model.Text{Text: r.text}}
	var calls []model.ToolCall
	for _, call := range t.numbered(r.calls) {
		content = append(content, call)
		if t.isClient(call.Name) {
			clients = append(clients, call)
		} else {
			calls = append(calls, call)
		}
	}
	t.history.add(model.RoleAssistant, content...)
	err = t.answerCalls(ctx, calls, clients, t.runNext)
	if waits, ok := errors.AsType[*suspension](err); ok {
		waits.clients, waits.words = clients, r.words
	}
	return clients, err
}

// runs runs the first of calls, or several of them, and returns their results in order, also beside an error.
type runs = func(ctx context.Context, calls []model.ToolCall) ([]model.ToolResult, error)

// answerCalls runs calls in order and answers each; first runs the first ones. After one that failed the rest is not run. Code that waits for the client has no result yet, and nor have the calls after it.
func (t *turn) answerCalls(ctx context.Context, calls, clients []model.ToolCall, first runs) error {
	results := make([]model.Content, len(calls))
	for n, call := range calls {
		results[n] = model.ToolResult{CallID: call.ID, Text: "Not run: the turn was stopped.", IsError: true}
	}
	// Calls without results would make the conversation invalid, also when the turn fails here.
	defer func() { t.history.add(model.RoleTool, results...) }()
	run := first
	for n := 0; n < len(calls); {
		got, err := run(ctx, calls[n:])
		run = t.runNext
		if limit, ok := errors.AsType[*limitReached](err); ok && len(clients) > 0 {
			got, err = append(got, model.ToolResult{Text: "Not run: you have reached " + limit.limit + ".", IsError: true}), nil
		}
		if waits, ok := errors.AsType[*suspension](err); ok {
			waits.call, results = calls[n].ID, results[:n]
		}
		failed := false
		for _, result := range got {
			result.CallID = calls[n].ID
			results[n] = result
			failed = failed || result.IsError
			n++
		}
		if err != nil {
			return err
		}
		if failed && n < len(calls) {
			for rest := n; rest < len(calls); rest++ {
				results[rest] = model.ToolResult{CallID: calls[rest].ID, Text: "Not run because the previous one failed.", IsError: true}
			}
			return t.emit(Notice{fmt.Sprintf("Not run because the one before it failed: %d more of the model's calls.", len(calls)-n)})
		}
	}
	return nil
}

// runNext runs the next call, or several at the same time, where the turn has kernels for that.
func (t *turn) runNext(ctx context.Context, calls []model.ToolCall) ([]model.ToolResult, error) {
	if together := t.together(calls); len(together) > 1 {
		return t.runTogether(ctx, together)
	}
	result, err := t.runCall(ctx, calls[0])
	if err != nil {
		return nil, err
	}
	return []model.ToolResult{result}, nil
}

func (t *turn) runCall(ctx context.Context, call model.ToolCall) (model.ToolResult, error) {
	code, kernel, err := t.programOf(call)
	if err != nil {
		return t.unusable(err)
	}
	t.known.called = true
	o, err := t.execute(ctx, code, kernel)
	if err != nil {
		return model.ToolResult{}, err
	}
	return o.result(), nil
}

// programOf returns the code of a call, and the kernel that it is for. Its error is a sentence for the model.
func (t *turn) programOf(call model.ToolCall) (code, kernel string, err error) {
	if !t.python || (call.Name != "" && !isPython(call.Name)) {
		return "", "", t.unknownTool(call.Name)
	}
	if code, err = codeOf(call.Arguments); err == nil {
		kernel, err = t.kernelOf(call.Arguments)
	}
	return code, kernel, err
}

// unusable is the result of a call that cannot be run.
func (t *turn) unusable(why error) (model.ToolResult, error) {
	if limit := t.mayRun(""); limit != nil {
		return model.ToolResult{}, limit
	}
	notice := t.emit(Notice{"The model's call could not be used; it is told why and may try again."})
	return model.ToolResult{Text: "Nothing was run: " + why.Error() + ".", IsError: true}, notice
}

// numbered returns the calls, each with an id that no other call of the conversation has.
func (t *turn) numbered(calls []model.ToolCall) []model.ToolCall {
	out := make([]model.ToolCall, len(calls))
	taken := t.history.callIDs()
	for n, call := range calls {
		if call.ID == "" || taken[call.ID] {
			call.ID = freeID(taken)
		}
		taken[call.ID] = true
		out[n] = call
	}
	return out
}
