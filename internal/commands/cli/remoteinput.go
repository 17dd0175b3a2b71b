package cli

import (
	"context"
	"sync"

	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/python/kernel"
)

// inputAsker has the user answer what code on a server asks for, one request after another.
type inputAsker struct {
	mu sync.Mutex
}

// answer gets a line from the user, and hands it over. Without one the code gets the end of the input.
func (a *inputAsker) answer(ctx context.Context, r *remoteRun, execution string, asked kernel.InputRequest, input func(prompt string, password bool) (string, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	text, err := input(asked.Prompt, asked.Password)
	said := api.InputAnswer{Text: &text}
	if err != nil {
		said = api.InputAnswer{End: true}
	}
	err = r.client.AnswerInput(ctx, execution, asked.Number, said)
	switch {
	case err == nil || ctx.Err() != nil:
	case problem.Has(err, problem.InputNotWaiting):
		notef(r.err, "that was answered already, in another place or because nobody did in time")
	default:
		notef(r.err, "the code did not get that line: %s", oneLine(spoken(err)))
		_ = r.client.AnswerInput(ctx, execution, asked.Number, api.InputAnswer{End: true})
	}
}
