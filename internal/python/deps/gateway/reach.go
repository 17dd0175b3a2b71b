package gateway

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
)

// zone is how near to this machine an address is.
type zone int32

const (
	zoneUnknown zone = iota
	zonePublic
	zonePrivate // of a private network
	zoneMachine // of this machine
	zoneNever   // what no index has to do with: link-local addresses, among them those of clouds that give out credentials
)

var shared = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598

func zoneOf(a netip.Addr) zone {
	a = a.Unmap()
	switch {
	case a.IsLoopback():
		return zoneMachine
	case a.IsUnspecified(), a.IsMulticast(), a.IsLinkLocalUnicast():
		return zoneNever
	case a.IsPrivate(), shared.Contains(a):
		return zonePrivate
	}
	return zonePublic
}

// reach keeps an index from leading this machine to addresses that are nearer than its own: its pages and redirects name other hosts, and what is
// read there reaches a sandbox that builds from source. The index's own host is the user's choice. Behind a proxy, names are the proxy's to judge.
type reach struct {
	host string
	own  atomic.Int32
}

type hopKey struct{}

type hopMark struct{ own, direct bool }

func (r *reach) mark(ctx context.Context, own, direct bool) context.Context {
	return context.WithValue(ctx, hopKey{}, hopMark{own, direct})
}

// control is called with the address of each connection before it is made.
func (r *reach) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	mark, _ := ctx.Value(hopKey{}).(hopMark)
	at, err := netip.ParseAddrPort(address)
	if err != nil || !mark.direct {
		return nil
	}
	if mark.own {
		r.own.Store(int32(zoneOf(at.Addr())))
		return nil
	}
	return r.allow(ctx, at.Addr())
}

// literal checks a host that is an address, which a proxy would not have to look up.
func (r *reach) literal(ctx context.Context, host string) error {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return nil
	}
	return r.allow(ctx, a)
}

func (r *reach) allow(ctx context.Context, a netip.Addr) error {
	z := zoneOf(a)
	if z == zonePublic || z != zoneNever && z <= r.zone(ctx) {
		return nil
	}
	return errOutside
}

// zone returns that of the index's own host.
func (r *reach) zone(ctx context.Context) zone {
	if z := zone(r.own.Load()); z != zoneUnknown {
		return z
	}
	z := zonePublic
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", r.host)
	if err != nil {
		return z
	}
	for _, a := range addresses {
		if own := zoneOf(a); own != zoneNever {
			z = max(z, own)
		}
	}
	r.own.Store(int32(z))
	return z
}

// uncheckedTLS returns a configuration that takes any certificate, for hosts that the user has listed.
func uncheckedTLS(c *tls.Config) *tls.Config {
	if c == nil {
		c = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	c.InsecureSkipVerify = true
	return c
}
