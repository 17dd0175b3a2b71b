package turns

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
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/record"
)

// stepper is a turn's loop.Executor: the model's code becomes an execution with a record. Only Execute and execution are called from several goroutines.
type stepper struct {
	live.Live
	lease *live.Lease
	r     *Runner
	turn  record.Turn
	who   auth.Principal
	offer *live.Offer // what the code may call; nil: nothing
	// resumed is code of an earlier turn that goes on; nil: there is none.
	resumed *resumption
	// marked is closed when code may run, see markTurn.
	marked <-chan struct{}

	time  context.Context // context of the step whose events the turn takes as they come; its end interrupts the code
	heard *live.Detached  // the code that runs, or waits for the client, and may outlive the turn

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
		s.ids = map[int]string{start.Step: s.resumed.Execution.ID}
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
		if err := s.r.meter.MayRun(ctx, t.Project, t.Key); err != nil {
			yield(nil, err)
			return
		}
		e := record.Execution{ID: s.execution(p.Step), Project: t.Project, User: t.User, Key: t.Key, Session: t.Session, Kernel: p.Kernel, Turn: t.ID, Step: p.Step, Code: p.Code, Edited: p.Edited}
		req := kernel.Request{Code: p.Code, Mode: kernel.Cell, Timeout: p.Timeout, Model: true, Widgets: !s.r.o.Private} // a command shows widgets as text
		if err := s.r.live.ScreenCode(ctx, &e, true); err != nil {
			yield(nil, err)
			return
		}
		if s.offer != nil && s.offer.Client {
			s.detach(ctx, p, e, req, yield)
			return
		}
		if s.offer != nil {
			req.Tools = s.r.live.WithApproval(s.who, e, s.offer.Tools(nil))
		}
		err := s.inTime(ctx, p, func() error {
			_, err := s.r.live.RunAndRecord(ctx, e, req, func(ctx context.Context, event record.Event) error {
				if !p.Beside {
					s.time = ctx
				}
				if deaf = deaf || !yield(event, nil); deaf {
					return live.ErrUnheard
				}
				return nil
			})
			return err
		})
		if err == nil {
			err = s.r.live.EndCause(t.Session) // otherwise the model would be asked what to do about interrupted code
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
	return live.Patiently(ctx, begin, problem.QuotaExecutions, problem.QueueFull)
}

// start makes sure that the session has a kernel. Problems: those of Live.StartKernel.
func (s *stepper) start(ctx context.Context, name string) error {
	if name == "" || slices.Contains(s.KernelNames(), name) {
		return nil
	}
	err := s.StartKernel(ctx, name)
	s.r.work.WriteAudit(ctx, s.who, "kernel.start", s.turn.Session, name, err)
	return err
}

// detach runs code that may wait for the client, longer than the turn lasts.
func (s *stepper) detach(ctx context.Context, p loop.Program, e record.Execution, req kernel.Request, yield func(kernel.Event, error) bool) {
	var d *live.Detached
	err := s.inTime(ctx, p, func() (err error) {
		d, err = s.r.live.StartDetached(ctx, s.who, e, s.turn.Conversation, req, s.offer)
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
		if err := s.r.live.ContinueAfterWait(ctx, s.resumed.Running); err != nil {
			yield(nil, err)
			return
		}
		if err := s.r.live.UnparkExecution(ctx, s.resumed.Detached); err != nil {
			yield(nil, err)
			return
		}
		calls := slices.Clone(s.resumed.suspended.Calls) // what is heard again may be another wait
		s.r.work.RunInBackground(func(context.Context) { s.resumed.HearAgain() })
		s.r.work.RunInBackground(func(context.Context) { s.resumed.bring(calls) }) // the code emits between one result and the next
		s.hear(ctx, s.resumed.Detached, yield)
	}
}

func (s *stepper) hear(ctx context.Context, d *live.Detached, yield func(kernel.Event, error) bool) {
	s.heard = d
	left := false
	err := d.HearEvents(ctx, func(room context.Context, event record.Event) bool {
		s.time = room
		left = !yield(event, nil)
		return !left
	})
	if left {
		return // it waits for the client, or it was stopped
	}
	s.heard = nil
	if err == nil {
		err = s.r.live.EndCause(s.turn.Session)
	}
	if err != nil {
		yield(nil, err)
	}
}

// suspend keeps the code that waits for the client's next turn.
func (s *stepper) suspend(what *loop.Suspended) error {
	if err := s.r.live.SuspendExecution(s.heard, s.turn.ID, what); err != nil {
		return err
	}
	s.heard = nil
	return nil
}

// leave ends code that nobody hears any more.
func (s *stepper) leave() {
	if s.heard != nil {
		s.heard.StopExecution(live.ErrUnheard)
	}
}

// Variables returns the variables of the session's kernel.
func (s *stepper) Variables(ctx context.Context) (kernel.Variables, error) {
	v, err := s.Live.Variables(ctx, kernel.Main)
	return live.RedactVariables(s.r.live.RedactionIn(ctx, s.turn.Project, s.turn.Key, s.turn.Session), v), err
}

// Tell looks at files for the prompt. A sandbox that is lost meanwhile is told of with the next execution.
func (s *stepper) Tell(ctx context.Context, paths []string) ([]workspace.Told, error) {
	ctx, over := telemetry.Span(ctx, live.SpanLook)
	told, err := s.Live.Tell(ctx, paths)
	over(err)
	return s.r.redactTold(ctx, s.turn, told), err
}
