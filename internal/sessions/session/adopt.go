package session

import (
	"context"
	"errors"
	"fmt"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
)

// adopt takes over Options.Running, a sandbox that runs already, with its kernel. After an error the sandbox is unchanged and still belongs to its keeper.
func (s *Live) adopt(ctx context.Context) error {
	s.sandbox = s.opts.Running
	clear(s.known)
	if err := s.rejoin(ctx); err != nil {
		s.sandbox, s.link = nil, nil
		return err
	}
	s.opts.Running = nil // if it is lost, the next one starts from the checkpoint
	s.adopted = true
	return nil
}

// rejoin connects to a sandbox that runs already: one that is being adopted, or one that runs on after its connection has ended. When connecting fails, rejoin
// leaves the sandbox running: it may be another session's.
func (s *Live) rejoin(ctx context.Context) error {
	names := map[string]int{}
	for name, k := range s.slots {
		names[name] = k.pid
	}
	if s.opts.Running != nil {
		names = s.opts.Kernels
	}
	s.forget()
	s.dropScanner()
	s.endNetwork()
	l, err := guestlink.Dial(ctx, s.sandbox, s.about())
	if err != nil {
		return explain(s.sandbox, err)
	}
	s.link = l
	s.expectProcesses()
	if err := errors.Join(s.beginNetwork(ctx), s.takeOver(ctx, names, false)); err != nil {
		s.endNetwork()
		_ = s.link.Close() // first, so that the kernels live on
		s.forget()
		return err
	}
	return nil
}

// Leave waits until no execution runs, releases the sandbox without ending it, and returns it: the caller can give it to another session as Options.Running.
// When ctx ends first, Leave releases the sandbox all the same, and code that still runs is interrupted when another session takes over. Afterwards the session
// is closed.
func (s *Live) Leave(ctx context.Context) (sandbox.Sandbox, error) {
	if err := s.running.Acquire(ctx, everything); err == nil {
		defer s.running.Release(everything)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sandbox == nil || ended(s.sandbox.Done()) || s.closed {
		return nil, problem.New(problem.SessionLost, "the session cannot be left: its sandbox has ended")
	}
	err := s.detach(ctx)
	s.dropScanner()
	s.endNetwork()
	_ = s.link.Close()
	sb := s.sandbox
	s.forget()
	s.link, s.sandbox, s.closed = nil, nil, true
	s.processes.Store(nil)
	if err != nil && !errors.Is(err, ctx.Err()) {
		return sb, fmt.Errorf("leave the sandbox: %w", explain(sb, err))
	}
	return sb, nil
}
