package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// wellKnown is where a server says whose access tokens it takes: RFC 9728, section 3.
const wellKnown = "/.well-known/oauth-protected-resource"

// OAuth says whose access tokens are taken beside keys, as the protocol's section on authorization has it from 2025-06-18 on.
type OAuth struct {
	Issuer   string                                                          // the authorization server
	Resource func() string                                                   // the address of this surface as clients have it
	Scope    string                                                          // that tokens have; "": none is needed
	Caller   func(ctx context.Context, token string) (auth.Principal, error) // whom a token stands for
}

// metadata is the surface that tells clients where tokens are from, or that there is nothing to be told. Nothing there is anybody's own.
func (o *OAuth) metadata() protocol.Surface {
	var routes []protocol.Route
	mux := http.NewServeMux()
	for _, pattern := range []string{wellKnown, wellKnown + "/{path...}"} {
		for _, method := range []string{http.MethodGet, http.MethodOptions} {
			routes = append(routes, protocol.Route{Method: method, Pattern: pattern, Access: protocol.Public})
			mux.HandleFunc(method+" "+pattern, o.tell)
		}
	}
	return protocol.Surface{
		About: "whose access tokens are taken for the Model Context Protocol, if any", Prefix: wellKnown, Handler: mux, Routes: routes, Refuse: o.refuse,
		Only: func(r *http.Request) bool {
			return r.URL.Path == wellKnown || strings.HasPrefix(r.URL.Path, wellKnown+"/")
		},
	}
}

// tell answers with the metadata of RFC 9728, section 2, at the root and below the path of the resource, which are where clients look.
func (o *OAuth) tell(w http.ResponseWriter, r *http.Request) {
	if protocol.Preflight(w, r) {
		return
	}
	if below := strings.TrimPrefix(r.URL.Path, wellKnown); o == nil || below != "" && below != at && below != pathOf(o.Resource()) {
		o.refuse(w, r, problem.New(problem.RouteNotFound, "there is nothing at this address"))
		return
	}
	about := map[string]any{
		"resource": o.Resource(), "authorization_servers": []string{o.Issuer}, "bearer_methods_supported": []string{"header"}, "resource_name": "cove, a code interpreter",
	}
	if o.Scope != "" {
		about["scopes_supported"] = []string{o.Scope}
	}
	text, err := json.Marshal(about)
	if err != nil {
		text = []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(text)
}

func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.EscapedPath(), "/")
}

// challenge is what tells a client how to come in: RFC 6750, section 3, with the address of the metadata (RFC 9728, section 5.1).
func (o *OAuth) challenge(r *http.Request, p *problem.Error) string {
	if o == nil {
		return `Bearer realm="cove"`
	}
	var parts []string
	add := func(name, value string) { parts = append(parts, name+`="`+quotable(value)+`"`) }
	if u, err := url.Parse(o.Resource()); err == nil {
		add("resource_metadata", u.Scheme+"://"+u.Host+wellKnown+strings.TrimSuffix(u.EscapedPath(), "/"))
	}
	if o.Scope != "" {
		add("scope", o.Scope)
	}
	switch {
	case problem.Has(p, problem.TokenScope):
		add("error", "insufficient_scope")
		add("error_description", p.Message)
	case r != nil && r.Header.Get("Authorization") != "": // who brings nothing has made no mistake
		add("error", "invalid_token")
		add("error_description", p.Message)
	}
	return "Bearer " + strings.Join(parts, ", ")
}

// quotable leaves of a text what RFC 6750 allows in the parameters of a challenge.
func quotable(text string) string {
	return strings.Map(func(c rune) rune {
		if c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			return '\''
		}
		return c
	}, text)
}

// refuse answers a request that has not come to the protocol.
func (o *OAuth) refuse(w http.ResponseWriter, r *http.Request, p *problem.Error) {
	body := map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": -32600, "message": p.Message, "data": map[string]string{"code": p.Code, "hint": p.Hint}}}
	text, err := json.Marshal(body)
	if err != nil {
		text = []byte(`{}`)
	}
	code := httpstatus.Of(p)
	if code == http.StatusUnauthorized || problem.Has(p, problem.TokenScope) {
		w.Header().Set("WWW-Authenticate", o.challenge(r, p))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text)
}
