package hub

import (
	"context"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// Kernels lists a session's interpreters. Needs auth.SessionsRead.
func (h *Hub) Kernels(ctx context.Context, who auth.Principal, session string) ([]Kernel, error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return nil, err
	}
	var all []Kernel
	err := h.peek(ctx, who, session, func(_ context.Context, l Live) error {
		for _, name := range l.KernelNames() {
			all = append(all, h.kernel(session, name))
		}
		return nil
	})
	return all, err
}

func (h *Hub) kernel(session, name string) Kernel {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seats[session]
	return Kernel{Name: name, Busy: s != nil && s.busy(name)}
}

// StartKernel starts another interpreter in a session. Needs auth.SessionsWrite. Problems: kernel_name, kernel_exists, too_many_kernels.
func (h *Hub) StartKernel(ctx context.Context, who auth.Principal, session, name string) (Kernel, error) {
	err := who.Require(auth.SessionsWrite)
	if err == nil {
		err = h.use(ctx, who, session, func(ctx context.Context, l Live) error { return l.StartKernel(ctx, name) })
	}
	h.audit(ctx, who, "kernel.start", session, name, err)
	return Kernel{Name: name}, err
}

// RestartKernel begins a new interpreter in the place of one. Needs auth.SessionsExecute.
func (h *Hub) RestartKernel(ctx context.Context, who auth.Principal, session, name string) (Kernel, error) {
	err := who.Require(auth.SessionsExecute)
	if err == nil {
		err = h.use(ctx, who, session, func(ctx context.Context, l Live) error {
			err := l.RestartKernel(ctx, name)
			if err == nil {
				h.stopParkedIn(session, name, errStopped)
			}
			return err
		})
	}
	h.tellAnew(who, session, err)
	h.audit(ctx, who, "kernel.restart", session, name, err)
	return h.kernel(session, name), err
}

// tellAnew has followers of changes hear of a session that has begun an interpreter anew: what they show of the former one is gone.
func (h *Hub) tellAnew(who auth.Principal, session string, err error) {
	if err == nil {
		h.changes.tell(who.Project, Change{Kind: ChangedSession, ID: session, State: string(SessionActive)})
	}
}

// RebootSession ends all that runs in a session, its code as well as its processes, as when a computer is switched off and on. Files stay, but for those in /dev/shm; of the kernels "main" alone is
// left, without variables. Needs auth.SessionsWrite.
func (h *Hub) RebootSession(ctx context.Context, who auth.Principal, session string) error {
	err := who.Require(auth.SessionsWrite)
	if err == nil {
		err = h.use(ctx, who, session, func(ctx context.Context, l Live) error {
			h.mu.Lock()
			h.stopIn(session, "", errStopped)
			h.mu.Unlock()
			return l.Reboot(ctx)
		})
	}
	h.tellAnew(who, session, err)
	h.audit(ctx, who, "session.reboot", session, "", err)
	return err
}

// StopKernel ends an interpreter other than "main", and what waits for it. Needs auth.SessionsWrite.
func (h *Hub) StopKernel(ctx context.Context, who auth.Principal, session, name string) error {
	err := who.Require(auth.SessionsWrite)
	if err == nil && name == mainKernel {
		err = problem.New(problem.KernelMain, "the main kernel cannot be stopped").WithHint("restart it, or delete the session")
	}
	if err == nil {
		err = h.use(ctx, who, session, func(ctx context.Context, l Live) error {
			h.mu.Lock()
			h.stopIn(session, name, errStopped)
			h.mu.Unlock()
			return l.StopKernel(ctx, name)
		})
	}
	h.audit(ctx, who, "kernel.stop", session, name, err)
	return err
}

// stopIn stops the executions of a session, in one kernel or, where that is "", in all. The caller holds mu.
func (h *Hub) stopIn(session, kernel string, why error) {
	for _, t := range h.executions {
		if t.session == session && (kernel == "" || t.kernel == kernel) {
			t.stop(why)
		}
	}
}
