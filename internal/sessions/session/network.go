package session

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"cove/internal/machine/guestlink"
)

// quietFor is after how long without a byte a connection to the world no longer keeps the session from being saved, which breaks the connection: programs keep connections open that they
// may need again, and make them anew when they have ended.
const quietFor = 30 * time.Second

// SetNetwork has programs of the session reach what n lets them, from now on and also in the sandboxes that replace this one; with nil they reach nothing. Connections
// that were made before end. Problems: network_absent.
func (s *Live) SetNetwork(ctx context.Context, n guestlink.Network) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endNetwork()
	s.outward.Store(nil)
	if n != nil {
		s.outward.Store(&outward{Network: n})
	}
	if s.link == nil {
		return nil
	}
	return s.beginNetwork(ctx)
}

// May returns the rules by which programs of the session may connect to other machines, nil where they reach nothing, and whether they may become root and change the system.
func (s *Live) May() (reach []string, root bool) {
	if n := s.outward.Load(); n != nil {
		reach = n.Allows()
	}
	return reach, s.opts.Limits.System > 0
}

// beginNetwork serves the network over the present link. The caller holds mu.
func (s *Live) beginNetwork(ctx context.Context) error {
	n := s.outward.Load()
	if n == nil {
		return nil
	}
	stop, err := s.link.ServeNetwork(ctx, n)
	if err != nil {
		return explain(s.sandbox, err)
	}
	s.stopNetwork = stop
	return nil
}

// endNetwork ends what beginNetwork began. The caller holds mu.
func (s *Live) endNetwork() {
	if s.stopNetwork != nil {
		s.stopNetwork()
		s.stopNetwork = nil
	}
}

// outward is a session's network, which knows whether it is in use.
type outward struct {
	guestlink.Network

	mu   sync.Mutex
	open map[*timed]bool
}

func (o *outward) Connect(ctx context.Context, host string, port int, conn guestlink.Stream, ready func() error) error {
	t := &timed{Stream: conn}
	t.seen()
	o.mu.Lock()
	if o.open == nil {
		o.open = map[*timed]bool{}
	}
	o.open[t] = true
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.open, t)
	}()
	return o.Network.Connect(ctx, host, port, t, ready)
}

// busy says whether a connection has moved bytes a moment ago.
func (o *outward) busy() bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for t := range o.open {
		if time.Since(time.Unix(0, t.last.Load())) < quietFor {
			return true
		}
	}
	return false
}

// timed is a connection that knows when bytes were moved last.
type timed struct {
	guestlink.Stream
	last atomic.Int64 // nanoseconds since 1970
}

func (t *timed) seen() { t.last.Store(time.Now().UnixNano()) }

func (t *timed) Read(b []byte) (int, error) {
	n, err := t.Stream.Read(b)
	t.seen()
	return n, err
}

func (t *timed) Write(b []byte) (int, error) {
	n, err := t.Stream.Write(b)
	t.seen()
	return n, err
}
