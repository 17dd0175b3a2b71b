package app

import (
	"net"
	"slices"
	"strings"
	"testing"
)

// TestFromOutside finds the addresses at which other machines reach a server: none of a loopback address, one of one address, and at most four of all addresses.
func TestFromOutside(t *testing.T) {
	t.Parallel()
	s := &server{}
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 8700} }
	if got := s.fromOutside([]net.Addr{at("127.0.0.1"), at("::1"), &net.UnixAddr{Name: "/run/cove.sock"}}); len(got) > 0 {
		t.Errorf("of this machine alone: %q", got)
	}
	if got := s.fromOutside([]net.Addr{at("127.0.0.1"), at("10.1.2.3")}); !slices.Equal(got, []string{"http://10.1.2.3:8700"}) {
		t.Errorf("of one address: %q", got)
	}
	s.cfg.Serve.TLSCert = "cert.pem"
	got := s.fromOutside([]net.Addr{at("0.0.0.0")})
	own, err := net.InterfaceAddrs()
	reachable := slices.ContainsFunc(own, func(a net.Addr) bool { n, ok := a.(*net.IPNet); return ok && n.IP.IsGlobalUnicast() })
	if err != nil || len(got) > 4 || len(got) == 0 && reachable || slices.ContainsFunc(got, func(a string) bool {
		return !strings.HasPrefix(a, "https://") || !strings.HasSuffix(a, ":8700") || strings.Contains(a, "0.0.0.0") || strings.Contains(a, "127.0.0.1")
	}) {
		t.Errorf("of all addresses: %q", got)
	}
}
