package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
)

// SQLite returns the path of the database's file, or "" when the database is a server.
func (c Config) SQLite() string {
	switch {
	case c.Store.Database == "":
		return filepath.Join(c.Folders.Data, "cove.db")
	case strings.HasPrefix(c.Store.Database, "postgres://"), strings.HasPrefix(c.Store.Database, "postgresql://"):
		return ""
	}
	return strings.TrimPrefix(c.Store.Database, "sqlite://")
}

// DatabaseAddress is the database as package store takes it.
func (c Config) DatabaseAddress() string {
	if file := c.SQLite(); file != "" {
		return file
	}
	return c.Store.Database
}

// Proxies are the networks of TrustedProxies.
func (s Serve) Proxies() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range s.TrustedProxies {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			address, alone := netip.ParseAddr(text)
			if alone != nil {
				return nil, fmt.Errorf("has addresses and networks such as 10.0.0.0/8, not %q", text)
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		out = append(out, network)
	}
	return out, nil
}
