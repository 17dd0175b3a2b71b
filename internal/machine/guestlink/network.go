package guestlink

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/wire"
)

// Network answers what programs of a sandbox want of the world. Its methods are called from many goroutines.
type Network interface {
	// Allows says in words that people and models read where programs may connect to.
	Allows() []string
	// Certificates are what programs are to trust beside the authorities of the machine, PEM; nil for nothing.
	Certificates() []byte
	// LookUp returns nil when there is such a name and it may be reached.
	LookUp(ctx context.Context, name string) error
	// Connect connects to a port of a name or an IPv4 address, calls ready, moves bytes between there and conn, and returns when the connection has ended. When it returns an error
	// before it has called ready, the program's connection fails.
	Connect(ctx context.Context, host string, port int, conn Stream, ready func() error) error
}

// longestHost is how long a host's name can be; see RFC 1035.
const longestHost = 253

// ServeNetwork has programs of the sandbox reach what n lets them, until the link ends or stop is called, which ends the connections and waits for them. ctx bounds the call
// alone. Problems: network_absent.
func (l *Link) ServeNetwork(ctx context.Context, n Network) (stop func(), err error) {
	if err := l.knowsProcesses(); err != nil {
		return nil, problem.New(problem.NetworkAbsent, "the session was made by an older cove, in which there was no network").WithHint("make a new session, or take the network away from this one")
	}
	l.expect(1)
	o, err := l.openLasting(ctx, wire.Request{Op: wire.OpNetwork}, n.Certificates())
	if err != nil {
		l.expect(-1)
		return nil, problem.New(problem.NetworkAbsent, "the sandbox cannot be given a network").WithHint("this needs the gvisor engine, and a session that this cove has made").WithCause(err)
	}
	serving, cancel := context.WithCancel(o.ctx)
	var all sync.WaitGroup
	all.Go(func() { l.outbound(serving, n, &all) })
	return sync.OnceFunc(func() {
		cancel()
		l.expect(-1)
		all.Wait()
		_ = o.CloseWrite()
		timeout := time.AfterFunc(closeGrace, o.end)
		defer timeout.Stop()
		_, _ = io.Copy(io.Discard, o) // the guest ends the channel when it serves no network any more, so that another can begin
		o.end()
	}), nil
}

// outbound serves the channels that the guest opens. A guest that opens more at a time than it may waits.
func (l *Link) outbound(ctx context.Context, n Network, all *sync.WaitGroup) {
	free := make(chan struct{}, wire.NetworkLimit)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		ch, err := l.conn.Accept(ctx)
		if err != nil {
			return
		}
		all.Go(func() {
			defer func() { <-free }()
			stop := context.AfterFunc(ctx, func() { _ = ch.Reset("the network was taken away") })
			defer stop()
			l.serveOutbound(ctx, n, ch)
		})
	}
}

// serveOutbound answers one wish. What comes from the guest is bounded and looked at before anything is done with it.
func (l *Link) serveOutbound(ctx context.Context, n Network, ch *wire.Channel) {
	defer func() { _ = ch.Close() }()
	var o wire.Outbound
	if _, err := wire.ReadMessage(ch, wire.MessageLimit, &o); err != nil {
		return
	}
	err := checkOutbound(o)
	answered := false
	ready := func() error {
		answered = true
		return wire.WriteMessage(ch, wire.Response{}, nil)
	}
	switch {
	case err != nil:
	case o.Kind == wire.OutboundLookUp:
		if err = n.LookUp(ctx, o.Host); err == nil {
			_ = ready()
			_ = ch.CloseWrite()
			return
		}
	default:
		err = n.Connect(ctx, o.Host, o.Port, ch, ready)
	}
	if err != nil && !answered {
		_ = wire.WriteMessage(ch, wire.Response{Code: wire.FaultUnreachable, Message: problem.Of(err).Message}, nil)
	}
}

func checkOutbound(o wire.Outbound) error {
	wrong := func(what string) error { return problem.New(problem.GuestFault, "the guest wants "+what) }
	switch {
	case o.Kind != wire.OutboundLookUp && o.Kind != wire.OutboundConnect:
		return wrong("what is unknown")
	case o.Host == "" || len(o.Host) > longestHost || strings.ContainsFunc(o.Host, isOutsideNames):
		return wrong("a host that cannot be")
	case o.Kind == wire.OutboundConnect && (o.Port < 1 || o.Port > 65535):
		return wrong(fmt.Sprintf("port %d", o.Port))
	}
	if a, err := netip.ParseAddr(o.Host); err == nil && !a.Is4() {
		return wrong("an address that is not IPv4")
	}
	return nil
}

func isOutsideNames(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}
