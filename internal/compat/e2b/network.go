package e2b

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"cove/internal/auth"
	"cove/internal/hub"
)

// everything are the ways to say all addresses.
var everything = []string{"0.0.0.0/0", "::/0"}

// network returns where a sandbox may connect to, as its client wants it and the server allows; nil is nowhere. closed says that its ports take the traffic token.
//
// E2B allows the whole internet unless a client says otherwise. Here it is what the server, the project and the key allow. Where a client both allows and denies, E2B has the allowing count and
// cove the denying, which is the same for what clients of E2B may write: names are allowed against a denial of everything.
func (s *server) network(ctx context.Context, who auth.Principal, n newSandbox) (out *hub.Network, closed bool, err error) {
	var in struct {
		Allow  []string        `json:"allowOut"`
		Deny   []string        `json:"denyOut"`
		Public *bool           `json:"allowPublicTraffic"`
		Mask   string          `json:"maskRequestHost"`
		Ports  []int           `json:"httpsPorts"`
		Rules  json.RawMessage `json:"rules"`
		Proxy  json.RawMessage `json:"egressProxy"`
	}
	if len(n.Network) > 0 {
		if err := json.Unmarshal(n.Network, &in); err != nil {
			return nil, false, invalid("network is not what E2B's API takes: " + err.Error())
		}
	}
	asked := func(text json.RawMessage) bool {
		return len(text) > 0 && string(text) != "null" && string(text) != "{}"
	}
	switch {
	case in.Mask != "":
		return nil, false, invalid("network.maskRequestHost: cove does not have it; programs in a sandbox see localhost as the host")
	case asked(in.Rules):
		return nil, false, invalid("network.rules: cove adds credentials to requests by its own API (credentials of a session's network), not by E2B's")
	case asked(in.Proxy):
		return nil, false, invalid("network.egressProxy: cove has none for a sandbox")
	}
	closed = in.Public != nil && !*in.Public
	all := func(list []string) bool {
		return slices.ContainsFunc(everything, func(word string) bool { return slices.Contains(list, word) })
	}
	switch {
	case len(in.Allow) > 0 && !all(in.Allow):
		out = &hub.Network{Allow: in.Allow}
	case n.Internet != nil && !*n.Internet, all(in.Deny):
		return nil, closed, nil
	default:
		if out, err = s.Hub.WidestNetwork(ctx, who); out == nil || err != nil {
			return nil, closed, err
		}
	}
	if !all(in.Deny) {
		out.Deny = in.Deny
	}
	return out, closed, nil
}

// changeNetwork gives a sandbox other rules, in the place of all that it had: what the request leaves out is as if it had never been asked for. Connections that there are end.
func (s *server) changeNetwork(c *call) error {
	b, err := s.find(c)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(http.MaxBytesReader(c.w, c.Body, mostBody))
	if err != nil {
		return invalid("the request is larger than 1 MiB, or did not come whole")
	}
	in := newSandbox{Network: text}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &struct {
			Internet **bool `json:"allow_internet_access"`
		}{&in.Internet}); err != nil {
			return invalid("the request is not the JSON that E2B's API takes: " + err.Error())
		}
	}
	network, _, err := s.network(c.Context(), c.who, in) // who may use its ports stays
	if err != nil {
		return err
	}
	if network == nil {
		network = &hub.Network{}
	}
	defer s.clocks.Alone(b.id)()
	row, err := s.Hub.Session(c.Context(), c.who, b.id)
	if err != nil {
		return err
	}
	r, ok := recordOf(row, kindSandbox)
	if !ok {
		return absent(c.PathValue("id"))
	}
	r.Network, r.Offline = in.Network, in.Internet != nil && !*in.Internet
	all, err := r.entries(kindSandbox, row.Metadata)
	if err == nil {
		_, err = s.Hub.ChangeSession(c.Context(), c.who, b.id, hub.SessionChange{Metadata: all, Network: network})
	}
	if err == nil {
		c.w.WriteHeader(http.StatusNoContent)
	}
	return err
}
