package egress

import (
	"crypto/tls"
	"net/netip"
	"testing"
	"time"
)

// LeafOf returns a certificate that an authority signs for a host.
func LeafOf(a *Authority, host string) (*tls.Certificate, error) { return a.leaf(host) }

// HaveAddresses has this machine have other addresses until the test ends.
func HaveAddresses(t *testing.T, addresses ...netip.Addr) {
	set := func(addresses []netip.Addr, until time.Time) {
		own.Lock()
		defer own.Unlock()
		own.addresses, own.until = addresses, until
	}
	set(addresses, time.Now().Add(time.Hour))
	t.Cleanup(func() { set(nil, time.Time{}) })
}
