package interpreter_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"cove/internal/kernel"
)

// slow is a session in which every execution runs into its time limit.
type slow struct{ *session }

func (s *slow) Execute(_ context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		s.ran = append(s.ran, req)
		time.Sleep(req.Timeout)
		yield(kernel.Done{Outcome: kernel.OutcomeTimeout, Wall: req.Timeout}, nil)
	}
}

func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

// describing is a session in which any code prints what describe.py would, or emits the given events.
type describing struct {
	*session
	printed []byte
	events  []kernel.Event
}

func (s *describing) Execute(context.Context, kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		events := s.events
		if s.printed != nil {
			events = []kernel.Event{kernel.Stream{Name: "stdout", Data: s.printed}, kernel.Done{Outcome: kernel.OutcomeOK}}
		}
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}
