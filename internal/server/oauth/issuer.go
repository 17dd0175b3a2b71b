package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"cove/internal/core/problem"
)

// longestAnswer bounds what the issuer says, in bytes.
const longestAnswer = 1 << 20

// errNothing is that there is no such document.
var errNothing = errors.New("there is nothing")

func unavailable(why string, cause error) *problem.Error {
	return problem.New(problem.IssuerUnavailable, "the authorization server cannot be asked: "+why).WithCause(cause).
		WithHint("try again in a moment; keys of this server work meanwhile")
}

// fetch asks the issuer where its keys are, and for them.
func (k *keys) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	about, err := k.about(ctx)
	if err != nil {
		return nil, err
	}
	if !safe(about.Keys) {
		return nil, unavailable("its description names no https:// address for its keys (jwks_uri)", nil)
	}
	var set keySet
	if err := k.read(ctx, about.Keys, &set); errors.Is(err, errNothing) {
		return nil, unavailable("there is nothing where it says that its keys are (jwks_uri)", err)
	} else if err != nil {
		return nil, err
	}
	found := set.usable()
	if len(found) == 0 {
		return nil, unavailable("it has no key for signatures of "+strings.Join(names(), ", "), nil)
	}
	return found, nil
}

// description is what is used of an issuer's metadata.
type description struct {
	Issuer string `json:"issuer"`
	Keys   string `json:"jwks_uri"`
}

// about returns the issuer's metadata.
func (k *keys) about(ctx context.Context) (description, error) {
	var d description
	for _, at := range descriptions(k.o.Issuer) {
		err := k.read(ctx, at, &d)
		if errors.Is(err, errNothing) {
			continue
		}
		if err == nil && d.Issuer != k.o.Issuer {
			err = unavailable(fmt.Sprintf("it calls itself %.200q; oauth.issuer has to be exactly that", d.Issuer), nil)
		}
		return d, err
	}
	return d, unavailable("it has no description (/.well-known/openid-configuration or /.well-known/oauth-authorization-server); is oauth.issuer right?", nil)
}

// descriptions are the places of an issuer's metadata: OpenID Connect Discovery 1.0 section 4, RFC 8414 section 3, and section 5 for OpenID Connect.
func descriptions(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	root, below := u.Scheme+"://"+u.Host+"/.well-known/", strings.TrimSuffix(u.EscapedPath(), "/")
	return []string{strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration", root + "oauth-authorization-server" + below, root + "openid-configuration" + below}
}

// read gets a JSON document.
func (k *keys) read(ctx context.Context, at string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return unavailable("its address is not right", err)
	}
	r.Header.Set("Accept", "application/json")
	answer, err := k.o.Client.Do(r)
	if err != nil {
		why := "it cannot be reached"
		if ctx.Err() != nil {
			why = "it has not answered within " + k.o.Patience.String()
		}
		return unavailable(why, err)
	}
	defer func() { _ = answer.Body.Close() }()
	switch {
	case answer.StatusCode == http.StatusNotFound:
		return errNothing
	case answer.StatusCode != http.StatusOK:
		return unavailable(fmt.Sprintf("it answers with the status %d", answer.StatusCode), nil)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, longestAnswer+1))
	if err == nil && len(text) > longestAnswer {
		err = errors.New("more than 1 MiB")
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return unavailable("its answer cannot be read", err)
	}
	return nil
}

// safe says whether nobody on the way can change what an address says.
func safe(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}
