package app

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strconv"

	"cove/internal/server/ports"
)

// portNames is where ports of sessions have names of their own: as is set, or below localhost for a server that this machine alone reaches.
func (s *server) portNames() (ports.Address, error) {
	switch set := s.cfg.Serve.Ports; set {
	case "off":
		return ports.Address{}, nil
	case "":
		u, err := url.Parse(s.about.Address)
		if err != nil || !slices.ContainsFunc(s.cfg.Serve.Listen, onlyHere) {
			return ports.Address{}, nil
		}
		a := ports.Address{Scheme: cmp.Or(u.Scheme, "http"), Host: "localhost"}
		if u.Port() != "" {
			a.Port = ":" + u.Port()
		}
		return a, nil
	default:
		return ports.ParseAddress(set)
	}
}

// onlyHere says whether programs of this machine alone reach what listens at an address.
func onlyHere(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// fromOutside returns the addresses at which other machines reach what listens at addresses, as far as this machine knows them: none where it listens on its own loopback addresses alone.
func (s *server) fromOutside(addresses []net.Addr) (all []string) {
	const most = 4
	for _, a := range addresses {
		at, ok := a.(*net.TCPAddr)
		if !ok || at.IP.IsLoopback() {
			continue
		}
		ips := []net.IP{at.IP}
		if at.IP.IsUnspecified() {
			ips = nil
			own, err := net.InterfaceAddrs()
			if err != nil {
				continue
			}
			for _, one := range own {
				if n, ok := one.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
					ips = append(ips, n.IP)
				}
			}
		}
		for _, ip := range ips {
			all = append(all, s.reachable(&net.TCPAddr{IP: ip, Port: at.Port}))
		}
	}
	return all[:min(len(all), most)]
}

// reachable is an address as programs on this machine reach it.
func (s *server) reachable(a net.Addr) string {
	scheme := "http"
	if s.cfg.Serve.TLSCert != "" {
		scheme = "https"
	}
	at, ok := a.(*net.TCPAddr)
	if !ok {
		return "unix:" + a.String()
	}
	host := at.IP.String()
	if at.IP.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(at.Port))
}
