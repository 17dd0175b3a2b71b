package hub

import (
	"context"
	"iter"
	"time"

	"cove/internal/ident"
	"cove/internal/interpreter"
	"cove/internal/kernel"
	"cove/internal/telemetry"
)

// peekPatience bounds the code with which the interpreter looks into files, which waits for the kernel like any other.
const peekPatience = 30 * time.Second

// stepper is a turn's session: what the model has run is an execution with a record, and what the interpreter looks up itself is not. It is used
// by one goroutine.
type stepper struct {
	Live
	h    *Hub
	turn Turn

	time context.Context // of the step that runs: ends when its code has to
	id   string          // of the execution that was announced last
	step int
	next bool // it has not run yet
}

// announce notes that the code of a step comes next.
func (s *stepper) announce(start interpreter.Start) {
	s.id, s.step, s.next = ident.New(ident.Execution), start.Step, true
}

// Execute runs the code of the step that was announced as an execution.
func (s *stepper) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	if !s.next {
		return s.peek(ctx, req)
	}
	s.next = false
	return func(yield func(kernel.Event, error) bool) {
		t := s.turn
		deaf := false
		if err := s.h.mayRun(ctx, t.Project, t.Key); err != nil {
			yield(nil, err)
			return
		}
		e := Execution{ID: s.id, Project: t.Project, User: t.User, Key: t.Key, Session: t.Session, Turn: t.ID, Step: s.step, Code: req.Code}
		_, err := s.h.run(ctx, e, req, func(ctx context.Context, event Event) error {
			s.time = ctx
			if deaf = deaf || !yield(event, nil); deaf {
				return errUnheard
			}
			return nil
		})
		if err == nil {
			err = s.h.endCause(t.Session) // else the model would be asked what to do about code that was interrupted
		}
		if err != nil && !deaf {
			yield(nil, err)
		}
	}
}

// peek runs code that nobody is shown. What a session loses with it, or has lost before it, the next execution says.
func (s *stepper) peek(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		ctx, cancel := context.WithTimeout(ctx, peekPatience)
		defer cancel()
		ctx, over := telemetry.Span(ctx, spanLook)
		defer over(nil)
		for event, err := range s.Live.Execute(ctx, req) {
			switch e := event.(type) {
			case kernel.Rollback:
				s.h.noteSandboxLoss(ctx, s.turn.Session, lostSandbox)
				continue
			case kernel.Done:
				if e.Lost == kernel.LostSession {
					s.h.noteSandboxLoss(ctx, s.turn.Session, e.Message)
				}
			}
			if !yield(event, err) {
				return
			}
		}
	}
}
