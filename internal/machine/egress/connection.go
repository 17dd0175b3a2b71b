package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/wire"
)

// connection moves the bytes of one connection, and looks at the first that the session sends.
type connection struct {
	dialer *Dialer
	host   string
	port   int
	near   wire.Stream
	far    net.Conn

	sent, received atomic.Int64
}

// serve ends when both directions have ended, or when what is sent is not for this host.
func (p *connection) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(idlePatience, func() { cancel(errors.New("nothing was said for a long time")) })
	defer idle.Stop()
	stop := context.AfterFunc(ctx, p.end)
	defer stop()
	near := &metered{Stream: p.near, connection: p, idle: idle, ctx: ctx, cancel: cancel}
	first := &opening{from: near}
	said, spoken := p.listen(first)
	switch said {
	case speaksTLS:
		if err := p.mayTLS(first); err != nil {
			p.end()
			return err
		}
		if credentials := p.dialer.credentialsFor(p.host); len(credentials) > 0 {
			return p.http(ctx, near, first, credentials)
		}
	case speaksHTTP:
		return p.http(ctx, near, first, nil)
	case speaksOtherwise:
		if p.mustSpeak() {
			p.end()
			if len(first.kept) == 0 { // a connection that was made ahead of need, or to see who is there
				return nil
			}
			return refused(p.host, p.port, "neither TLS nor HTTP is spoken to it")
		}
	}
	p.join(near, first, spoken)
	if err := context.Cause(ctx); problem.Has(err, problem.DestinationRefused) {
		return err
	}
	return nil
}

// mustSpeak says whether nothing goes to the port before it is known whom it is for. At other ports, the far side may speak first.
func (p *connection) mustSpeak() bool { return p.port == 80 || p.port == 443 }

// listen finds out what the session speaks. At ports where the far side may speak first, as a mail server does, it returns what that has said when it does:
// then it is neither TLS nor HTTP.
func (p *connection) listen(first *opening) (kind int, spoken []byte) {
	if p.mustSpeak() {
		patience := time.AfterFunc(helloPatience, p.end)
		defer patience.Stop()
		return first.kind(), nil
	}
	heard := make(chan []byte, 1)
	go func() {
		b := make([]byte, 1)
		n, _ := p.far.Read(b) // what ends it shows in the next Read
		heard <- b[:n]
	}()
	said := make(chan int, 1)
	first.known = said
	go func() { said <- first.kind() }()
	select {
	case kind = <-said:
		first.known = nil
		_ = p.far.SetReadDeadline(time.Unix(1, 0)) // ends the Read above
		spoken = <-heard
		_ = p.far.SetReadDeadline(time.Time{})
		return kind, spoken
	case spoken = <-heard:
		return speaksLater, spoken
	}
}

func (p *connection) end() {
	_ = p.near.Close()
	_ = p.far.Close()
}

// join moves bytes both ways until both have ended.
func (p *connection) join(near *metered, first *opening, spoken []byte) {
	back := make(chan struct{})
	go func() {
		defer close(back)
		err := wire.Copy(near, io.MultiReader(bytes.NewReader(spoken), p.far))
		if err != nil {
			p.end()
			return
		}
		_ = p.near.CloseWrite()
	}()
	err := wire.Copy(p.far, first)
	if half, ok := p.far.(wire.WriteCloser); ok && err == nil {
		_ = half.CloseWrite()
	} else if err != nil {
		p.end()
	}
	<-back
}

// metered counts what a session sends and receives, and ends the connection when that is too much.
type metered struct {
	wire.Stream
	connection *connection
	idle       *time.Timer
	ctx        context.Context // of the connection
	cancel     context.CancelCauseFunc
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := m.Stream.Read(b)
	return n, m.count(&m.connection.sent, n, err)
}

func (m *metered) Write(b []byte) (int, error) {
	n, err := m.Stream.Write(b)
	return n, m.count(&m.connection.received, n, err)
}

func (m *metered) count(of *atomic.Int64, n int, err error) error {
	m.idle.Reset(idlePatience)
	of.Add(int64(n))
	meter := m.connection.dialer.o.Meter
	if meter.take(m.ctx, n); meter.spent() {
		over := refused(m.connection.host, m.connection.port, "the session has sent and received as much as it may")
		m.cancel(over)
		return over
	}
	return err
}
