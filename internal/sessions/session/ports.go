package session

import (
	"context"
	"sync"

	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
)

// Ports lists the TCP ports at which programs of the session listen.
func (s *Live) Ports(ctx context.Context) (ports []process.Port, err error) {
	err = s.reached(ctx, func(l *guestlink.Link) error {
		ports, err = l.Ports(ctx)
		return err
	})
	return ports, err
}

// DialPort connects to a port at which a program of the session listens. The session is not saved while the connection is open, which a save would break; it can be
// closed. Problems: port_refused, too_many_processes.
func (s *Live) DialPort(ctx context.Context, port int) (guestlink.Stream, error) {
	var stream guestlink.Stream
	err := s.reached(ctx, func(l *guestlink.Link) (err error) {
		if stream, err = l.DialPort(ctx, port); err == nil {
			s.connections.Add(1)
			s.touched.Store(true)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &counted{Stream: stream, over: sync.OnceFunc(func() { s.connections.Add(-1) })}, nil
}

// counted is a connection that is open until it is closed.
type counted struct {
	guestlink.Stream
	over func()
}

func (c *counted) Close() error {
	c.over()
	return c.Stream.Close()
}
