package hub

import (
	"context"
	"iter"

	"cove/internal/auth"
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
	who   auth.Principal
	offer *offer // what the code may call; nil: nothing
	// resumed is code of an earlier turn that goes on; nil: there is none.
	resumed *resumption
	// marked is closed when code may run, see markTurn.
	marked <-chan struct{}

	time   context.Context // context of the step that runs; its end interrupts the code
	id     string          // of the execution that was announced last
	step   int
	edited bool
	heard  *detached // the code that runs, or waits for the client, and may outlive the turn
}

// announce says that the next Execute is the code of a step.
func (s *stepper) announce(start interpreter.Start) {
	if start.Resumed {
		s.id, s.step, s.edited = s.resumed.e.ID, start.Step, start.Edited
		return
	}
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
		if s.offer != nil && s.offer.client {
			s.detach(ctx, e, req, yield)
			return
		}
		if s.offer != nil {
			req.Tools = s.h.audited(s.who, e, s.offer.tools(nil))
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

// detach runs code that may wait for the client, longer than the turn lasts.
func (s *stepper) detach(ctx context.Context, e Execution, req kernel.Request, yield func(kernel.Event, error) bool) {
	d, err := s.h.detach(ctx, s.who, e, s.turn.Conversation, req, s.offer)
	if err != nil {
		yield(nil, err)
		return
	}
	s.hear(ctx, d, yield)
}

// Resume hands the results that the turn brings to the code that waits for them, and yields what it emits then.
func (s *stepper) Resume(ctx context.Context) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		if err := s.h.goOn(ctx, s.resumed.t); err != nil {
			yield(nil, err)
			return
		}
		s.h.spawn(func(context.Context) { s.resumed.bring() }) // the code emits between one result and the next
		s.hear(ctx, s.resumed.detached, yield)
	}
}

func (s *stepper) hear(ctx context.Context, d *detached, yield func(kernel.Event, error) bool) {
	s.heard = d
	left := false
	err := d.hear(ctx, func(room context.Context, event Event) bool {
		s.time = room
		left = !yield(event, nil)
		return !left
	})
	if left {
		return // it waits for the client, or it was stopped
	}
	s.heard = nil
	if err == nil {
		err = s.h.endCause(s.turn.Session)
	}
	if err != nil {
		yield(nil, err)
	}
}

// suspend keeps the code that waits for the client's next turn.
func (s *stepper) suspend(what *interpreter.Suspended) error {
	if err := s.h.suspend(s.heard, what); err != nil {
		return err
	}
	s.heard = nil
	return nil
}

// leave ends code that nobody hears any more.
func (s *stepper) leave() {
	if s.heard != nil {
		s.heard.stop(errUnheard)
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
