package guest

import (
	"context"
	"io"
	"net"
	"sync"

	"cove/internal/machine/wire"
)

// forward listens at a port of the loopback interface, for the programs of the sandbox, and hands each connection on to the host until ch ends.
func (g *guest) forward(ctx context.Context, conn *wire.Conn, ch *wire.Channel) error {
	if !g.forwards.CompareAndSwap(false, true) {
		return fault{wire.FaultInvalid, "there is a forwarded port already"}
	}
	defer g.forwards.Store(false)
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var connections sync.WaitGroup
	connections.Go(func() { admit(ctx, conn, listener, &connections) })
	defer connections.Wait()
	defer cancel()
	defer func() { _ = listener.Close() }()
	address, _ := listener.Addr().(*net.TCPAddr)
	if err := wire.WriteMessage(ch, wire.Response{Port: address.Port}, nil); err != nil {
		return nil
	}
	_, _ = io.Copy(io.Discard, ch) // nothing more is said; its end is what is waited for
	return nil
}

// admit takes connections until the listener is closed. Those beyond the limit wait in the listener's queue.
func admit(ctx context.Context, conn *wire.Conn, listener net.Listener, connections *sync.WaitGroup) {
	free := make(chan struct{}, wire.ForwardLimit)
	for {
		free <- struct{}{}
		local, err := listener.Accept()
		if err != nil {
			return
		}
		connections.Go(func() {
			defer func() { <-free }()
			carry(ctx, conn, local)
		})
	}
}

// carry gives the host one connection, until it has ended.
func carry(ctx context.Context, conn *wire.Conn, local net.Conn) {
	remote, err := conn.Open(ctx)
	if err != nil {
		_ = local.Close()
		return
	}
	wire.Join(ctx, local, remote)
}
