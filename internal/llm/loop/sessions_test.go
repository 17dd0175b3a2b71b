package loop_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
)

// slow is a session in which every execution runs into its time limit.
type slow struct{ *session }

func (s *slow) Execute(_ context.Context, req loop.Program) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		s.ran = append(s.ran, req)
		time.Sleep(req.Timeout)
		yield(kernel.Done{Outcome: kernel.OutcomeTimeout, Wall: req.Timeout}, nil)
	}
}

func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
