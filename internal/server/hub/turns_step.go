package hub

import (
	"context"
	"iter"
	"slices"
	"sync"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/llm/loop"
	"cove/internal/machine/workspace"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
)

// stepper is a turn's loop.Executor: the model's code becomes an execution with a record. Only Execute and execution are called from several goroutines.
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

	time  context.Context // context of the step whose events the turn takes as they come; its end interrupts the code
	heard *detached       // the code that runs, or waits for the client, and may outlive the turn

	mu  sync.Mutex
	ids map[int]string // of executions, by step
}

// execution returns the id of a step's execution.
func (s *stepper) execution(step int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[int]string{}
	}
	if s.ids[step] == "" {
		s.ids[step] = ident.New(ident.Execution)
	}
	return s.ids[step]
}

// announce takes note of a step before anybody hears of it, and returns the id of its execution.
func (s *stepper) announce(start loop.Start) string {
	if start.Resumed {
		s.mu.Lock()
		s.ids = map[int]string{start.Step: s.resumed.e.ID}
		s.mu.Unlock()
	}
	return s.execution(start.Step)
}

// Execute runs the code of a step as an execution.
func (s *stepper) Execute(ctx context.Context, p loop.Program) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		t := s.turn
		deaf := false
		<-s.marked
		if err := s.start(ctx, p.Kernel); err != nil {
			yield(nil, err)
			return
		}
		if err := s.h.mayRun(ctx, t.Project, t.Key); err != nil {
			yield(nil, err)
			return
		}
		e := Execution{ID: s.execution(p.Step), Project: t.Project, User: t.User, Key: t.Key, Session: t.Session, Kernel: p.Kernel, Turn: t.ID, Step: p.Step, Code: p.Code, Edited: p.Edited}
		req := kernel.Request{Code: p.Code, Mode: kernel.Cell, Timeout: p.Timeout, Model: true, Widgets: !s.h.o.Private} // a command shows widgets as text
		if err := s.h.screen(ctx, &e, true); err != nil {
			yield(nil, err)
			return
		}
		if s.offer != nil && s.offer.client {
			s.detach(ctx, p, e, req, yield)
			return
		}
		if s.offer != nil {
			req.Tools = s.h.overseen(s.who, e, s.offer.tools(nil))
		}
		err := s.inTime(ctx, p, func() error {
			_, err := s.h.run(ctx, e, req, func(ctx context.Context, event Event) error {
				if !p.Beside {
					s.time = ctx
				}
				if deaf = deaf || !yield(event, nil); deaf {
					return errUnheard
				}
				return nil
			})
			return err
		})
		if err == nil {
			err = s.h.endCause(t.Session) // otherwise the model would be asked what to do about interrupted code
		}
		if err != nil && !deaf {
			yield(nil, err)
		}
	}
}

// inTime begins code of the turn. Where other work of its caller leaves no room for it now, it waits for room, because the answer that has the code is paid for; code beside other code does not, because the model can have it run alone.
func (s *stepper) inTime(ctx context.Context, p loop.Program, begin func() error) error {
	if p.Beside {
		return begin()
	}
	return Patiently(ctx, begin, problem.QuotaExecutions, problem.QueueFull)
}

// start makes sure that the session has a kernel. Problems: those of Live.StartKernel.
func (s *stepper) start(ctx context.Context, name string) error {
	if name == "" || slices.Contains(s.KernelNames(), name) {
		return nil
	}
	err := s.StartKernel(ctx, name)
	s.h.audit(ctx, s.who, "kernel.start", s.turn.Session, name, err)
	return err
}

// detach runs code that may wait for the client, longer than the turn lasts.
func (s *stepper) detach(ctx context.Context, p loop.Program, e Execution, req kernel.Request, yield func(kernel.Event, error) bool) {
	var d *detached
	err := s.inTime(ctx, p, func() (err error) {
		d, err = s.h.detach(ctx, s.who, e, s.turn.Conversation, req, s.offer)
		return err
	})
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
		if err := s.h.unpark(ctx, s.resumed.detached); err != nil {
			yield(nil, err)
			return
		}
		calls := slices.Clone(s.resumed.suspended.Calls) // what is heard again may be another wait
		s.h.spawn(func(context.Context) { s.resumed.hearAgain() })
		s.h.spawn(func(context.Context) { s.resumed.bring(calls) }) // the code emits between one result and the next
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
func (s *stepper) suspend(what *loop.Suspended) error {
	if err := s.h.suspend(s.heard, s.turn.ID, what); err != nil {
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
	v, err := s.Live.Variables(ctx, kernel.Main)
	return redactVariables(s.h.redactionIn(ctx, s.turn.Project, s.turn.Key, s.turn.Session), v), err
}

// Tell looks at files for the prompt. A sandbox that is lost meanwhile is told of with the next execution.
func (s *stepper) Tell(ctx context.Context, paths []string) ([]workspace.Told, error) {
	ctx, over := telemetry.Span(ctx, spanLook)
	told, err := s.Live.Tell(ctx, paths)
	over(err)
	return s.h.redactTold(ctx, s.turn, told), err
}
