package guestlink

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/wire"
)

// Forward is a port of a sandbox's own loopback interface whose connections arrive here: the way out of a sandbox that has no network, to one
// server of the host's. It is a net.Listener. A link has one at a time, and an ordinary sandbox has none.
type Forward struct {
	Port int // inside the sandbox, at 127.0.0.1

	link    *Link
	channel *wire.Channel
	release func()
	ctx     context.Context // of the connections
	cancel  context.CancelFunc
	free    chan struct{} // holds a token for each connection

	mu      sync.Mutex // held to begin a connection and to begin waiting for all
	closed  bool
	serving sync.WaitGroup
}

// closeGrace bounds how long a guest may take to give a port up.
const closeGrace = 5 * time.Second

var _ net.Listener = (*Forward)(nil)

// Forward has the guest listen at a port. ctx bounds the call alone; Close gives the port up and ends its connections, and so does the end of the link.
func (l *Link) Forward(ctx context.Context) (*Forward, error) {
	l.expect(1)
	f, err := l.forward(ctx)
	if err != nil {
		l.expect(-1)
		return nil, fmt.Errorf("forward a port: %w", err)
	}
	return f, nil
}

// expect counts those who accept channels that the guest opens. Without any, they are refused.
func (l *Link) expect(change int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forwards += change
	l.conn.Refuse(l.forwards == 0)
}

func (l *Link) forward(ctx context.Context) (*Forward, error) {
	o, err := l.openLasting(ctx, wire.Request{Op: wire.OpForward}, nil)
	if err != nil {
		return nil, err
	}
	port := o.response.Port
	if port < 1 || port > 65535 {
		o.end()
		return nil, problem.New(problem.GuestFault, fmt.Sprintf("the guest forwards port %d, which is none", port))
	}
	connections, end := context.WithCancel(o.ctx)
	return &Forward{Port: port, link: l, channel: o.Channel, release: o.end, ctx: connections, cancel: end, free: make(chan struct{}, wire.ForwardLimit)}, nil
}

// Accept returns the next connection that a program of the sandbox makes. Its error is net.ErrClosed after Close and when the link has ended.
func (f *Forward) Accept() (net.Conn, error) {
	select {
	case f.free <- struct{}{}:
	case <-f.ctx.Done():
		return nil, net.ErrClosed
	case <-f.link.Done():
		return nil, net.ErrClosed
	}
	ch, err := f.link.conn.Accept(f.ctx)
	if err != nil {
		<-f.free
		return nil, net.ErrClosed
	}
	// Servers want deadlines, which a channel has not.
	near, far := net.Pipe()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		_ = ch.Close()
		return nil, net.ErrClosed
	}
	f.serving.Go(func() {
		defer func() { <-f.free }()
		f.carry(ch, far)
	})
	return near, nil
}

// carry moves bytes between a channel and a pipe until either side has closed. A pipe has no half to close, so that a client that will say no more gets no
// more answers either.
func (f *Forward) carry(ch *wire.Channel, pipe net.Conn) {
	stop := context.AfterFunc(f.ctx, func() {
		_ = ch.Reset("the port was given up")
		_ = pipe.Close()
	})
	defer stop()
	var out sync.WaitGroup
	out.Go(func() {
		_, _ = io.Copy(ch, pipe) // however it ended, the connection is over
		_ = ch.Close()
		_ = pipe.Close()
	})
	_, _ = io.Copy(pipe, ch)
	_ = pipe.Close()
	out.Wait()
}

// Close gives the port up, ends its connections and waits until that is done. It is safe to call twice.
func (f *Forward) Close() error {
	f.cancel()
	f.mu.Lock()
	if !f.closed {
		f.link.expect(-1)
	}
	f.closed = true
	f.mu.Unlock()
	f.serving.Wait()
	_ = f.channel.CloseWrite()
	timeout := time.AfterFunc(closeGrace, f.release)
	defer timeout.Stop()
	_, _ = io.Copy(io.Discard, f.channel) // the guest ends the channel when nobody listens any more
	f.release()
	return nil
}

// Addr is the port as programs of the sandbox see it.
func (f *Forward) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: f.Port} }
