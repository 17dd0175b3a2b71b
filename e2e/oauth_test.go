package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"cove/internal/testkit/testneeds"
)

const callPython = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"python","arguments":{"code":"6 * 7"}}}`

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// until waits for something that comes about by itself.
func (s *server) until(what string, look func() (said string, done bool)) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		said, done := look()
		if done {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("it does not come about that %s: %s", what, said)
		}
	}
}

// with sends a request with a token, "" for none, to a path.
func (s *server) with(token, method, path, body string) reply {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, text}
}

// beside runs a command on the server's database with the server's settings.
func (s *server) beside(args ...string) result {
	s.t.Helper()
	c := newCommand(s.t, args...)
	for _, pair := range s.cmd.Env {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "COVE_") && name != "COVE_RUNTIME" || name == "SSL_CERT_FILE" {
			c.setenv(pair)
		}
	}
	return c.run()
}

// TestMCPWithTokens: access tokens of the operator's authorization server are taken at /mcp beside keys, and the protocol's clients get theirs by themselves.
func TestMCPWithTokens(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	i := newIssuer(t, "ada-4f6c")
	s := startServer(t, "", testKey(t), "COVE_OAUTH_ISSUER="+i.name)
	for _, args := range [][]string{
		{"user", "add", "ada"}, {"user", "add", "vera", "--role", "viewer"}, {"key", "create", "--name", "ada's clients", "--user", "ada", "--holder", "ada-4f6c"},
		{"key", "create", "--name", "vera's clients", "--user", "vera", "--holder", "vera"}, {"user", "add", "bob"}, {"key", "create", "--name", "bob's clients", "--user", "bob", "--holder", "bob"},
	} {
		if r := s.beside(args...); r.code != 0 || strings.Contains(r.stdout, "cove_") {
			t.Fatalf("%v: %+v", args, r)
		}
	}
	s.until("the issuer is known", func() (string, bool) {
		r := s.with(i.sign(i.claims(s.base+"/mcp")), http.MethodPost, "/mcp", listTools)
		return string(r.body), r.status == 200
	})
	s.tokensAreRefused(i)
	s.tokensAreTaken(i)
	t.Run("clients", func(t *testing.T) {
		t.Run("Python", func(t *testing.T) {
			source := filepath.Join("testdata", "sdk", "mcp")
			folder := pythonFolder(t, source)
			s.clientOf(t, i, sdkCommand(t, folder, source, filepath.Join(folder, "venv", "bin", "python"), "oauth.py"), "ok oauth (Python)")
		})
		t.Run("TypeScript", func(t *testing.T) {
			source := filepath.Join("testdata", "sdk", "mcpjs")
			node, folder := nodeFolder(t, source)
			s.clientOf(t, i, sdkCommand(t, folder, source, node, "oauth.mjs"), "ok oauth (TypeScript)")
		})
		t.Run("Go", func(t *testing.T) {
			s.goClient(t)
		})
	})
	i.mu.Lock()
	for _, want := range []string{"register", "authorize " + s.base + "/mcp mcp", "authorization_code", "refresh_token"} {
		if !slices.Contains(i.said, want) {
			t.Errorf("no client has done this: %s; %q", want, i.said)
		}
	}
	i.mu.Unlock()
	s.tokensEnd(i)
}

// tokensAreRefused: what a client hears says what to do, and nothing is public but where tokens are from.
func (s *server) tokensAreRefused(i *issuer) {
	s.t.Helper()
	about := s.base + "/.well-known/oauth-protected-resource/mcp"
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		var said struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
			Methods  []string `json:"bearer_methods_supported"`
		}
		r := s.with("", http.MethodGet, path, "")
		r.into(s.t, &said)
		if r.status != 200 || said.Resource != s.base+"/mcp" || !slices.Equal(said.Servers, []string{i.name}) || !slices.Equal(said.Scopes, []string{"mcp"}) || !slices.Equal(said.Methods, []string{"header"}) ||
			r.header.Get("Access-Control-Allow-Origin") != "*" || r.header.Get("Content-Type") != "application/json" {
			s.t.Errorf("%s: %d %v %s", path, r.status, r.header, r.body)
		}
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource/other", "/.well-known/oauth-protected-resources", "/.well-known/oauth-authorization-server"} {
		if r := s.with("", http.MethodGet, path, ""); r.status != 404 && r.status != 401 {
			s.t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	bare := s.with("", http.MethodPost, "/mcp", callPython)
	if want := `Bearer resource_metadata="` + about + `", scope="mcp"`; bare.status != 401 || bare.header.Get("WWW-Authenticate") != want {
		s.t.Errorf("without a token: %d %q, not %q", bare.status, bare.header.Get("WWW-Authenticate"), want)
	}
	for name, c := range map[string]struct {
		token  string
		status int
		says   string // of the header
	}{
		"opaque":           {"opaque", 401, `error="invalid_token"`},
		"expired":          {i.sign(i.claims(s.base+"/mcp", "exp", time.Now().Add(-time.Hour).Unix())), 401, `error="invalid_token", error_description="the access token is not right: it has expired"`},
		"another audience": {i.sign(i.claims(s.base)), 401, `error="invalid_token"`},
		"another issuer":   {i.sign(i.claims(s.base+"/mcp", "iss", i.host.URL)), 401, `error="invalid_token"`},
		"another scope":    {i.sign(i.claims(s.base+"/mcp", "scope", "openid")), 403, `scope="mcp", error="insufficient_scope"`},
		"another holder":   {i.sign(i.claims(s.base+"/mcp", "sub", "eve")), 403, ""},
		"a wrong key":      {testKey(nil), 401, `error="invalid_token"`},
	} {
		r := s.with(c.token, http.MethodPost, "/mcp", callPython)
		if said := r.header.Get("WWW-Authenticate"); r.status != c.status || !strings.Contains(said, c.says) || c.says != "" && !strings.Contains(said, `resource_metadata="`+about+`"`) || c.says == "" && said != "" {
			s.t.Errorf("%s: %d %q %s", name, r.status, said, r.body)
		}
	}
}

// tokensAreTaken: a holder has the rights of the user, at /mcp alone; the audit log and quotas know the key.
func (s *server) tokensAreTaken(i *issuer) {
	s.t.Helper()
	token := i.sign(i.claims(s.base + "/mcp"))
	if r := s.with(token, http.MethodPost, "/mcp", callPython); r.status != 200 || !strings.Contains(string(r.body), `"result":"42"`) {
		s.t.Fatalf("%d %s", r.status, r.body)
	}
	if r := s.with(s.key, http.MethodPost, "/mcp", callPython); r.status != 200 || !strings.Contains(string(r.body), `"result":"42"`) {
		s.t.Errorf("with a key: %d %s", r.status, r.body)
	}
	if r := s.with(i.sign(i.claims(s.base+"/mcp", "sub", "vera")), http.MethodPost, "/mcp", callPython); r.status != 200 || !strings.Contains(string(r.body), `"isError":true`) {
		s.t.Errorf("a viewer: %d %s", r.status, r.body)
	}
	for _, path := range []string{"/api/v1/sessions", "/v1/models", "/metrics"} {
		if r := s.with(token, http.MethodGet, path, ""); r.status != 401 {
			s.t.Errorf("%s takes tokens: %d %s", path, r.status, r.body)
		}
	}
	key := s.keyOf("ada-4f6c")
	if r := s.beside("audit", "--json"); !strings.Contains(r.stdout, key) {
		s.t.Errorf("the audit log does not know %s: %+v", key, r)
	}
	bob := i.sign(i.claims(s.base+"/mcp", "sub", "bob"))
	s.must(http.MethodPut, "/api/v1/keys/"+s.keyOf("bob")+"/quota", json.RawMessage(`{"code":{"policy":"refuse","rules":["starts-programs"]}}`), nil)
	if r := s.with(bob, http.MethodPost, "/mcp", strings.Replace(callPython, "6 * 7", "import subprocess; subprocess.run(['true'])", 1)); r.status != 200 || !strings.Contains(string(r.body), "the rules for code do not let this run") {
		s.t.Errorf("what the key's quota forbids: %d %s", r.status, r.body)
	}
	if said := s.log.String(); strings.Contains(said, token) || strings.Contains(said, token[strings.LastIndexByte(token, '.'):]) {
		s.t.Error("the log has a token")
	}
}

// keyOf is the key that stands for somebody's tokens.
func (s *server) keyOf(holder string) string {
	s.t.Helper()
	var all []struct{ ID, Holder string }
	if r := s.beside("key", "ls", "--json"); json.Unmarshal([]byte(r.stdout), &all) != nil {
		s.t.Fatalf("%+v", r)
	}
	for _, one := range all {
		if strings.HasPrefix(one.Holder, "sub="+holder+" ") {
			return one.ID
		}
	}
	s.t.Fatalf("no key is for %s: %+v", holder, all)
	return ""
}

// clientOf runs a client that gets its token by itself.
func (s *server) clientOf(t *testing.T, i *issuer, cmd *exec.Cmd, told string) {
	t.Helper()
	cmd.Env = append(os.Environ(), "COVE_TEST_URL="+s.base+"/mcp", "PYTHONDONTWRITEBYTECODE=", "COVE_TEST_EXPIRED="+i.sign(i.claims(s.base+"/mcp", "exp", time.Now().Add(-time.Hour).Unix())))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), told) {
		t.Errorf("%v\n%s\nthe server: %s", err, out, s.log)
	}
}

// goClient has the Go SDK get a token.
func (s *server) goClient(t *testing.T) {
	t.Helper()
	h, err := sdkauth.NewAuthorizationCodeHandler(&sdkauth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &sdkauth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{ClientName: "test", RedirectURIs: []string{"http://127.0.0.1:1/callback"}}},
		AuthorizationCodeFetcher: func(ctx context.Context, a *sdkauth.AuthorizationArgs) (*sdkauth.AuthorizationResult, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL, nil)
			if err != nil {
				return nil, err
			}
			browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			answer, err := browser.Do(r)
			if err != nil {
				return nil, err
			}
			_ = answer.Body.Close()
			back, err := url.Parse(answer.Header.Get("Location"))
			if err != nil || answer.StatusCode != http.StatusFound {
				return nil, errors.Join(err, errors.New(answer.Status))
			}
			q := back.Query()
			return &sdkauth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.base + "/mcp", OAuthHandler: h}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "python", Arguments: map[string]any{"code": "6 * 7"}})
	if err != nil || r.IsError || r.StructuredContent.(map[string]any)["result"] != "42" {
		t.Errorf("%v %+v", err, r)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// tokensEnd: a link that was revoked ends tokens that are good otherwise. An issuer that is gone ends none, and is said to be gone.
func (s *server) tokensEnd(i *issuer) {
	s.t.Helper()
	token := i.sign(i.claims(s.base + "/mcp"))
	if r := s.beside("key", "revoke", s.keyOf("ada-4f6c")); r.code != 0 {
		s.t.Fatalf("%+v", r)
	}
	s.until("a link that was revoked is none", func() (string, bool) { // another process did it
		r := s.with(token, http.MethodPost, "/mcp", listTools)
		return string(r.body), r.status == 403 && strings.Contains(string(r.body), "holder_unknown")
	})
	s.until("doctor finds the issuer", func() (string, bool) {
		r := s.beside("doctor", "--json")
		return r.stdout, strings.Contains(r.stdout, "has keys that tokens can be looked at with")
	})
	i.host.Close()
	if r := s.beside("doctor", "--json"); !strings.Contains(r.stdout, "the authorization server cannot be asked: it cannot be reached") {
		s.t.Errorf("doctor: %+v", r)
	}
	if r := s.with(i.sign(i.claims(s.base+"/mcp", "sub", "vera")), http.MethodPost, "/mcp", listTools); r.status != 200 {
		s.t.Errorf("an issuer that is gone, and a key that is known: %d %s", r.status, r.body)
	}
}
