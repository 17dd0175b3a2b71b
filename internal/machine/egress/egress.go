// Package egress is the way out of a session: it decides by rules where programs of a sandbox may connect to, and makes the connections on the host. The sandbox itself has
// no interface to the world; see package guest for how what its programs send comes here.
//
// A destination is named by its host and port. What is decided is decided on what is dialled: a name is resolved here, each of its addresses is looked at,
// and the connection goes to one that passed. Names of addresses, such as decimal numbers, are no names. What then goes over the connection is looked at as far as
// it says whom it is for: TLS by its server name, HTTP by the host of each request.
package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"cove/internal/core/problem"
	"cove/internal/machine/wire"
)

// Bounds of one dialer.
const (
	lookUpPatience = 10 * time.Second
	dialPatience   = 10 * time.Second
	helloPatience  = 30 * time.Second // for the first bytes of a connection to a port of which they must be known
	idlePatience   = 15 * time.Minute // without a byte in either direction
	rememberNames  = 30 * time.Second // for which the addresses of a name are known
	rememberNone   = 3 * time.Second  // for which it is known that there are none: the server of names may have had no time
	mostNames      = 1024             // of which the addresses are known
	mostAddresses  = 16               // of a name, that are looked at
	lookUpsPerSec  = 20               // names that are new, after the first lookUpBurst: a name can carry data to the servers of its domain
	lookUpBurst    = 100
	dialsPerSec    = 100
	dialBurst      = wire.ConnectLimit
	refusalsPerSec = 5 // that are told, after the first refusalBurst: a program can ask for thousands of names in a second
	refusalBurst   = 200
)

// Resolver finds the addresses of a name, as net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options are what a dialer is made of.
type Options struct {
	// Operator says where sessions may connect to at all. Its rules for addresses are the only ones by which a private address can be reached.
	Operator Rules
	// Within are further rules that have to allow a destination, as a project's.
	Within []Rules
	// Session says where this one may, within that; nil: all that Operator says.
	Session *Rules
	// Meter bounds what a session sends and receives; nil: nothing does.
	Meter *Meter
	// Credentials are added to what the session sends to their hosts by HTTPS, for which Authority is needed, which can sign for these hosts.
	Credentials []Credential
	Authority   *Authority
	// Roots are the authorities that hosts with credentials are held to; nil: the machine's.
	Roots *x509.CertPool
	// Enter counts a connection that is to be made, until leave is called; its problem refuses it. nil: none is refused.
	Enter func() (leave func(), err error)
	// Tell is called, from many goroutines, when a connection has ended and when a destination was refused, for a bounded number of refusals in a second. It must return soon.
	Tell func(Event)
	// Resolver, Dial and Own are the system's where they are nil. Own returns the addresses of this machine.
	Resolver Resolver
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	Own      func() []netip.Addr
}

// Event is a connection that has ended, or a destination that was refused.
type Event struct {
	At       time.Time
	Host     string // a name or an address
	Port     int    // 0 when the name was refused when it was looked up
	Address  string // that was connected to
	Refused  string // why; "" for a connection
	Sent     int64  // bytes that the session sent
	Received int64
	Took     time.Duration
}

// Dialer is the way out of one session. It is safe for concurrent use.
type Dialer struct {
	o        Options
	layers   []Rules // each of which has to allow a destination
	lookUps  *rate.Limiter
	dials    *rate.Limiter
	refusals *rate.Limiter

	mu         sync.Mutex
	names      map[string]known
	lastTold   string // the destination that was refused last
	lastToldAt time.Time
}

type known struct {
	addresses []netip.Addr
	err       error
	until     time.Time
}

// New returns a dialer.
func New(o Options) *Dialer {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Own == nil {
		o.Own = ownAddresses
	}
	if o.Meter == nil {
		o.Meter = NewMeter(0, 0)
	}
	if o.Enter == nil {
		o.Enter = func() (func(), error) { return func() {}, nil }
	}
	if o.Tell == nil {
		o.Tell = func(Event) {}
	}
	d := &Dialer{o: o, layers: []Rules{o.Operator}, lookUps: rate.NewLimiter(lookUpsPerSec, lookUpBurst), dials: rate.NewLimiter(dialsPerSec, dialBurst),
		refusals: rate.NewLimiter(refusalsPerSec, refusalBurst), names: map[string]known{}}
	d.layers = append(d.layers, o.Within...)
	if o.Session != nil {
		d.layers = append(d.layers, *o.Session)
	}
	return d
}

