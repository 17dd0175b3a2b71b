package guestlink

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/machine/wire"
)

// mostPorts bounds how many ports a guest may tell of.
const mostPorts = 1000

// Ports lists the TCP ports at which programs of the sandbox listen.
func (l *Link) Ports(ctx context.Context) ([]process.Port, error) {
	body, err := l.command(ctx, wire.Request{Op: wire.OpPortList})
	if err != nil {
		return nil, fmt.Errorf("list the ports: %w", err)
	}
	var infos []wire.PortInfo
	if err := json.Unmarshal(body, &infos); err != nil {
		return nil, problem.New(problem.GuestFault, "the guest's list of ports cannot be read").WithCause(err)
	}
	var ports []process.Port
	for _, i := range infos[:min(len(infos), mostPorts)] {
		if address, err := netip.ParseAddr(i.Address); err == nil && i.Port > 0 && i.Port < 1<<16 {
			ports = append(ports, process.Port{Number: i.Port, Address: address.String()})
		}
	}
	return ports, nil
}

// Stream is a connection to a program of the sandbox.
type Stream = wire.Stream

// Copy is wire.Copy, for what moves bytes from and to a Stream.
func Copy(to io.Writer, from io.Reader) error { return wire.Copy(to, from) }

// DialPort connects to a port of the sandbox's own loopback interface. ctx bounds the call alone; the connection ends with Close and with the link. Problems: port_refused.
func (l *Link) DialPort(ctx context.Context, port int) (Stream, error) {
	if err := l.knowsProcesses(); err != nil {
		return nil, err
	}
	o, err := l.openLasting(ctx, wire.Request{Op: wire.OpPortDial, Port: port}, nil)
	if err != nil {
		return nil, err
	}
	return connection{o}, nil
}

// lasting is an operation that goes on after the call that began it.
type lasting struct {
	*wire.Channel
	response wire.Response
	ctx      context.Context // ends with the operation
	end      func()
}

// openLasting begins an operation and reads the guest's answer. ctx bounds the call alone.
func (l *Link) openLasting(ctx context.Context, req wire.Request, body []byte) (*lasting, error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	o := &lasting{ctx: own}
	ch, release, err := l.open(own, req, body)
	if err == nil {
		o.Channel, o.end = ch, func() { release(); cancel() }
		if o.response, _, err = l.respond(own, ch); err != nil {
			release()
		}
	}
	if !stop() && err == nil {
		release()
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return o, nil
}

type connection struct{ *lasting }

// Close ends both directions.
func (c connection) Close() error {
	c.end()
	return nil
}
