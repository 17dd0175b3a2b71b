package jupyter_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"cove/internal/http/compat/jupyter"
	"cove/internal/http/protocol"
	"cove/internal/server/hub"
)

// ask makes a request and returns its status, its headers and what its JSON says.
func (g *rig) ask(method, path, body string, headers ...string) (int, http.Header, any) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	w, err := client.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer w.Body.Close()
	text, _ := io.ReadAll(w.Body)
	var v any
	_ = json.Unmarshal(text, &v)
	return w.StatusCode, w.Header, v
}

func (g *rig) kernel() string {
	g.t.Helper()
	status, header, v := g.ask("POST", "/api/kernels?token=annskey", "")
	m, _ := v.(map[string]any)
	id, _ := m["id"].(string)
	if status != 201 || header.Get("Location") != "/jupyter/api/kernels/"+id || m["execution_state"] != "idle" || m["last_activity"] != "2026-11-21T10:00:00.000000Z" {
		g.t.Fatalf("a kernel is made: %d %v %v", status, header, v)
	}
	return id
}

func TestWhoMayCall(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for _, c := range []struct {
		method, path string
		headers      []string
		status       int
	}{
		{"GET", "/api", nil, 200},
		{"GET", "/api/kernels", nil, 401},
		{"GET", "/api/kernels?token=annskey", nil, 200},
		{"GET", "/api/kernels?token=wrong", nil, 401},
		{"GET", "/api/kernels", []string{"Authorization", "token annskey"}, 200},
		{"GET", "/api/kernels", []string{"Authorization", "Token annskey"}, 200},
		{"GET", "/api/kernels", []string{"Authorization", "Bearer annskey"}, 200},
		{"GET", "/api/kernels?token=viewer", nil, 200},
		{"POST", "/api/kernels?token=viewer", nil, 403},

		{"GET", "/api/contents", nil, 401},
		{"GET", "/api/contents/none?token=annskey", nil, 404},
		{"GET", "/api/nowhere?token=annskey", nil, 404},
		{"PUT", "/api/kernels?token=annskey", nil, 405},
		{"GET", "/api/kernels/none?token=annskey", nil, 404},
	} {
		status, header, v := g.ask(c.method, c.path, "", c.headers...)
		m, _ := v.(map[string]any)
		if status != c.status || status >= 400 && (m["message"] == nil || m["reason"] == nil) || header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s %s with %v: %d %v, want %d", c.method, c.path, c.headers, status, v, c.status)
		}
	}
}

func TestAPasswordIsAKey(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	cookie := func(h http.Header, name string) string {
		for _, c := range (&http.Response{Header: h}).Cookies() {
			if c.Name == name {
				return c.Value
			}
		}
		return ""
	}
	_, header, _ := g.ask("GET", "/login", "")
	xsrf := cookie(header, "_xsrf")
	form := func(password, given, kept string) (int, http.Header) {
		status, header, _ := g.ask("POST", "/login", url.Values{"password": {password}, "_xsrf": {given}}.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Cookie", "_xsrf="+kept)
		return status, header
	}
	for _, c := range []struct {
		password, given, kept string
		status                int
	}{{"annskey", "", "", 403}, {"annskey", "other", xsrf, 403}, {"", xsrf, xsrf, 401}, {"wrong", xsrf, xsrf, 401}} {
		if status, header := form(c.password, c.given, c.kept); status != c.status || cookie(header, "cove_jupyter") != "" {
			t.Errorf("%+v: %d %v", c, status, header)
		}
	}
	status, header := form("annskey", xsrf, xsrf)
	key := cookie(header, "cove_jupyter")
	if status != 302 || key == "" || strings.Contains(key, "annskey") {
		t.Fatalf("signing in is %d %v", status, header)
	}
	both := "cove_jupyter=" + key + "; _xsrf=" + xsrf
	for _, c := range []struct {
		method  string
		headers []string
		status  int
	}{
		{"GET", []string{"Cookie", both}, 200},
		{"POST", []string{"Cookie", both, "X-XSRFToken", xsrf}, 201},
		{"POST", []string{"Cookie", both}, 401},
		{"POST", []string{"Cookie", both, "X-XSRFToken", "other"}, 401},
		{"POST", []string{"Cookie", "cove_jupyter=" + key + "; _xsrf=", "X-XSRFToken", ""}, 401},
		{"GET", []string{"Cookie", "cove_jupyter=" + key[1:]}, 401},
		{"GET", []string{"Cookie", both, "Authorization", "token wrong"}, 401},
	} {
		if status, _, v := g.ask(c.method, "/api/kernels", "", c.headers...); status != c.status {
			t.Errorf("%s with %v: %d %v, want %d", c.method, c.headers, status, v, c.status)
		}
	}
}

func TestKernelsAreMarkedSessions(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	other, _ := g.CreateSession(t.Context(), ann, hub.NewSession{Metadata: map[string]string{"mine": "yes"}})
	id := g.kernel()
	if _, _, v := g.ask("GET", "/api/kernels?token=annskey", ""); len(v.([]any)) != 1 || v.([]any)[0].(map[string]any)["id"] != id {
		t.Errorf("the kernels are %v", v)
	}
	if _, _, v := g.ask("GET", "/api/status?token=annskey", ""); v.(map[string]any)["kernels"] != 1.0 {
		t.Errorf("the status is %v", v)
	}
	if status, _, v := g.ask("POST", "/api/kernels?token=annskey", `{"name":"julia"}`); status != 501 {
		t.Errorf("a kernel that is not here: %d %v", status, v)
	}
	if status, _, v := g.ask("POST", "/api/kernels?token=annskey", `[`); status != 400 {
		t.Errorf("no JSON: %d %v", status, v)
	}
	if status, _, v := g.ask("POST", "/api/kernels?token=annskey", `{"kernel_id":"x"}`); status != 400 {
		t.Errorf("a chosen id: %d %v", status, v)
	}
	if status, _, v := g.ask("POST", "/api/kernels/"+id+"/restart?token=annskey", ""); status != 200 || g.restarts != 1 {
		t.Errorf("a restart: %d %v", status, v)
	}
	if status, _, _ := g.ask("POST", "/api/kernels/"+id+"/interrupt?token=annskey", ""); status != 204 {
		t.Errorf("an interrupt: %d", status)
	}
	if status, _, _ := g.ask("GET", "/api/kernels/"+id+"/channels?token=annskey", ""); status != 400 {
		t.Errorf("the channels without a WebSocket: %d", status)
	}
	if status, _, _ := g.ask("DELETE", "/api/kernels/"+id+"?token=annskey", ""); status != 204 {
		t.Errorf("it is deleted: %d", status)
	}
	if status, _, _ := g.ask("DELETE", "/api/kernels/"+id+"?token=annskey", ""); status != 404 {
		t.Errorf("it is deleted again: %d", status)
	}
	if _, err := g.Session(t.Context(), ann, other.ID); err != nil {
		t.Error(err)
	}
}

// TestRoutesAreServed: each route that the front door knows is one of the handler's, and says what it takes.
func TestRoutesAreServed(t *testing.T) {
	t.Parallel()
	s := jupyter.Surface(jupyter.Options{Hub: newFake(), Accounts: keys{}})
	for _, r := range s.Routes {
		if !strings.HasPrefix(r.Pattern, "/jupyter/") {
			t.Errorf("%s is not below the prefix", r.Pattern)
		}
		if r.Access == protocol.Public && len(r.Actions) > 0 {
			t.Errorf("%s takes rights and needs no key", r.Pattern)
		}
	}
}
