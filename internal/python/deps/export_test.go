package deps

import (
	"context"
	"time"

	"cove/internal/python/installation"
)

// Rounds is rounds.
const Rounds = rounds

// Walk is walk with steps and verdicts in words.
func Walk(do func(at string) (verdict string, err error)) (end string, err error) {
	last, err := walk(func(at step) (verdict, error) {
		word, err := do(at.String())
		for v := solved; v <= emptied; v++ {
			if v.String() == word {
				return v, err
			}
		}
		return -1, err
	})
	return last.String(), err
}

// Verdicts are those that a step may have.
func Verdicts(at string) (out []string) {
	for s := stepSettle; s < stepFound; s++ {
		for v := solved; v <= emptied; v++ {
			if _, ok := leads(s, v); ok && s.String() == at {
				out = append(out, v.String())
			}
		}
	}
	return out
}

// Bounded is a context with the time limit of an installation, and what tells it of progress.
func Bounded(ctx context.Context, limit time.Duration) (context.Context, func(installation.Progress), func()) {
	i := &Installer{options: Options{Policy: Policy{Timeout: limit}}}
	return i.bounded(ctx, nil)
}
