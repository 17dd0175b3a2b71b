package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// issuer is an authorization server whose users always agree: RFC 6749 with PKCE, RFC 7591, RFC 8414, RFC 8707 and RFC 9207.
type issuer struct {
	t    *testing.T
	host *httptest.Server
	name string // its address
	key  *ecdsa.PrivateKey

	mu      sync.Mutex
	holder  string // the user who signs in
	clients map[string]struct {
		Redirects []string `json:"redirect_uris"`
	}
	codes   map[string]url.Values // what was asked for
	refresh map[string]url.Values
	said    []string // what clients did
}

func newIssuer(t *testing.T, holder string) *issuer {
	t.Helper()
	i := &issuer{t: t, holder: holder, clients: map[string]struct {
		Redirects []string `json:"redirect_uris"`
	}{}, codes: map[string]url.Values{}, refresh: map[string]url.Values{}}
	var err error
	if i.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	i.host = httptest.NewServer(mux)
	t.Cleanup(i.host.Close)
	i.name = i.host.URL + "/realms/staff"
	about := func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, map[string]any{
			"issuer": i.name, "authorization_endpoint": i.name + "/authorize", "token_endpoint": i.name + "/token", "registration_endpoint": i.name + "/register", "jwks_uri": i.name + "/keys",
			"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "refresh_token"}, "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"none"}, "scopes_supported": []string{"mcp"}, "authorization_response_iss_parameter_supported": true,
			"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256"},
		})
	}
	mux.HandleFunc("GET /.well-known/oauth-authorization-server/realms/staff", about)
	mux.HandleFunc("GET /realms/staff/.well-known/openid-configuration", about)
	mux.HandleFunc("GET /realms/staff/keys", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{KeyID: "1", Use: "sig", Algorithm: "ES256", Key: i.key.Public()}}})
	})
	mux.HandleFunc("POST /realms/staff/register", i.register)
	mux.HandleFunc("GET /realms/staff/authorize", i.authorize)
	mux.HandleFunc("POST /realms/staff/token", i.token)
	return i
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (i *issuer) register(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var about map[string]any
	if err := json.NewDecoder(r.Body).Decode(&about); err != nil {
		answerJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
		return
	}
	id := rand.Text()
	one := i.clients[id]
	for _, at := range about["redirect_uris"].([]any) {
		one.Redirects = append(one.Redirects, at.(string))
	}
	i.clients[id] = one
	i.said = append(i.said, "register")
	about["client_id"], about["token_endpoint_auth_method"] = id, "none"
	answerJSON(w, http.StatusCreated, about)
}

func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := r.URL.Query()
	client, known := i.clients[q.Get("client_id")]
	if !known || !slices.Contains(client.Redirects, q.Get("redirect_uri")) || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("resource") == "" {
		answerJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_request", "asked": q})
		return
	}
	code := rand.Text()
	i.codes[code] = q
	i.said = append(i.said, "authorize "+q.Get("resource")+" "+q.Get("scope"))
	back := url.Values{"code": {code}, "iss": {i.name}}
	if q.Has("state") {
		back.Set("state", q.Get("state"))
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	asked, known := i.codes[r.FormValue("code")]
	grant := r.FormValue("grant_type")
	switch grant {
	case "authorization_code":
		delete(i.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		known = known && base64.RawURLEncoding.EncodeToString(sum[:]) == asked.Get("code_challenge") && r.FormValue("redirect_uri") == asked.Get("redirect_uri")
	case "refresh_token":
		asked, known = i.refresh[r.FormValue("refresh_token")]
	}
	if !known || r.FormValue("resource") != asked.Get("resource") {
		answerJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	i.said = append(i.said, grant)
	again := rand.Text()
	i.refresh[again] = asked
	answerJSON(w, http.StatusOK, map[string]any{
		"access_token": i.sign(i.claims(asked.Get("resource"), "scope", asked.Get("scope"))), "token_type": "Bearer", "expires_in": 3600, "refresh_token": again, "scope": asked.Get("scope"),
	})
}

// claims are those of a token for a resource, changed: names and values.
func (i *issuer) claims(resource string, changes ...any) map[string]any {
	out := map[string]any{
		"iss": i.name, "aud": resource, "sub": i.holder, "scope": "mcp", "jti": rand.Text(), "client_id": "test", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	for n := 0; n < len(changes); n += 2 {
		maps.Copy(out, map[string]any{changes[n].(string): changes[n+1]})
	}
	return out
}

func (i *issuer) sign(claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{KeyID: "1", Key: i.key}}, (&jose.SignerOptions{}).WithType("at+jwt"))
	if err != nil {
		panic(fmt.Sprint("a token cannot be signed: ", err))
	}
	text, _ := json.Marshal(claims)
	signed, err := signer.Sign(text)
	if err != nil {
		panic(fmt.Sprint("a token cannot be signed: ", err))
	}
	out, _ := signed.CompactSerialize()
	return out
}