// refused is the problem of a destination that the rules do not allow.
func refused(host string, port int, why string) error {
	to := host
	if port != 0 {
		to = fmt.Sprintf("%s:%d", host, port)
	}
	return problem.New(problem.DestinationRefused, fmt.Sprintf("%s may not be reached: %s", to, why))
}

// Allows returns the rules by which destinations are allowed, as they were written, with the names of secrets for a host.
func (d *Dialer) Allows() []string {
	rules := texts(d.layers[len(d.layers)-1].Allow)
	for _, c := range d.o.Credentials {
		if c.Name != "" {
			rules = append(rules, c.Host+" (by HTTPS; $"+c.Name+" in a header stands for a secret that the host of the sandbox puts there)")
		}
	}
	return rules
}

// LookUp returns nil when there is such a name and it may be reached at some port.
func (d *Dialer) LookUp(ctx context.Context, name string) error {
	err := d.mayName(name, 0)
	if err == nil {
		_, err = d.resolve(ctx, name, 0)
	}
	d.tellRefused(name, 0, err)
	return err
}

// tellRefused tells of a destination that was refused; of names once in a second, since programs ask for a name in several ways at a time.
func (d *Dialer) tellRefused(host string, port int, err error) {
	if !problem.Has(err, problem.DestinationRefused) {
		return
	}
	d.mu.Lock()
	again := port == 0 && d.lastTold == host && time.Since(d.lastToldAt) < time.Second
	d.lastTold, d.lastToldAt = host, time.Now()
	d.mu.Unlock()
	if !again && d.refusals.Allow() {
		d.o.Tell(Event{At: time.Now(), Host: host, Port: port, Refused: problem.Of(err).Message})
	}
}

// mayName says whether the rules allow a name at a port, at any port if that is 0.
func (d *Dialer) mayName(name string, port int) error {
	if !isName(name) {
		return refused(name, port, "that is no name of a host")
	}
	for _, rules := range d.layers {
		if why := rules.names(name, port); why != "" {
			return refused(name, port, why)
		}
	}
	return nil
}

// deniesNames says whether a rule denies a name.
func (d *Dialer) deniesNames() bool {
	return slices.ContainsFunc(d.layers, func(rules Rules) bool {
		return slices.ContainsFunc(rules.Deny, func(r Rule) bool { return r.all || r.name != "" })
	})
}

// mayAddress says whether an address may be connected to. direct is for one that a program has named itself, without a name.
func (d *Dialer) mayAddress(a netip.Addr, port int, direct bool) error {
	a = a.Unmap().WithZone("")
	if why := d.closedAddress(a, port, direct); why != "" {
		return refused(a.String(), port, why)
	}
	return nil
}

// closedAddress returns why an address may not be connected to, or "".
func (d *Dialer) closedAddress(a netip.Addr, port int, direct bool) string {
	for _, rules := range d.layers {
		if rules.deniesAddress(a, port) {
			return "a rule denies it"
		}
		if direct && !rules.allowsAddress(a, port) {
			return "no rule allows this address"
		}
	}
	kind := kindOf(a)
	if slices.Contains(d.o.Own(), a) { // private or not: a rule for the network that it is in does not open what listens on this machine
		kind = special
	}
	switch {
	case kind == public || d.o.Operator.namesAddress(a, port, kind == special):
		return ""
	case kind == special:
		return "it is this machine's own, or tells machines secrets; only a rule for exactly this address permits it (--allow-net ADDRESS, on a server the setting network.allow)"
	}
	return "it is not an address of the public internet; only a rule for its network permits it (--allow-net NETWORK such as 10.1.2.0/24, on a server the setting network.allow)"
}

// resolve returns the addresses of a name that may be connected to.
func (d *Dialer) resolve(ctx context.Context, name string, port int) ([]netip.Addr, error) {
	all, err := d.addresses(ctx, name)
	if err != nil {
		return nil, err
	}
	var good []netip.Addr
	closed := ""
	for _, a := range all {
		if why := d.closedAddress(a, port, false); why == "" {
			good = append(good, a)
		} else {
			closed = why
		}
	}
	if len(good) == 0 { // without the address, which can be one of this machine's
		return nil, refused(name, port, "it leads to an address that may not be reached: "+closed)
	}
	return good, nil
}

