package jupyter

import (
	"context"
	"errors"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// end deletes a kernel, and tells its clients.
func (s *server) end(ctx context.Context, who auth.Principal, p place) error {
	k := s.present(p.id)
	if k != nil {
		k.abort()
	}
	var err error
	if p.personal {
		err = s.stopPersonalKernel(ctx, who, p)
	} else {
		err = s.Hub.DeleteSession(ctx, who, p.session.ID)
	}
	if k != nil && (err == nil || problem.Is(err, problem.NotFound)) {
		k.die()
	}
	return err
}

// interrupt interrupts the code of a kernel that runs, whichever client or surface had it run.
func (s *server) interrupt(ctx context.Context, who auth.Principal, p place) error {
	if k := s.present(p.id); k != nil {
		if id, handled := k.interrupt(); id != "" {
			_, err := s.Hub.InterruptExecution(ctx, who, id)
			return err
		} else if handled {
			return nil
		}
	}
	for _, state := range []hub.ExecutionState{hub.ExecutionRunning, hub.ExecutionQueued} {
		list, err := s.Hub.Executions(ctx, who, hub.ExecutionFilter{Session: p.session.ID, Kernel: p.kernel, State: state}, hub.Page{Limit: 100})
		if err != nil {
			return err
		}
		var failed error
		for _, e := range list.Items {
			_, err := s.Hub.InterruptExecution(ctx, who, e.ID)
			failed = errors.Join(failed, err)
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// restart begins a new interpreter. Requests that wait for the old one are not answered by the new one.
func (s *server) restart(ctx context.Context, who auth.Principal, p place) error {
	k := s.join(p)
	defer s.leave(k)
	k.abort()
	k.restarting()
	k.tell(stateStarting, nil) // clients take the state restarting for a kernel that has died, and tell people so
	_, err := s.Hub.RestartKernel(ctx, who, p.session.ID, p.kernel)
	if p.personal && problem.Has(err, problem.KernelNotFound) { // it was begun after the state that the session has gone back to
		_, err = s.Hub.StartKernel(ctx, who, p.session.ID, p.kernel)
	}
	if err == nil {
		k.renewed()
	}
	k.tell(stateIdle, nil)
	return err
}
