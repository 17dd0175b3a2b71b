package egress

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

type kind int

const (
	public  kind = iota
	private      // of a network of its own, or of none
	special      // of this machine, or of a service that tells machines their credentials
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, t := range texts {
		all = append(all, netip.MustParsePrefix(t))
	}
	return all
}

// The addresses that are not of the public internet: IANA's registries of special-purpose addresses, and the ranges that lead to IPv4 addresses within IPv6 ones, since
// what they lead to cannot be seen.
var (
	privatePrefixes = prefixes(
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
		"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
	)
	// Loopback, "this machine", and where clouds tell machines their credentials: AWS, Azure, Google and others; AWS's containers, of EKS also by IPv6; Alibaba; AWS by IPv6; Azure's agent; Oracle;
	// Scaleway; Google by IPv6.
	specialPrefixes = prefixes("127.0.0.0/8", "0.0.0.0/8", "::1/128", "::/128", "169.254.169.254/32", "169.254.170.2/32", "169.254.170.23/32", "fd00:ec2::23/128", "100.100.100.200/32",
		"fd00:ec2::254/128", "168.63.129.16/32", "192.0.0.192/32", "169.254.42.42/32", "fd00:42::42/128", "fd20:ce::254/128")
	// publicSix is all of IPv6 that IANA has given out for the public internet.
	publicSix = netip.MustParsePrefix("2000::/3")
)

func kindOf(a netip.Addr) kind {
	a = a.Unmap().WithZone("")
	holds := func(p netip.Prefix) bool { return p.Contains(a) }
	switch {
	case slices.ContainsFunc(specialPrefixes, holds):
		return special
	case slices.ContainsFunc(privatePrefixes, holds), !a.IsValid(), a.Is6() && !publicSix.Contains(a):
		return private
	}
	return public
}

// IsPublic says whether an address is one of the public internet, and none of this machine's.
func IsPublic(a netip.Addr) bool {
	return kindOf(a) == public && !slices.Contains(ownAddresses(), a.Unmap().WithZone(""))
}

// ownFor is for how long this machine's addresses are known.
const ownFor = 10 * time.Second

var own struct {
	sync.Mutex
	addresses []netip.Addr
	until     time.Time
}

// ownAddresses returns the addresses of this machine's interfaces.
func ownAddresses() []netip.Addr {
	own.Lock()
	defer own.Unlock()
	if time.Now().Before(own.until) {
		return own.addresses
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return own.addresses // as they were
	}
	own.addresses = nil
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own.addresses = append(own.addresses, p.Addr().Unmap().WithZone(""))
		}
	}
	own.until = time.Now().Add(ownFor)
	return own.addresses
}
