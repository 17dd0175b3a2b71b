package hub

import (
	"context"
	"iter"

	"cove/internal/ident"
	"cove/internal/interpreter"
	"cove/internal/kernel"
	"cove/internal/telemetry"
	"cove/internal/workspace"
)

// stepper is a turn's interpreter.Executor: the model's code becomes an execution with a record. It is used by one goroutine.
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
}

// announce says that the next Execute is the code of a step.
func (s *stepper) announce(start interpreter.Start) {
	s.id, s.step, s.edited = ident.New(ident.Execution), start.Step, start.Edited
}

// Execute runs the code of the step that was announced as an execution.
func (s *stepper) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		t := s.turn
		deaf := false
		<-s.marked
		if err := s.h.mayRun(ctx, t.Project, t.Key); err != nil {
			yield(nil, err)
			return
		}
		e := Execution{ID: s.id, Project: t.Project, User: t.User, Key: t.Key, Session: t.Session, Turn: t.ID, Step: s.step, Code: req.Code, Edited: s.edited}
		if err := s.h.screen(ctx, &e, true); err != nil {
			yield(nil, err)
			return
		}
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

// Tell looks at files for the prompt. A sandbox that is lost meanwhile is told of with the next execution.
func (s *stepper) Tell(ctx context.Context, paths []string) ([]workspace.Told, error) {
	ctx, over := telemetry.Span(ctx, spanLook)
	told, err := s.Live.Tell(ctx, paths)
	over(err)
	return s.h.redactTold(ctx, s.turn.Project, s.turn.Key, told), err
}
