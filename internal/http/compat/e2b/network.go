package e2b

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"cove/internal/http/bodybudget"
	"cove/internal/machine/egress"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// everything are the ways to say all addresses.
var everything = []string{"0.0.0.0/0", "::/0"}

// askedNetwork is what a client says of a sandbox's network.
type askedNetwork struct {
	Allow  []string          `json:"allowOut"`
	Deny   []string          `json:"denyOut"`
	Public *bool             `json:"allowPublicTraffic"`
	Mask   string            `json:"maskRequestHost"`
	Ports  []int             `json:"httpsPorts"`
	Rules  map[string][]rule `json:"rules"`
	Proxy  json.RawMessage   `json:"egressProxy"`
}

// rule is what is done with requests to a host.
type rule struct {
	Transform *struct {
		Headers map[string]string `json:"headers"`
	} `json:"transform"`
}

// portWord stands in the host that requests to a port name for its number.
const portWord = "${PORT}"

const longestHost = 255 // bytes

// readNetwork reads what a client says of a network. kept is what of it is to be remembered: no values of headers, which are secrets.
func readNetwork(text json.RawMessage) (in askedNetwork, kept json.RawMessage, err error) {
	if len(text) == 0 {
		return in, nil, nil
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return in, nil, invalid("network is not what E2B's API takes: " + bodybudget.WhyNotJSON(err))
	}
	switch asked := string(in.Proxy); {
	case asked != "" && asked != "null" && asked != "{}":
		return in, nil, invalid("network.egressProxy: cove has none for a sandbox")
	case !httpguts.ValidHostHeader(strings.ReplaceAll(in.Mask, portWord, "1")) || len(in.Mask) > longestHost:
		return in, nil, invalid("network.maskRequestHost is a host, which may have ${PORT} in it")
	case len(in.Rules) == 0:
		return in, text, nil
	}
	var all map[string]json.RawMessage
	err = json.Unmarshal(text, &all)
	shown := map[string][]rule{}
	for host, rules := range in.Rules {
		for _, one := range rules {
			if one.Transform != nil {
				names := *one.Transform
				names.Headers = map[string]string{}
				for name := range one.Transform.Headers {
					names.Headers[name] = ""
				}
				one.Transform = &names
			}
			shown[host] = append(shown[host], one)
		}
	}
	if err == nil {
		all["rules"], err = json.Marshal(shown)
	}
	if err == nil {
		kept, err = json.Marshal(all)
	}
	return in, kept, err
}

// credentials are the headers that rules add to requests.
func (in askedNetwork) credentials() (all []egress.Credential, err error) {
	for _, host := range slices.Sorted(maps.Keys(in.Rules)) {
		for _, one := range in.Rules[host] {
			if one.Transform == nil {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(one.Transform.Headers)) {
				value := one.Transform.Headers[name]
				if strings.Contains(value, "${e2b.") {
					return nil, invalid("network.rules: " + name + " names a token of the sandbox's identity, and cove gives sandboxes none")
				}
				all = append(all, egress.Credential{Host: strings.ToLower(host), Header: name, Value: value})
			}
		}
	}
	return all, nil
}

// network returns where a sandbox may connect to, as its client wants it and the server allows; nil is nowhere.
//
// E2B allows the whole internet unless a client says otherwise. Here it is what the server, the project and the key allow. Where a client both allows and denies, E2B has the allowing count and
// cove the denying, which is the same for what clients of E2B may write: names are allowed against a denial of everything. Rules add headers to what is sent to hosts by HTTPS, as cove's credentials do.
func (s *server) network(ctx context.Context, who auth.Principal, in askedNetwork, internet *bool) (out *hub.Network, err error) {
	credentials, err := in.credentials()
	if err != nil {
		return nil, err
	}
	all := func(list []string) bool {
		return slices.ContainsFunc(everything, func(word string) bool { return slices.Contains(list, word) })
	}
	switch {
	case len(in.Allow) > 0 && !all(in.Allow):
		out = &hub.Network{Allow: in.Allow}
	case internet != nil && !*internet, all(in.Deny):
	default:
		if out, err = s.Hub.WidestNetwork(ctx, who); err != nil {
			return nil, err
		}
	}
	if out == nil {
		if len(credentials) > 0 {
			err = invalid("network.rules: the sandbox has no network in which a header could be added")
		}
		return nil, err
	}
	if !all(in.Deny) {
		out.Deny = in.Deny
	}
	out.Credentials = credentials
	return out, nil
}

// changeNetwork gives a sandbox other rules, in the place of all that it had: what the request leaves out is as if it had never been asked for. Connections that there are end.
func (s *server) changeNetwork(c *call) error {
	b, err := s.find(c)
	if err != nil {
		return err
	}
	text, err := c.text(mostBody)
	if err != nil {
		return err
	}
	in := newSandbox{Network: text}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &struct {
			Internet **bool `json:"allow_internet_access"`
		}{&in.Internet}); err != nil {
			return invalid("the request is not the JSON that E2B's API takes: " + bodybudget.WhyNotJSON(err))
		}
	}
	asked, kept, err := readNetwork(in.Network)
	if err != nil {
		return err
	}
	network, err := s.network(c.Context(), c.who, asked, in.Internet) // who may use its ports stays
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
	r.Network, r.Offline = kept, in.Internet != nil && !*in.Internet
	all, err := r.entries(kindSandbox, row.Metadata)
	if err == nil {
		_, err = s.Hub.ChangeSession(c.Context(), c.who, b.id, hub.SessionChange{Metadata: all, Network: network})
	}
	if err == nil {
		c.w.WriteHeader(http.StatusNoContent)
	}
	return err
}
