package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/wire"
)

type sessionPort struct {
	machineFlags
	Port  int    `arg:"" optional:"" help:"The port in the session. Without one, the ports at which programs listen are listed."`
	Local string `short:"l" placeholder:"[ADDRESS:]PORT" help:"Where it is reached here; port 0 is any that is free (default: 127.0.0.1 and the same port)."`
	JSON  bool   `name:"json" help:"Print the ports, or where the port is reached, as JSON."`
	ownSignals
}

// Help is the long help.
func (sessionPort) Help() string {
	return `Has a port of this machine lead to one of the session, where a program listens, until Ctrl-C: open it in a browser, or with any client of TCP.
The session stays in memory meanwhile, and is not saved while a connection is open. Others on this machine reach the port as well.

Examples:

    cove session exec lab --detach -- python -m http.server 8000
    cove session port lab 8000
    cove session port lab 5000 --local 127.0.0.1:0
    cove session port lab`
}

func (c *sessionPort) run(ctx context.Context, p *Program) (int, error) {
	w := machineWork{machineFlags: c.machineFlags, command: "cove session port"}
	if c.Port == 0 {
		w.do = func(ctx context.Context, m machine) (int, error) { return 0, c.list(ctx, p, m) }
		return p.onMachine(ctx, w)
	}
	address, err := c.address()
	if err != nil {
		return 0, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		hint := "give another one with --local"
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = "something listens there already; --local 0 takes one that is free"
		}
		return 0, problem.New(problem.AddressInvalid, "cannot listen at "+oneLine(address)).WithHint(hint).WithCause(err)
	}
	defer func() { _ = listener.Close() }()
	w.do = func(ctx context.Context, m machine) (int, error) {
		at := listener.Addr().String()
		if c.JSON {
			if err := p.printLine(map[string]any{"port": c.Port, "address": at}); err != nil {
				return 0, err
			}
		} else {
			notef(p.Err, "port %d of session %s is at http://%s (and for any other protocol at %s); Ctrl-C ends that", c.Port, c.Name, at, at)
		}
		c.serve(ctx, p, m, listener)
		return 0, nil
	}
	return p.onMachine(ctx, w)
}

// address is where to listen.
func (c *sessionPort) address() (string, error) {
	if c.Port < 1 || c.Port > 65535 {
		return "", problem.New(problem.Usage, "a port is a number from 1 to 65535")
	}
	host, port := "127.0.0.1", strconv.Itoa(c.Port)
	if c.Local != "" {
		if _, err := strconv.Atoi(c.Local); err == nil {
			port = c.Local
		} else if host, port, err = net.SplitHostPort(c.Local); err != nil {
			return "", problem.New(problem.Usage, fmt.Sprintf("%q is neither a port nor an address with one", c.Local)).WithHint("write it like 8001 or 127.0.0.1:8001")
		}
	}
	return net.JoinHostPort(host, port), nil
}

func (c *sessionPort) list(ctx context.Context, p *Program, m machine) error {
	ports, err := m.Ports(ctx)
	if err != nil {
		return err
	}
	type row struct {
		Port    int    `json:"port"`
		Address string `json:"address"`
	}
	rows := []row{}
	for _, one := range ports {
		rows = append(rows, row{one.Number, one.Address})
	}
	if c.JSON {
		return p.printJSON(rows)
	}
	if len(rows) == 0 {
		notef(p.Err, "no program of the session listens at a port")
		return nil
	}
	w := newRows(p.Out, false)
	w.head("PORT", "ADDRESS")
	for _, r := range rows {
		fmt.Fprintf(w, "%d\t%s\n", r.Port, r.Address)
	}
	return w.Flush()
}

// serve leads connections to the session until ctx ends.
func (c *sessionPort) serve(ctx context.Context, p *Program, m machine, listener net.Listener) {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var open sync.WaitGroup
	defer open.Wait()
	said := ""
	var saying sync.Mutex
	dialing := make(chan struct{}, mostDialing)
	for {
		local, err := listener.Accept()
		if err != nil {
			return
		}
		open.Go(func() {
			defer func() { _ = local.Close() }()
			remote, err := dialPatiently(ctx, m, c.Port, dialing)
			if err != nil {
				saying.Lock()
				defer saying.Unlock()
				if text := oneLine(spoken(err)); text != said && ctx.Err() == nil {
					said = text
					fmt.Fprintln(p.Err, "cove: "+lang.Text(text))
				}
				return
			}
			wire.Join(ctx, local, remote)
		})
	}
}

const (
	// mostDialing is how many connections are made at a time: more would be refused by a server.
	mostDialing = 32
	// dialPatience bounds how long a connection is tried for that a server has refused for a while.
	dialPatience = time.Minute
)

// dialPatiently connects to a port as soon as a server lets it: a page with hundreds of files makes more connections in a moment than one may make requests.
func dialPatiently(ctx context.Context, m machine, port int, dialing chan struct{}) (guestlink.Stream, error) {
	for began := time.Now(); ; {
		select {
		case dialing <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		remote, err := m.DialPort(ctx, port)
		<-dialing
		if err == nil || time.Since(began) > dialPatience || !problem.Has(err, problem.RateLimited) && !problem.Has(err, problem.TooManyRequests) {
			return remote, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
