package oauth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/server/oauth"
)

const audience = "https://cove.example.com/mcp"

// issuer is an authorization server that publishes keys.
type issuer struct {
	*httptest.Server
	asked atomic.Int32 // for its keys

	mu    sync.Mutex
	set   jose.JSONWebKeySet
	extra []json.RawMessage // keys that the library does not know
	down  bool
	named string // what it calls itself; "": its address
	slow  chan struct{}
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		name := i.named
		if name == "" {
			name = i.URL
		}
		if i.down {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": name, "jwks_uri": i.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.asked.Add(1)
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.slow != nil {
			<-i.slow
		}
		keys := append([]json.RawMessage{}, i.extra...)
		for _, one := range i.set.Keys {
			text, _ := one.MarshalJSON()
			keys = append(keys, text)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": keys})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// key makes a key and publishes it.
func (i *issuer) key(t *testing.T, name string, private crypto.Signer) crypto.Signer {
	t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.set.Keys = append(i.set.Keys, jose.JSONWebKey{KeyID: name, Key: private.Public(), Use: "sig"})
	return private
}

func rsaKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func edKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// good are the claims of a token that is right.
func (i *issuer) good() map[string]any {
	return map[string]any{"iss": i.URL, "aud": audience, "sub": "ada", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "scope": "openid mcp"}
}

func sign(t *testing.T, alg jose.SignatureAlgorithm, key any, header map[string]any, claims map[string]any) string {
	t.Helper()
	o := &jose.SignerOptions{}
	for name, value := range header {
		o = o.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func with(claims map[string]any, changes ...any) map[string]any {
	out := map[string]any{}
	for name, value := range claims {
		out[name] = value
	}
	for n := 0; n < len(changes); n += 2 {
		if changes[n+1] == nil {
			delete(out, changes[n].(string))
		} else {
			out[changes[n].(string)] = changes[n+1]
		}
	}
	return out
}

// clock is a time that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (i *issuer) verifier(change func(*oauth.Options)) *oauth.Verifier {
	o := oauth.Options{Issuer: i.URL, Audience: func() string { return audience }, Scope: "mcp", Claim: "sub", Patience: 5 * time.Minute}
	if change != nil {
		change(&o)
	}
	return oauth.New(o)
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return problem.Of(err).Code
}

func part(v any) string {
	text, _ := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(text)
}

// TestGoodTokens: each kind of key, each form of scopes, and clocks that are a little off.
func TestGoodTokens(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	i.extra = []json.RawMessage{json.RawMessage(`{"kty":"AKP","kid":"r","alg":"ML-DSA-44","pub":"AAAA"}`), json.RawMessage(`{"kty":"oct","kid":"r","k":"c2VjcmV0"}`)}
	r, e, d := i.key(t, "r", rsaKey(t)), i.key(t, "e", ecKey(t)), i.key(t, "d", edKey(t))
	v := i.verifier(nil)
	now := time.Now()
	for name, token := range map[string]string{
		"RS256":         sign(t, jose.RS256, r, map[string]any{"kid": "r"}, i.good()),
		"ES256":         sign(t, jose.ES256, e, map[string]any{"kid": "e", "typ": "at+jwt"}, i.good()),
		"EdDSA":         sign(t, jose.EdDSA, d, map[string]any{"kid": "d", "typ": "JWT"}, i.good()),
		"without a kid": sign(t, jose.RS512, r, nil, i.good()),
		"audiences":     sign(t, jose.RS256, r, map[string]any{"kid": "r"}, with(i.good(), "aud", []string{"https://other.example.com", audience})),
		"scp, a list":   sign(t, jose.RS256, r, map[string]any{"kid": "r"}, with(i.good(), "scope", nil, "scp", []string{"mcp"})),
		"scp, a text":   sign(t, jose.RS256, r, map[string]any{"kid": "r"}, with(i.good(), "scope", nil, "scp", "openid mcp")),
		"just expired":  sign(t, jose.RS256, r, map[string]any{"kid": "r"}, with(i.good(), "exp", now.Add(-30*time.Second).Unix())),
		"just begun":    sign(t, jose.RS256, r, map[string]any{"kid": "r"}, with(i.good(), "nbf", now.Add(30*time.Second).Unix())),
	} {
		who, err := v.Verify(t.Context(), token)
		if err != nil || who.Issuer != i.URL || who.Claim != "sub" || who.Value != "ada" {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
	if n := i.asked.Load(); n != 1 {
		t.Errorf("the issuer was asked %d times for its keys", n)
	}
}

// TestBadTokens: whatever is not as it has to be is refused, with the right code, and without the token's text in the answer or the log.
func TestBadTokens(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	own := rsaKey(t)
	r, e := i.key(t, "r", own), i.key(t, "e", ecKey(t))
	public, err := x509.MarshalPKIXPublicKey(own.Public())
	if err != nil {
		t.Fatal(err)
	}
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	kid := map[string]any{"kid": "r"}
	right := sign(t, jose.RS256, r, kid, i.good())
	pieces := strings.Split(right, ".")
	now := time.Now()
	var log strings.Builder
	v := i.verifier(func(o *oauth.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for name, c := range map[string]struct{ token, code string }{
		"nothing":                   {"", "token_invalid"},
		"opaque":                    {"gho_16C7e42F292c6912E7710c838347Ae178B4a", "token_invalid"},
		"too long":                  {strings.Repeat("a", 20_000), "token_invalid"},
		"dots":                      {"..", "token_invalid"},
		"none":                      {part(map[string]any{"alg": "none"}) + "." + part(i.good()) + ".", "token_invalid"},
		"None, with a signature":    {part(map[string]any{"alg": "None", "kid": "r"}) + "." + pieces[1] + "." + pieces[2], "token_invalid"},
		"HS256, the PEM as secret":  {sign(t, jose.HS256, asPEM, kid, i.good()), "token_invalid"},
		"HS256, the DER as secret":  {sign(t, jose.HS256, public, kid, i.good()), "token_invalid"},
		"forged":                    {sign(t, jose.RS256, rsaKey(t), kid, i.good()), "token_invalid"},
		"with a key of its own":     {sign(t, jose.RS256, rsaKey(t), map[string]any{"kid": "r", "jwk": jose.JSONWebKey{Key: own.Public()}}, i.good()), "token_invalid"},
		"another key's name":        {sign(t, jose.ES256, e, kid, i.good()), "token_invalid"},
		"other claims":              {pieces[0] + "." + part(with(i.good(), "sub", "eve")) + "." + pieces[2], "token_invalid"},
		"no signature":              {pieces[0] + "." + pieces[1] + ".", "token_invalid"},
		"an unknown key":            {sign(t, jose.RS256, rsaKey(t), map[string]any{"kid": "other"}, i.good()), "token_invalid"},
		"a critical header":         {sign(t, jose.RS256, r, map[string]any{"kid": "r", "crit": []string{"x"}, "x": true}, i.good()), "token_invalid"},
		"expired":                   {sign(t, jose.RS256, r, kid, with(i.good(), "exp", now.Add(-2*time.Minute).Unix())), "token_invalid"},
		"without an end":            {sign(t, jose.RS256, r, kid, with(i.good(), "exp", nil)), "token_invalid"},
		"not yet":                   {sign(t, jose.RS256, r, kid, with(i.good(), "nbf", now.Add(time.Hour).Unix())), "token_invalid"},
		"another audience":          {sign(t, jose.RS256, r, kid, with(i.good(), "aud", "https://cove.example.com")), "token_invalid"},
		"no audience":               {sign(t, jose.RS256, r, kid, with(i.good(), "aud", nil)), "token_invalid"},
		"another issuer":            {sign(t, jose.RS256, r, kid, with(i.good(), "iss", i.URL+"/")), "token_invalid"},
		"a token for signing out":   {sign(t, jose.RS256, r, map[string]any{"kid": "r", "typ": "logout+jwt"}, i.good()), "token_invalid"},
		"bound to a key":            {sign(t, jose.RS256, r, kid, with(i.good(), "cnf", map[string]any{"jkt": "x"})), "token_invalid"},
		"an ID token":               {sign(t, jose.RS256, r, kid, with(i.good(), "at_hash", "x")), "token_invalid"},
		"without a holder":          {sign(t, jose.RS256, r, kid, with(i.good(), "sub", nil)), "token_invalid"},
		"no scope":                  {sign(t, jose.RS256, r, kid, with(i.good(), "scope", nil)), "token_scope"},
		"another scope":             {sign(t, jose.RS256, r, kid, with(i.good(), "scope", "openid mcp2 xmcp")), "token_scope"},
		"a scope that is no words":  {sign(t, jose.RS256, r, kid, with(i.good(), "scope", 5)), "token_invalid"},
		"JSON":                      {`{"payload":"` + pieces[1] + `","protected":"` + pieces[0] + `","signature":"` + pieces[2] + `"}`, "token_invalid"},
		"a holder that is a number": {sign(t, jose.RS256, r, kid, with(i.good(), "sub", 7)), "token_invalid"},
	} {
		who, err := v.Verify(t.Context(), c.token)
		if codeOf(err) != c.code || who.Value != "" {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
		if err != nil && len(c.token) > 50 && (strings.Contains(fmt.Sprint(err), c.token[:40]) || strings.Contains(log.String(), c.token[:40])) {
			t.Errorf("%s: the token is told: %v", name, err)
		}
	}
	if !strings.Contains(log.String(), "its audience is") {
		t.Errorf("the log does not say which audience a token of the issuer has: %s", log.String())
	}
}

// TestEmail: an address that the issuer has not verified is nobody's.
func TestEmail(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	key := i.key(t, "e", ecKey(t))
	v := i.verifier(func(o *oauth.Options) { o.Claim, o.Scope = "email", "" })
	for _, c := range []struct {
		verified any
		code     string
	}{{true, ""}, {"true", ""}, {false, "token_invalid"}, {nil, "token_invalid"}, {1, "token_invalid"}} {
		who, err := v.Verify(t.Context(), sign(t, jose.ES256, key, map[string]any{"kid": "e"}, with(i.good(), "scope", nil, "email", "ada@example.com", "email_verified", c.verified)))
		if codeOf(err) != c.code || err == nil && who.Value != "ada@example.com" {
			t.Errorf("%v: %+v %v", c.verified, who, err)
		}
	}
}

// TestKeysChange: a new key is taken when it is first seen, one that is gone is not for long, and a flood of names of keys asks the issuer hardly ever.
func TestKeysChange(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	var at clock
	v := i.verifier(func(o *oauth.Options) { o.Now = at.now })
	first := i.key(t, "1", ecKey(t))
	token := func(key crypto.Signer, name string) string {
		return sign(t, jose.ES256, key, map[string]any{"kid": name}, with(i.good(), "exp", time.Now().Add(100*time.Hour).Unix()))
	}
	look := func(token, code string) {
		t.Helper()
		if _, err := v.Verify(t.Context(), token); codeOf(err) != code {
			t.Errorf("%q is not %q: %v", codeOf(err), code, err)
		}
	}
	look(token(first, "1"), "")
	stranger := ecKey(t)
	var all sync.WaitGroup
	for n := range 200 {
		all.Go(func() {
			if _, err := v.Verify(t.Context(), token(stranger, fmt.Sprint("flood", n))); codeOf(err) != "token_invalid" {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if n := i.asked.Load(); n != 1 { // a moment ago
		t.Errorf("the issuer was asked %d times", n)
	}
	i.mu.Lock()
	i.set.Keys = nil
	i.mu.Unlock()
	second := i.key(t, "2", ecKey(t))
	at.ahead.Store(int64(11 * time.Second))
	look(token(second, "2"), "")
	look(token(first, "1"), "token_invalid")
	if n := i.asked.Load(); n != 2 {
		t.Errorf("the issuer was asked %d times", n)
	}

	// An issuer that does not answer: what is known is used for an hour, what is not known is nobody's mistake.
	i.mu.Lock()
	i.down = true
	i.mu.Unlock()
	at.ahead.Store(int64(30 * time.Minute))
	look(token(second, "2"), "")
	at.ahead.Store(int64(31 * time.Minute))
	look(token(stranger, "3"), "issuer_unavailable")
	at.ahead.Store(int64(2 * time.Hour))
	look(token(second, "2"), "issuer_unavailable")
	look(token(second, "2"), "issuer_unavailable")
	i.mu.Lock()
	i.down = false
	i.mu.Unlock()
	look(token(second, "2"), "issuer_unavailable") // it was asked a moment ago
	at.ahead.Store(int64(2*time.Hour + 11*time.Second))
	look(token(second, "2"), "")
}

// TestTheIssuerIsSlow: requests that wait for it end with their clients, are bounded, and share one question.
func TestTheIssuerIsSlow(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	key := i.key(t, "1", ecKey(t))
	i.slow = make(chan struct{})
	v := i.verifier(nil)
	token := sign(t, jose.ES256, key, map[string]any{"kid": "1"}, i.good())
	gone, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := v.Verify(gone, token)
		left <- err
	}()
	cancel()
	if err := <-left; codeOf(err) != string(problem.GivenUp) {
		t.Errorf("%v", err)
	}
	codes := make(chan string, 300)
	for range 300 {
		go func() {
			_, err := v.Verify(t.Context(), token)
			codes <- codeOf(err)
		}()
	}
	for range 300 - 64 {
		if code := <-codes; code != "issuer_unavailable" {
			t.Errorf("%q", code)
		}
	}
	close(i.slow)
	for range 64 {
		if code := <-codes; code != "" {
			t.Errorf("%q", code)
		}
	}
	if n := i.asked.Load(); n != 1 {
		t.Errorf("the issuer was asked %d times", n)
	}
}

// TestCheck says what is wrong with an issuer in words that help.
func TestCheck(t *testing.T) {
	t.Parallel()
	answers := func(status int, text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, strings.ReplaceAll(text, "HOST", "http://"+r.Host))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	other := newIssuer(t)
	other.named = "https://other.example.com"
	empty := newIssuer(t)
	good := newIssuer(t)
	good.key(t, "1", ecKey(t))
	closed := httptest.NewServer(nil)
	closed.Close()
	for address, says := range map[string]string{
		closed.URL:                               "cannot be reached",
		answers(404, ""):                         "no description",
		answers(500, ""):                         "the status 500",
		answers(302, ""):                         "the status 302",
		answers(200, "<html>"):                   "cannot be read",
		answers(200, strings.Repeat(" ", 2<<20)): "cannot be read",
		other.URL:                                `calls itself "https://other.example.com"`,
		empty.URL:                                "no key for signatures",
		answers(200, `{"issuer":"HOST","jwks_uri":"http://example.com/keys"}`): "no https:// address",
		answers(200, `{"issuer":"HOST"}`):                                      "no https:// address",
		good.URL:                                                               "",
	} {
		v := oauth.New(oauth.Options{Issuer: address, Audience: func() string { return audience }, Claim: "sub"})
		err := v.Check(t.Context())
		if says == "" && err != nil || says != "" && (codeOf(err) != "issuer_unavailable" || !strings.Contains(problem.Of(err).Message, says)) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// TestWhereAnIssuerDescribesItself: with a path there are three places.
func TestWhereAnIssuerDescribesItself(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"/realms/a/.well-known/openid-configuration", "/.well-known/oauth-authorization-server/realms/a", "/.well-known/openid-configuration/realms/a"} {
		keys := newIssuer(t)
		keys.key(t, "1", edKey(t))
		mux := http.NewServeMux()
		s := httptest.NewServer(mux)
		t.Cleanup(s.Close)
		mux.HandleFunc(at, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"issuer":"%s/realms/a","jwks_uri":"%s/keys"}`, s.URL, keys.URL)
		})
		if err := oauth.New(oauth.Options{Issuer: s.URL + "/realms/a", Claim: "sub"}).Check(t.Context()); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	for scope, want := range map[string]string{"none": "", "nonesuch": "nonesuch", "mcp": "mcp"} {
		if got := oauth.Set(config.OAuth{Scope: scope}).Scope; got != want {
			t.Errorf("%s is %q", scope, got)
		}
	}
}
