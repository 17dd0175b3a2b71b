package hub

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// ConnectionChange is what an admin says about a connection. A nil Key keeps that which is there, for the same address.
type ConnectionChange struct {
	Provider string
	Address  string
	Key      *string
	Models   []string
	Default  string
}

// Trial is what a service said when it was tried.
type Trial struct {
	Models  []string       // that it lists
	Answer  string         // to a short question, where a model was named
	Problem *problem.Error // that the trial failed with; nil: none
	Took    time.Duration
}

// Connector reaches the services of models.
type Connector interface {
	// FromSettings returns the connections of the settings.
	FromSettings(ctx context.Context) []Connection
	// Try asks a service which models it has and, where one is named, a short question.
	Try(ctx context.Context, c Connection, model string) Trial
}

const (
	mostConnected  = 100 // models of one connection
	longestModel   = 200 // bytes
	longestAddress = 500
	longestSecret  = 1000

	// tryTime bounds a trial.
	tryTime = 30 * time.Second
)

// Connections lists the services of models that clients of the server can ask: those that were set here, and those of the settings that none of them replaces. Needs
// auth.ServerManage.
func (h *Hub) Connections(ctx context.Context, who auth.Principal) ([]Connection, error) {
	if err := who.Require(auth.ServerManage); err != nil {
		return nil, err
	}
	out, err := h.work.Store.Connections(ctx)
	if err != nil || h.o.Connector == nil {
		return out, err
	}
	for _, c := range h.o.Connector.FromSettings(ctx) {
		if !slices.ContainsFunc(out, func(o Connection) bool { return o.Provider == c.Provider }) {
			out = append(out, c)
		}
	}
	return out, nil
}

// SetConnection connects a service, or changes how. New turns ask it at once, on every server of the database. Needs auth.ServerManage. Problems: connection_invalid.
func (h *Hub) SetConnection(ctx context.Context, who auth.Principal, c ConnectionChange) (out Connection, err error) {
	if err = who.Require(auth.ServerManage); err == nil {
		err = c.check(true)
	}
	if err == nil {
		out, err = h.work.Store.SetConnection(ctx, c.Provider, func(row *Connection) error {
			key, err := c.key(*row)
			if err == nil {
				*row = Connection{Provider: c.Provider, Address: c.Address, Key: key, Models: c.Models, Default: c.Default, Changed: h.work.Now()}
			}
			return err
		})
	}
	h.work.WriteAudit(ctx, who, "connection.set", c.Provider, "", err)
	return out, err
}

// DeleteConnection removes a connection that was set here; those of the settings count again. Needs auth.ServerManage.
func (h *Hub) DeleteConnection(ctx context.Context, who auth.Principal, provider string) error {
	err := who.Require(auth.ServerManage)
	if err == nil {
		err = h.work.Store.DeleteConnection(ctx, provider)
	}
	h.work.WriteAudit(ctx, who, "connection.delete", provider, "", err)
	return err
}

// TryConnection tries a service without keeping anything: what it lists, and what the first of the named models says. Needs auth.ServerManage. Problems: connection_invalid;
// what the service refuses is in the Trial.
func (h *Hub) TryConnection(ctx context.Context, who auth.Principal, c ConnectionChange) (t Trial, err error) {
	if err = who.Require(auth.ServerManage); err == nil {
		err = c.check(false)
	}
	if err == nil {
		t, err = h.tryConnection(ctx, c)
	}
	h.work.WriteAudit(ctx, who, "connection.try", c.Provider, "", err)
	return t, err
}

func (h *Hub) tryConnection(ctx context.Context, c ConnectionChange) (Trial, error) {
	if h.o.Connector == nil {
		return Trial{}, problem.New(problem.ModelMissing, "this server cannot be connected to models")
	}
	there, err := h.work.Store.Connections(ctx)
	if err != nil {
		return Trial{}, err
	}
	row := Connection{Provider: c.Provider}
	if at := slices.IndexFunc(there, func(o Connection) bool { return o.Provider == c.Provider }); at >= 0 {
		row = there[at]
	}
	key, err := c.key(row)
	if err != nil {
		return Trial{}, err
	}
	name := c.Default
	if name == "" && len(c.Models) > 0 {
		name = c.Models[0]
	}
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	began := time.Now()
	t := h.o.Connector.Try(ctx, Connection{Provider: c.Provider, Address: c.Address, Key: key}, name)
	t.Took = time.Since(began)
	return t, nil
}

// key is the key of the changed connection. A key that is kept never goes to another address than the one that it was given for.
func (c ConnectionChange) key(row Connection) (string, error) {
	switch {
	case c.Key != nil:
		return *c.Key, nil
	case row.Key != "" && row.Address != c.Address:
		return "", invalidConnection("the address is another one, so the key has to be said again")
	}
	return row.Key, nil
}

func invalidConnection(why string) error { return problem.New(problem.ConnectionInvalid, why) }

// check returns the problem of a change that is not valid; kept says that it is to be kept, which takes models.
func (c ConnectionChange) check(kept bool) error {
	switch {
	case c.Provider != "openai" && c.Provider != "anthropic" && c.Provider != "ollama":
		return invalidConnection("the provider is openai, anthropic or ollama; a server that speaks OpenAI's protocol is openai with its address")
	case c.Key != nil && (len(*c.Key) > longestSecret || strings.ContainsFunc(*c.Key, func(r rune) bool { return r <= ' ' || r > '~' })):
		return invalidConnection("the key has more than 1,000 characters, or others than keys have")
	case c.Provider == "ollama" && c.Key != nil && *c.Key != "":
		return invalidConnection("Ollama takes no key")
	case kept && len(c.Models) == 0:
		return invalidConnection("no models are named")
	case len(c.Models) > mostConnected:
		return invalidConnection(fmt.Sprintf("more than %d models are named", mostConnected))
	case kept && c.Default != "" && !slices.Contains(c.Models, c.Default):
		return invalidConnection("the default is none of the models")
	}
	for _, name := range append(slices.Clone(c.Models), c.Default) {
		if name == "" && c.Default == "" && len(c.Models) > 0 && slices.Contains(c.Models, "") || len(name) > longestModel || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || r == ' ' }) {
			return invalidConnection("a model's name is empty, has more than 200 bytes, or has characters that names do not have")
		}
	}
	return checkAddress(c.Address)
}

// checkAddress takes private addresses: a server's admin may well run models beside it.
func checkAddress(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil, len(address) > longestAddress, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return invalidConnection("the address is none that begins with http:// or https:// and names a host")
	case u.User != nil:
		return invalidConnection("the address has a user or a password; send the key as key")
	case u.Fragment != "" || u.RawQuery != "" || strings.HasSuffix(address, "#") || strings.HasSuffix(address, "?"):
		return invalidConnection("the address has a query or a fragment")
	}
	return nil
}
