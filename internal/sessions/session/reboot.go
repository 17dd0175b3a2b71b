package session

import (
	"context"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
)

// Reboot ends all that runs in the session, as when a computer is switched off and on: kernels and processes, with all that they have started. Files stay, but for those in /dev/shm. Afterwards the
// session has one kernel, kernel.Main, which begins anew. It waits for executions. After an error what ran may have ended. Problems: reboot_absent.
func (s *Live) Reboot(ctx context.Context) error {
	if err := s.running.Acquire(ctx, everything); err != nil {
		return problem.New(problem.GivenUp, "the request was canceled before it began").WithCause(err)
	}
	defer s.running.Release(everything)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.awake(ctx); err != nil {
		return err
	}
	s.dropScanner()
	s.touched.Store(true)
	if err := s.link.Reboot(ctx); err != nil {
		return explain(s.sandbox, err)
	}
	for name, k := range s.slots {
		k.end()
		if name != kernel.Main {
			delete(s.slots, name)
		}
	}
	if b, ok := s.sandbox.(sandbox.Booter); ok {
		return explain(s.sandbox, b.Boot(ctx))
	}
	return nil
}
