package daytona

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// networkWish is where a client wants a sandbox to connect to: networks of addresses, names, or nothing.
type networkWish struct {
	BlockAll *bool   `json:"networkBlockAll"`
	Networks *string `json:"networkAllowList"`
	Domains  *string `json:"domainAllowList"`
}

// mostDestinations bounds what a sandbox may be allowed to reach by its client.
const mostDestinations = 64

// network returns where a sandbox may connect to, as its record says and the server allows; nil is nowhere.
//
// Daytona allows the whole internet unless a client says otherwise. Here it is what the server, the project and the key allow. A client that names destinations the server does not allow is refused.
func (s *Server) network(ctx context.Context, who auth.Principal, r record) (*hub.Network, error) {
	if r.BlockAll {
		return nil, nil
	}
	networks, domains := words(r.Networks), words(r.Domains)
	if len(networks)+len(domains) == 0 {
		return s.Hub.WidestNetwork(ctx, who)
	}
	if len(networks)+len(domains) > mostDestinations {
		return nil, invalid("networkAllowList and domainAllowList have at most 64 destinations together")
	}
	out := &hub.Network{}
	for _, text := range networks {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, invalid("networkAllowList: " + bounded(text) + " is no network of addresses; write it like 10.1.2.0/24")
		}
		if p.Bits() == 0 {
			return s.Hub.WidestNetwork(ctx, who)
		}
		out.Allow = append(out.Allow, p.String())
	}
	for _, text := range domains {
		if text == "*" {
			return s.Hub.WidestNetwork(ctx, who)
		}
		out.Allow = append(out.Allow, text)
	}
	return out, nil
}

// words are the parts of a list with commas.
func words(list string) []string {
	var out []string
	for _, one := range strings.Split(list, ",") {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, one)
		}
	}
	return out
}

// setNetwork changes where a sandbox may connect to. What is left out stays.
func (s *Server) setNetwork(c *call) error {
	var in networkWish
	if err := c.read(&in); err != nil {
		return err
	}
	b, err := s.ready(c)
	if err != nil {
		return err
	}
	r := b.record
	in.apply(&r)
	network, err := s.network(c.Context(), c.who, r)
	if err != nil {
		return err
	}
	if network == nil {
		network = &hub.Network{}
	}
	if _, err := s.Hub.ChangeSession(c.Context(), c.who, b.id, hub.SessionChange{Network: network}); err != nil {
		return err
	}
	return s.edit(c, func(r *record) error {
		in.apply(r)
		r.Changed = time.Now().UTC()
		return nil
	})
}

func (n networkWish) apply(r *record) {
	if n.BlockAll != nil {
		r.BlockAll = *n.BlockAll
	}
	if n.Networks != nil {
		r.Networks = *n.Networks
	}
	if n.Domains != nil {
		r.Domains = *n.Domains
	}
}
