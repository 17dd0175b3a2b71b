package ondisk

import (
	"context"
	"errors"
	"iter"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
)

// Parks says whether executions can be parked (kernel.Request.Park): between their parts the session can be saved, released and opened again (Options.Parked). One that is saved before each execution, for undo, has none.
func (s *LeasedSession) Parks() bool {
	_, ok := s.Live.(Parker)
	return ok && s.kept == nil && !s.opts.Undoable
}

// Resume goes on with a parked execution, as Live does. It may be of an earlier LeasedSession of the same session, whose head this one was opened from.
func (s *LeasedSession) Resume(ctx context.Context, p kernel.Parked) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		l, ok := s.Live.(Parker)
		if !ok {
			yield(nil, errors.New("a session that parks no executions is to go on with one"))
			return
		}
		// Also with a context that has ended: then the code is interrupted.
		if err := s.busy.Acquire(context.WithoutCancel(ctx), 1); err != nil {
			yield(nil, problem.New(problem.GivenUp, "stopped before the code went on").WithCause(err))
			return
		}
		defer s.busy.Release(1)
		s.mu.Lock()
		if s.look().holds != nowhere {
			s.at = s.at.on(codeBegins)
		}
		s.mu.Unlock()
		s.follow(l.Resume(ctx, p), yield)
	}
}

// parked notes that code waits, and does not need the session meanwhile.
func (s *LeasedSession) parked() {
	ended, installed := s.Lost(), s.Installed()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rec.Installed, s.ended = installed, ended
	s.at = s.at.on(codeEnds)
}

// follow passes on what Live yields of an execution, and notes how it ends.
func (s *LeasedSession) follow(events iter.Seq2[kernel.Event, error], yield func(kernel.Event, error) bool) {
	var after func() // only after Live is done with the event: it calls Live
	defer func() {
		if after != nil {
			after()
		}
	}()
	for ev, err := range events {
		switch e := ev.(type) {
		case kernel.Done:
			after = func() { s.after(e) }
		case kernel.Parked:
			after = s.parked
		case kernel.Rollback:
			ev = s.completeRollback(e)
		}
		if !yield(ev, err) {
			return
		}
	}
}
