package live

import (
	"context"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// Kernels lists a session's interpreters. Needs auth.SessionsRead.
func (m *Manager) Kernels(ctx context.Context, who auth.Principal, session string) ([]record.Kernel, error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return nil, err
	}
	var all []record.Kernel
	err := m.PeekSession(ctx, who, session, func(_ context.Context, l Live) error {
		for _, name := range l.KernelNames() {
			all = append(all, m.describeKernel(session, name))
		}
		return nil
	})
	return all, err
}

func (m *Manager) describeKernel(session, name string) record.Kernel {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.seats[session]
	return record.Kernel{Name: name, Busy: s != nil && s.busy(name)}
}

// StartKernel starts another interpreter in a session. Needs auth.SessionsWrite. Problems: kernel_name, kernel_exists, too_many_kernels.
func (m *Manager) StartKernel(ctx context.Context, who auth.Principal, session, name string) (record.Kernel, error) {
	err := who.Require(auth.SessionsWrite)
	if err == nil {
		err = m.UseSession(ctx, who, session, func(ctx context.Context, l Live) error { return l.StartKernel(ctx, name) })
	}
	m.work.WriteAudit(ctx, who, "kernel.start", session, name, err)
	return record.Kernel{Name: name}, err
}

// RestartKernel begins a new interpreter in the place of one. Needs auth.SessionsExecute.
func (m *Manager) RestartKernel(ctx context.Context, who auth.Principal, session, name string) (record.Kernel, error) {
	err := who.Require(auth.SessionsExecute)
	if err == nil {
		err = m.UseSession(ctx, who, session, func(ctx context.Context, l Live) error {
			err := l.RestartKernel(ctx, name)
			if err == nil {
				m.stopParkedIn(session, name, errStopped)
			}
			return err
		})
	}
	m.notifyRestart(who, session, err)
	m.work.WriteAudit(ctx, who, "kernel.restart", session, name, err)
	return m.describeKernel(session, name), err
}

// notifyRestart has followers of changes hear of a session that has begun an interpreter anew: what they show of the former one is gone.
func (m *Manager) notifyRestart(who auth.Principal, session string, err error) {
	if err == nil && m.o.Restarted != nil {
		m.o.Restarted(who.Project, session)
	}
}

// RebootSession ends all that runs in a session, its code as well as its processes, as when a computer is switched off and on. Files stay, but for those in /dev/shm; of the kernels "main" alone is
// left, without variables. Needs auth.SessionsWrite.
func (m *Manager) RebootSession(ctx context.Context, who auth.Principal, session string) error {
	err := who.Require(auth.SessionsWrite)
	if err == nil {
		err = m.UseSession(ctx, who, session, func(ctx context.Context, l Live) error {
			m.mu.Lock()
			m.stopIn(session, "", errStopped)
			m.mu.Unlock()
			return l.Reboot(ctx)
		})
	}
	m.notifyRestart(who, session, err)
	m.work.WriteAudit(ctx, who, "session.reboot", session, "", err)
	return err
}

// StopKernel ends an interpreter other than "main", and what waits for it. Needs auth.SessionsWrite.
func (m *Manager) StopKernel(ctx context.Context, who auth.Principal, session, name string) error {
	err := who.Require(auth.SessionsWrite)
	if err == nil && name == mainKernel {
		err = problem.New(problem.KernelMain, "the main kernel cannot be stopped").WithHint("restart it, or delete the session")
	}
	if err == nil {
		err = m.UseSession(ctx, who, session, func(ctx context.Context, l Live) error {
			m.mu.Lock()
			m.stopIn(session, name, errStopped)
			m.mu.Unlock()
			return l.StopKernel(ctx, name)
		})
	}
	m.work.WriteAudit(ctx, who, "kernel.stop", session, name, err)
	return err
}

// stopIn stops the executions of a session, in one kernel or, where that is "", in all. The caller holds mu.
func (m *Manager) stopIn(session, kernel string, why error) {
	for _, t := range m.executions {
		if t.session == session && (kernel == "" || t.kernel == kernel) {
			t.stop(why)
		}
	}
}
