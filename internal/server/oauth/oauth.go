// Package oauth tells whom an access token of the operator's authorization server stands for. cove is a resource server: it gives out no tokens, and
// believes those of one issuer alone.
//
// Tokens are JWTs as RFC 9068 has them, signed by a key that the issuer publishes (RFC 8414 or OpenID Connect Discovery, RFC 7517), and made for this server
// (RFC 8707). Opaque tokens, which an issuer has to be asked about one by one (RFC 7662), are refused, and so are tokens that are bound to a key of the client's.
package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

const (
	// longestToken bounds a token, in bytes.
	longestToken = 16 << 10
	// skew is how far the issuer's clock may be off.
	skew = time.Minute
)

// algorithms are those of public keys. A secret that both sides have (HS256) would let anybody who knows the public key make tokens where the two are taken for each other.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}

// Options say whose tokens are taken.
type Options struct {
	Issuer string // its address, exactly as it calls itself
	// Audience is what tokens are made for. It never depends on a request: a client that chose it could bring a token that was made for another server.
	Audience func() string
	Scope    string           // that tokens have; "": none is needed
	Claim    string           // that names a token's holder: "sub"
	Log      *slog.Logger     // nil: no log
	Client   *http.Client     // that asks the issuer; nil: one of its own
	Now      func() time.Time // nil: time.Now
	Patience time.Duration    // bounds the wait for the issuer; 0: 5 s
}

// Set is what the operator's settings say. The audience depends on where the server listens.
func Set(c config.OAuth) Options {
	o := Options{Issuer: c.Issuer, Scope: c.Scope, Claim: c.Claim}
	if o.Scope == "none" {
		o.Scope = ""
	}
	return o
}

// Verifier looks at access tokens. It is safe for concurrent use.
type Verifier struct {
	o    Options
	keys *keys
}

// New returns a verifier, which asks nobody before it sees a token.
func New(o Options) *Verifier {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Patience = cmp.Or(o.Patience, patience)
	if o.Client == nil {
		o.Client = &http.Client{
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the operator has named one place
		}
	}
	return &Verifier{o: o, keys: &keys{o: o}}
}

// Check asks the issuer for its keys, in bounded time. Problems: issuer_unavailable, which says what is wrong in words for the operator.
func (v *Verifier) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, v.o.Patience)
	defer cancel()
	found, err := v.keys.fetch(ctx)
	if err == nil {
		v.keys.take(found)
	}
	return err
}

// Verify returns whom a token stands for. Problems: token_invalid, token_scope, issuer_unavailable. None of them, and nothing in the log, has the token.
func (v *Verifier) Verify(ctx context.Context, token string) (auth.Identity, error) {
	signed, err := parse(token)
	if err != nil {
		return auth.Identity{}, err
	}
	header := signed.Signatures[0].Protected
	set, err := v.keys.get(ctx, header.KeyID)
	if err != nil {
		return auth.Identity{}, err
	}
	// The library shifts no clock for the end of a token, and allows five minutes for its beginning.
	now := func() time.Time { return v.o.Now().Add(-skew) }
	fits := &candidates{signed: signed, keys: set}
	checked, err := oidc.NewVerifier(v.o.Issuer, fits, &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: names(), Now: now}).Verify(ctx, token)
	var expired *oidc.TokenExpiredError
	switch {
	case errors.As(err, &expired):
		return auth.Identity{}, invalid("it has expired")
	case err != nil && fits.failed:
		return auth.Identity{}, invalid("its signature is not right")
	case err != nil:
		return auth.Identity{}, v.refused(invalid("it is of another issuer, or not valid yet"), err)
	case checked.AccessTokenHash != "": // OpenID Connect Core, section 3.1.3.6
		return auth.Identity{}, v.refused(invalid("it is an ID token, which is for the client alone, and no access token"), errors.New("it has the claim at_hash"))
	case !slices.Contains(checked.Audience, v.o.Audience()):
		return auth.Identity{}, v.refused(invalid("it was made for another server"), fmt.Errorf("its audience is %.300q, not %q", checked.Audience, v.o.Audience()))
	}
	return v.holder(checked)
}

