package live

import (
	"context"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// Ports lists the TCP ports at which programs of a session listen. Needs auth.SessionsRead.
func (m *Manager) Ports(ctx context.Context, who auth.Principal, session string) (ports []process.Port, err error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return nil, err
	}
	err = m.PeekSession(ctx, who, session, func(ctx context.Context, l Live) error {
		ports, err = l.Ports(ctx)
		return err
	})
	return ports, err
}

// UsePort connects to a port at which a program of a session listens, and has use work with the connection. It keeps the session in memory and unsaved meanwhile, until
// somebody else needs the session, which ends the context of use, and the connection. Needs auth.SessionsExecute. Problems: port_refused, too_many_processes, overloaded.
func (m *Manager) UsePort(ctx context.Context, who auth.Principal, session string, port int, use func(ctx context.Context, s guestlink.Stream) error) error {
	if err := who.Require(auth.SessionsExecute); err != nil {
		return err
	}
	leave, err := m.sockets.enter(session, who.Project)
	if err != nil {
		return err
	}
	defer leave()
	return m.yielding(ctx, who, session, m.AcquireSession, func(ctx context.Context, l Live) error {
		stream, err := l.DialPort(ctx, port)
		if err != nil {
			return err
		}
		defer func() { _ = stream.Close() }()
		defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
		return use(ctx, stream)
	})
}

// UseLink is UsePort for who comes by a link. A session that is paused is loaded only where the link says so. Problems: session_asleep.
func (m *Manager) UseLink(ctx context.Context, l record.SessionLink, who auth.Principal, use func(ctx context.Context, s guestlink.Stream) error) error {
	if !l.Wakes && !m.inMemory(l.Session) {
		return problem.New(problem.SessionAsleep, "the session is paused, and this link does not wake it").WithHint("use the session, or make a link that wakes it")
	}
	return m.UsePort(ctx, who, l.Session, l.Port, use)
}

func (m *Manager) inMemory(session string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.seats[session]
	return s != nil && s.Live != nil
}
