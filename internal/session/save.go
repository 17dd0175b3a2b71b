package session

import (
	"context"
	"errors"
	"fmt"

	"cove/internal/kernel"
	"cove/internal/problem"
	"cove/internal/sandbox"
)

// restore starts a sandbox from the image.
func (s *Session) restore(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	saver, err := sandbox.SaverOf(s.opts.Engine)
	if err != nil {
		return nil, err
	}
	prepared, err := saver.Prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	box, err := prepared.Restore(ctx, s.opts.Image)
	if err != nil {
		return nil, errors.Join(err, prepared.Stop(context.WithoutCancel(ctx)))
	}
	return box, nil
}

// takeOver attaches to the kernel of a sandbox that was saved, and counts the files that are there as known. A sandbox that was saved without a
// kernel gets a new one later, as any.
func (s *Session) takeOver(ctx context.Context, reseed bool) error {
	if kernels := s.link.Kernels(); len(kernels) > 0 {
		k, err := kernel.Attach(ctx, s.link, s.kernelConfig(reseed), kernels[0])
		if err != nil {
			return s.explain(err)
		}
		s.kernel, s.pristine = k, reseed
		if err := s.equip(ctx); err != nil {
			return s.explain(err)
		}
	}
	_, err := s.changes(ctx)
	return err
}

// Save writes the session to files in dir, an empty folder, when no execution runs any more. With keep it goes on
// afterwards; without, it is closed, if saving succeeded. Its variables, files, threads and child processes are
// in the files; connections out of the sandbox are not.
func (s *Session) Save(ctx context.Context, dir string, keep bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := sandbox.SaverOf(s.opts.Engine); err != nil {
		return err
	}
	if s.box == nil || ended(s.box.Done()) || s.closed {
		return problem.New(problem.Unavailable, "session_lost", "there is nothing to save: the sandbox has ended")
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := s.kernel.Detach(ctx); err != nil {
		return fmt.Errorf("save: %w", s.explain(err))
	}
	s.kernel = nil
	s.dropScanner()
	_ = s.link.Close()
	err := s.box.(sandbox.Checkpointer).Checkpoint(ctx, dir, keep)
	if err == nil && !keep {
		s.closed, s.link, s.box = true, nil, nil
		return nil
	}
	if err != nil {
		err = s.explain(err)
	}
	return errors.Join(err, s.reconnect(context.WithoutCancel(ctx)))
}

// reconnect goes on with a sandbox that was saved, or could not be.
func (s *Session) reconnect(ctx context.Context) error {
	err := s.rejoin(ctx)
	if err != nil && !s.adopted {
		err = errors.Join(err, s.drop())
	}
	return err
}

// Lost is closed when the session's sandbox has ended without Close or Save, as one that ran out of memory. The next
// execution starts another.
func (s *Session) Lost() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.box == nil {
		gone := make(chan struct{})
		if !s.closed {
			close(gone)
		}
		return gone
	}
	return s.box.Done()
}

// Trim has the interpreter give back memory that it does not use, before it is saved.
func (s *Session) Trim(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.explain(s.kernel.Trim(ctx))
}

// Rehearse runs a cell as a user would and forgets it, because what runs first runs slowly: in a new interpreter, whose code is
// still to be loaded, and in a restored sandbox, whose memory is.
func (s *Session) Rehearse(ctx context.Context) error {
	for e, err := range s.Execute(ctx, kernel.Request{Code: "print('', end='')\n1 + 1"}) {
		if err != nil {
			return fmt.Errorf("rehearse: %w", err)
		}
		if done, ok := e.(kernel.Done); ok && done.Outcome != kernel.OutcomeOK {
			return problem.New(problem.Unavailable, "rehearsal_failed", "a new session does not work: "+string(done.Outcome)+" "+done.Message)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kernel == nil {
		return problem.New(problem.Unavailable, "session_lost", "the session ended in its rehearsal")
	}
	s.pristine = true
	return s.explain(s.kernel.Forget(ctx))
}