// refused notes why a token that the issuer has signed is not taken. The operator finds mistakes of the issuer's settings by it.
func (v *Verifier) refused(p *problem.Error, why error) error {
	v.o.Log.Info("an access token was refused", "reason", p.Message, "detail", why)
	return p
}

// parse reads a token and believes nothing of it.
func parse(token string) (*jose.JSONWebSignature, error) {
	if len(token) > longestToken {
		return nil, invalid("it is longer than 16 KiB")
	}
	if strings.Count(token, ".") != 2 {
		return nil, invalid("it is neither a key of this server nor a JWT; opaque tokens are not taken: have the authorization server make JWTs (RFC 9068) for this server")
	}
	signed, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil || len(signed.Signatures) != 1 {
		return nil, invalid("it cannot be read, or is not signed by one of " + strings.Join(names(), ", "))
	}
	switch kind, _ := signed.Signatures[0].Protected.ExtraHeaders[jose.HeaderType].(string); strings.TrimPrefix(strings.ToLower(kind), "application/") {
	case "", "jwt", "at+jwt":
		return signed, nil
	}
	return nil, invalid("its type is not that of an access token")
}

func names() []string {
	out := make([]string, 0, len(algorithms))
	for _, one := range algorithms {
		out = append(out, string(one))
	}
	return out
}

func invalid(why string) *problem.Error {
	return problem.New(problem.TokenInvalid, "the access token is not right: "+why).WithHint("get another from the authorization server, or send a key of this server")
}

// claims are what a token says beside what the library looks at.
type claims struct {
	Scope  words           `json:"scope"` // RFC 9068: words; some issuers send a list
	Scp    words           `json:"scp"`   // Entra's and Okta's
	Bound  *map[string]any `json:"cnf"`   // RFC 7800
	Email  any             `json:"email_verified"`
	Others map[string]any  `json:"-"`
}

// holder reads whom a token that is right stands for, and whether it may be used here.
func (v *Verifier) holder(token *oidc.IDToken) (auth.Identity, error) {
	var c claims
	if err := errors.Join(token.Claims(&c), token.Claims(&c.Others)); err != nil {
		return auth.Identity{}, v.refused(invalid("its claims cannot be read"), err)
	}
	if c.Bound != nil {
		return auth.Identity{}, v.refused(invalid("it is bound to a key of the client's (DPoP or mutual TLS), which this server does not look at"), errors.New("it has the claim cnf"))
	}
	if v.o.Scope != "" && !has(append(c.Scope, c.Scp...), v.o.Scope) {
		return auth.Identity{}, problem.New(problem.TokenScope, "the access token has not the scope that this server takes: "+v.o.Scope).WithHint("ask the authorization server for a token with that scope")
	}
	value, _ := c.Others[v.o.Claim].(string)
	if value == "" {
		return auth.Identity{}, v.refused(invalid("it does not say who its holder is"), fmt.Errorf("its claim %q is no text or not there", v.o.Claim))
	}
	if v.o.Claim == "email" && c.Email != true && c.Email != "true" { // people write there what they like, at some issuers
		return auth.Identity{}, v.refused(invalid("the address of its holder is not verified"), fmt.Errorf("email_verified is %.50v", c.Email))
	}
	return auth.Identity{Issuer: v.o.Issuer, Claim: v.o.Claim, Value: value}, nil
}

// has says whether a scope is among those of a token. Entra has clients ask for api://cove/mcp and writes mcp.
func has(scopes words, scope string) bool {
	return slices.Contains(scopes, scope) || slices.Contains(scopes, scope[strings.LastIndexByte(scope, '/')+1:])
}
