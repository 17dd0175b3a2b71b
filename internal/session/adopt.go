package session

import (
	"context"
	"errors"
	"fmt"

	"cove/internal/link"
	"cove/internal/problem"
	"cove/internal/sandbox"
)

// adopt takes over Options.Running, a sandbox that runs already, with its kernel. After an error it is still whole, and still its keeper's.
func (s *Session) adopt(ctx context.Context) error {
	s.box = s.opts.Running
	clear(s.known)
	if err := s.rejoin(ctx); err != nil {
		s.box, s.link, s.kernel = nil, nil, nil
		return err
	}
	s.opts.Running = nil // if it is lost, the next one starts from the image
	s.adopted = true
	return nil
}

// rejoin connects to a sandbox that runs already: one that is being adopted, or one whose connection has ended and that lives on. It does not end
// a sandbox that it cannot connect to, which may be somebody else's.
func (s *Session) rejoin(ctx context.Context) error {
	if s.kernel != nil {
		s.kernel.Close()
		s.kernel = nil
	}
	s.dropScanner()
	l, err := link.Dial(ctx, s.box)
	if err != nil {
		return s.explain(err)
	}
	s.link = l
	if err := s.takeOver(ctx, false); err != nil {
		_ = s.link.Close() // or the next would start another kernel
		return err
	}
	return nil
}

// Leave lets go of the sandbox without ending it and returns it, when no execution runs any more: whoever keeps it can give it to another session as
// Options.Running. When ctx ends first, it lets go all the same, and code that still runs is interrupted when another session takes over. The
// session is closed then.
func (s *Session) Leave(ctx context.Context) (sandbox.Sandbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.box == nil || ended(s.box.Done()) || s.closed {
		return nil, problem.New(problem.Unavailable, "session_lost", "there is nothing to leave: the sandbox has ended")
	}
	var err error
	if s.kernel != nil {
		// Whoever takes over starts another, where this one has died.
		dead := ended(s.kernel.Dead())
		if err = s.kernel.Detach(ctx); err != nil && (dead || problem.Of(err).Code == "kernel_died") {
			err = nil
		}
	}
	s.dropScanner()
	_ = s.link.Close()
	box := s.box
	s.kernel, s.link, s.box, s.closed = nil, nil, nil, true
	if err != nil && !errors.Is(err, ctx.Err()) {
		return box, fmt.Errorf("leave the sandbox: %w", s.explain(err))
	}
	return box, nil
}