// addresses resolves a name, or returns what it led to a moment ago.
func (d *Dialer) addresses(ctx context.Context, name string) ([]netip.Addr, error) {
	now := time.Now()
	d.mu.Lock()
	k, ok := d.names[name]
	d.mu.Unlock()
	if ok && now.Before(k.until) {
		return k.addresses, k.err
	}
	if !d.lookUps.Allow() {
		return nil, problem.New(problem.DestinationUnreachable, "too many names were looked up in a short time")
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpPatience)
	defer cancel()
	all, err := d.o.Resolver.LookupNetIP(ctx, "ip", name) // as every program of this machine, by its hosts file too
	if err == nil && len(all) == 0 {
		err = errors.New("it has no addresses")
	}
	k = known{until: now.Add(rememberNames)}
	if err != nil {
		k.err, k.until = problem.New(problem.DestinationUnreachable, "there is no host "+name).WithCause(err), now.Add(rememberNone)
	}
	for _, a := range all[:min(len(all), mostAddresses)] {
		k.addresses = append(k.addresses, a.Unmap().WithZone(""))
	}
	slices.SortStableFunc(k.addresses, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() }) // IPv4 first: many machines have no way out by IPv6
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.names) >= mostNames {
		clear(d.names)
	}
	d.names[name] = k
	return k.addresses, k.err
}

// Dial connects this process itself to a host at a port, for what it fetches by the same rules.
func (d *Dialer) Dial(ctx context.Context, host string, port int) (net.Conn, error) {
	return d.dial(ctx, host, port)
}

// dial connects to a host at a port that the rules allow, or returns a problem.
func (d *Dialer) dial(ctx context.Context, host string, port int) (net.Conn, error) {
	var addresses []netip.Addr
	if a, err := netip.ParseAddr(host); err == nil {
		if err := d.mayAddress(a, port, true); err != nil {
			return nil, err
		}
		addresses = []netip.Addr{a}
	} else {
		if err := d.mayName(host, port); err != nil {
			return nil, err
		}
		if addresses, err = d.resolve(ctx, host, port); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	if err := d.dials.Wait(ctx); err != nil {
		return nil, problem.New(problem.DestinationUnreachable, "too many connections were made in a short time")
	}
	var errs []error
	for _, a := range addresses {
		conn, err := d.underlying()(ctx, "tcp", netip.AddrPortFrom(a, uint16(port)).String())
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, problem.New(problem.DestinationUnreachable, fmt.Sprintf("%s:%d cannot be reached", host, port)).WithCause(errors.Join(errs...))
}

func (d *Dialer) underlying() func(ctx context.Context, network, address string) (net.Conn, error) {
	if d.o.Dial != nil {
		return d.o.Dial
	}
	// What is decided above is looked at once more where nothing comes between it and the system.
	return (&net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return d.mayAddress(to.Addr(), int(to.Port()), false)
	}}).DialContext
}

// Connect connects a program's connection to a port of a name or an address; see guestlink.Network.
func (d *Dialer) Connect(ctx context.Context, host string, port int, conn wire.Stream, ready func() error) error {
	began := time.Now()
	if d.o.Meter.spent() {
		err := refused(host, port, "the session has sent and received as much as it may")
		d.tellRefused(host, port, err)
		return err
	}
	leave, err := d.o.Enter()
	if err != nil {
		err = refused(host, port, problem.Of(err).Message)
		d.tellRefused(host, port, err)
		return err
	}
	defer leave()
	far, err := d.dial(ctx, host, port)
	if err != nil {
		d.tellRefused(host, port, err)
		return err
	}
	defer func() { _ = far.Close() }()
	if err := ready(); err != nil {
		return err
	}
	p := &connection{dialer: d, host: host, port: port, near: conn, far: far}
	err = p.serve(ctx)
	e := Event{At: time.Now(), Host: host, Port: port, Address: far.RemoteAddr().String(), Sent: p.sent.Load(), Received: p.received.Load(), Took: time.Since(began)}
	if problem.Has(err, problem.DestinationRefused) {
		e.Refused = problem.Of(err).Message
	}
	d.o.Tell(e)
	return err
}

// isName says whether s can be a host's name, and is none that some system takes for an address. Names come in lower case and without a dot at the end.
func isName(s string) bool {
	if s == "" || len(s) > 253 || s == "localhost" || strings.HasSuffix(s, ".localhost") {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
		last = label
	}
	// No top-level domain begins with a digit, and the last part of each way to write an address does: 127.1, 0x7f000001, 2130706433.
	return last[0] < '0' || last[0] > '9'
}
