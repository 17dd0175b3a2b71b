package hub

import (
	"context"

	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
)

// Ports lists the TCP ports at which programs of a session listen. Needs auth.SessionsRead.
func (h *Hub) Ports(ctx context.Context, who auth.Principal, session string) (ports []process.Port, err error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return nil, err
	}
	err = h.peek(ctx, who, session, func(ctx context.Context, l Live) error {
		ports, err = l.Ports(ctx)
		return err
	})
	return ports, err
}

// UsePort connects to a port at which a program of a session listens, and has use work with the connection. It keeps the session in memory and unsaved meanwhile, until
// somebody else needs the session, which ends the context of use, and the connection. Needs auth.SessionsExecute. Problems: port_refused, too_many_processes, overloaded.
func (h *Hub) UsePort(ctx context.Context, who auth.Principal, session string, port int, use func(ctx context.Context, s guestlink.Stream) error) error {
	if err := who.Require(auth.SessionsExecute); err != nil {
		return err
	}
	leave, err := h.sockets.enter(session, who.Project)
	if err != nil {
		return err
	}
	defer leave()
	return h.yielding(ctx, who, session, h.acquire, func(ctx context.Context, l Live) error {
		stream, err := l.DialPort(ctx, port)
		if err != nil {
			return err
		}
		defer func() { _ = stream.Close() }()
		defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
		return use(ctx, stream)
	})
}
