package egress

import "crypto/tls"

// LeafOf returns a certificate that an authority signs for a host.
func LeafOf(a *Authority, host string) (*tls.Certificate, error) { return a.leaf(host) }
