package api

import (
	"context"
	"net/http"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/egress"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Network says where programs of a session may connect to.
type Network struct {
	Allow []string `json:"allow,omitempty" maxItems:"256" doc:"Hosts as example.com, *.example.com, 10.1.2.0/24, or * for the public internet, each with :PORTS for others than 80 and 443"`
	Deny  []string `json:"deny,omitempty" maxItems:"256" doc:"What is refused although it is allowed"`
	// Credentials are written with their values and read without.
	Credentials []Credential `json:"credentials,omitempty" maxItems:"32" doc:"What the server adds to requests, so that no code of the session has it"`
}

// Credential is a secret that the server adds to the requests of a session to a host by HTTPS.
type Credential struct {
	Host   string `json:"host" maxLength:"253" example:"api.example.com" doc:"One that the rules allow at port 443"`
	Header string `json:"header,omitempty" maxLength:"100" example:"Authorization" doc:"It has the value, in the place of what the program sends under that name"`
	Name   string `json:"name,omitempty" maxLength:"100" example:"API_KEY" doc:"Instead of a header: $API_KEY in the headers that the program sends stands for the value"`
	Value  string `json:"value,omitempty" maxLength:"8192" example:"Bearer sk-..." doc:"Needed when it is set, and never answered"`
}

func (n *Network) hub() *hub.Network {
	if n == nil {
		return nil
	}
	out := &hub.Network{Allow: n.Allow, Deny: n.Deny}
	for _, c := range n.Credentials {
		out.Credentials = append(out.Credentials, egress.Credential(c))
	}
	return out
}

func networkOf(n *hub.Network) *Network {
	if n == nil {
		return nil
	}
	out := &Network{Allow: n.Allow, Deny: n.Deny}
	for _, c := range n.Credentials {
		out.Credentials = append(out.Credentials, Credential{Host: c.Host, Header: c.Header, Name: c.Name})
	}
	return out
}

// NetworkConnection is one of a program of a session to another machine, that has ended or was refused.
type NetworkConnection struct {
	At       time.Time `json:"at" doc:"When it ended, or was refused"`
	Host     string    `json:"host" example:"api.example.com" doc:"The name that the program looked up, or the address that it named"`
	Port     int       `json:"port,omitempty" doc:"Missing where the name was refused when it was looked up"`
	Address  string    `json:"address,omitempty" doc:"That was connected to"`
	Refused  string    `json:"refused,omitempty" doc:"Why it was refused; missing where it was not"`
	Sent     int64     `json:"sent_bytes"`
	Received int64     `json:"received_bytes"`
	Seconds  float64   `json:"seconds"`
}

func networkConnectionOf(e egress.Event) NetworkConnection {
	return NetworkConnection{At: e.At.UTC(), Host: e.Host, Port: e.Port, Address: e.Address, Refused: e.Refused, Sent: e.Sent, Received: e.Received, Seconds: e.Took.Seconds()}
}

func (s *server) addNetwork() {
	add(s, operation{id: "network.list", method: http.MethodGet, path: "/sessions/{session}/network", tag: "network", action: auth.SessionsRead, summary: "List the connections of a session",
		about:  "The last 200 that its programs have made to other machines, and what they were refused, since the session was loaded into memory: the newest first.",
		errors: []problem.Code{problem.SessionNotFound}, example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/network`},
		func(ctx context.Context, who auth.Principal, in *SessionPath) (List[NetworkConnection], error) {
			all, err := s.o.Hub.NetworkConnections(ctx, who, in.Session)
			return List[NetworkConnection]{Items: each(all, networkConnectionOf)}, err
		})
}
