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

// peekPatience bounds the interpreter's own code, which reads files for the prompt and is queued for the kernel like any other.
const peekPatience = 30 * time.Second

// stepper is a turn's interpreter.Executor: the model's code becomes an execution with a record, the interpreter's own code does not. It is used by one goroutine.
type stepper struct {
	Live
	lease *lease
	h     *Hub
	turn  Turn
	// marked is closed when code may run, see markTurn.
	marked <-chan struct{}

	time   context.Context // context of the step that runs; its end interrupts the code
	id     string          // of the execution that was announced last
	step   int
	edited bool
	next   bool // that execution has not run yet
}

// announce says that the next Execute is the code of a step.
func (s *stepper) announce(start interpreter.Start) {
	s.id, s.step, s.edited, s.next = ident.New(ident.Execution), start.Step, start.Edited, true
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
		<-s.marked
		if err := s.h.mayRun(ctx, t.Project, t.Key); err != nil {
			yield(nil, err)
			return
		}
		e := Execution{ID: s.id, Project: t.Project, User: t.User, Key: t.Key, Session: t.Session, Turn: t.ID, Step: s.step, Code: req.Code, Edited: s.edited}
		_, err := s.h.run(ctx, e, req, func(ctx context.Context, event Event) error {
			s.time = ctx
			if deaf = deaf || !yield(event, nil); deaf {
				return errUnheard
			}
			return nil
		})
		if err == nil {
			err = s.h.endCause(t.Session) // otherwise the model would be asked what to do about interrupted code
		}
		if err != nil && !deaf {
			yield(nil, err)
		}
	}
}

// Variables returns the variables of the session's kernel.
func (s *stepper) Variables(ctx context.Context) (kernel.Variables, error) {
	return s.Live.Variables(ctx, kernel.Main)
}

// peek runs the interpreter's own code, whose events no client gets. The next execution reports what the session has lost before or with this code.
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
