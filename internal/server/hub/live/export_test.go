package live

import (
	"context"
	"iter"

	"cove/internal/code/redact"
	"cove/internal/machine/process"
)

// Masked is the output of a process with masks.
func Masked(ctx context.Context, kinds redact.Kinds, from int64, follow func(context.Context, int64) iter.Seq2[process.Event, error]) iter.Seq2[process.Event, error] {
	return masked(ctx, kinds, from, nil, follow)
}

// MaskedAtTerminal is Masked where somebody types; the function that it returns notes what.
func MaskedAtTerminal(ctx context.Context, kinds redact.Kinds, follow func(context.Context, int64) iter.Seq2[process.Event, error]) (all iter.Seq2[process.Event, error], typed func(string)) {
	e := &echo{}
	return masked(ctx, kinds, 0, e, follow), func(keys string) { e.expect([]byte(keys)) }
}
