package session

import (
	"context"
	"iter"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
)

// Code that waits for somebody outside does not need its session in memory: its execution is parked. The interpreter stays in the sandbox, busy, with nobody attached to it; it is saved and restored with everything else,
// and Resume goes on with it, in this Live or in a later one that was told of it (Options.Parked).

// errParked says that a kernel cannot be used, because code waits in it.
var errParked = problem.New(problem.SessionBusy, "the kernel runs code, which waits for its client").WithHint("bring the results that it waits for, or interrupt it")

// park notes that an execution has let its kernel go, and reports the files that it has changed until now: a later Live would not see them.
func (s *Live) park(ctx context.Context, t *run, p kernel.Parked, yield yielder) {
	for _, f := range s.parks(ctx, t, p) {
		if !yield(f, nil) {
			break
		}
	}
	yield(p, nil)
}

func (s *Live) parks(ctx context.Context, t *run, p kernel.Parked) []kernel.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || s.link == nil || s.link != t.link:
		return nil
	case s.slots[t.slot.name] == t.slot && t.slot.kernel == t.kernel:
		t.slot.kernel, t.slot.parked = nil, p.ID()
	default:
		s.kill(ctx, t.kernel.PID()) // it was stopped in this moment
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	files, _ := s.changes(ctx) // what cannot be seen now is reported later
	return files
}

// Resume goes on with a parked execution, and yields events as Execute does. When ctx has ended, the code is interrupted. Where the code does not wait any more, as after the session has lost its sandbox or its kernel was restarted,
// the Done says so.
func (s *Live) Resume(ctx context.Context, p kernel.Parked) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		patient := context.WithoutCancel(ctx) // code that is to be interrupted has to be reached, too
		over, err := s.share(patient)
		if err != nil {
			yield(nil, err)
			return
		}
		defer over()
		t, gone, err := s.unpark(patient, p)
		switch {
		case err != nil:
			p.End()
			yield(nil, err)
		case gone != nil:
			p.End()
			if t == nil {
				yield(*gone, nil)
				return
			}
			s.conclude(patient, t, *gone, yield)
		default:
			last, err := s.runs(ctx, t, func(ctx context.Context) iter.Seq2[kernel.Event, error] {
				return t.kernel.Continue(ctx, p, s.missingIn(t))
			}, yield)
			s.ends(ctx, t, last, err, yield)
		}
	}
}

// unpark takes over the kernel of a parked execution, or returns how the execution has ended.
func (s *Live) unpark(ctx context.Context, p kernel.Parked) (*run, *kernel.Done, error) {
	k, err := s.find(p.Kernel())
	if err != nil {
		gone := p.Gone(nil)
		return nil, &gone, nil
	}
	if err := k.take(ctx); err != nil {
		return nil, nil, err
	}
	defer k.give()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || s.sandbox == nil || ended(s.sandbox.Done()) || ended(s.link.Done()):
		gone := p.Gone(nil)
		gone.Outcome, gone.Lost, gone.Message = kernel.OutcomeSandboxDied, kernel.LostSession, "the sandbox ended while the code waited; variables and files are lost"
		return nil, &gone, nil
	case k.parked != p.ID():
		gone := p.Gone(nil)
		return nil, &gone, nil
	}
	t := &run{slot: k, link: s.link, sandbox: s.sandbox}
	i, waits, err := kernel.Rejoin(ctx, s.link, s.kernelConfig(false), k.pid, p)
	switch {
	case problem.Has(err, problem.KernelNotFound, problem.KernelLost):
		k.end()
		gone := p.Gone(err)
		return t, &gone, nil
	case err != nil:
		return nil, nil, explain(s.sandbox, err)
	}
	k.kernel, k.parked, t.kernel = i, "", i
	if !waits {
		gone := p.Gone(nil)
		gone.Lost, gone.Message = kernel.LostNothing, "the code was interrupted while it waited"
		return t, &gone, nil
	}
	return t, nil, nil
}
