package mcp

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
)

func TestRefuse(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	(*OAuth)(nil).refuse(w, nil, problem.New(problem.Unauthenticated, "a key is needed"))
	if w.Code != http.StatusUnauthorized || !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") || !strings.Contains(w.Body.String(), `"message":"a key is needed"`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	w = httptest.NewRecorder()
	New(Options{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(`{}`)))
	if w.Code < 400 {
		t.Errorf("a request of nobody: %d %s", w.Code, w.Body)
	}
}

// TestSchemas: what is said of the tools is JSON Schema with nothing beside what is named.
func TestSchemas(t *testing.T) {
	t.Parallel()
	s := &server{}
	for _, one := range s.all() {
		text, err := json.Marshal(one.InputSchema)
		var schema struct {
			Properties map[string]struct{ Description string }
			Required   []string
		}
		if err != nil || json.Unmarshal(text, &schema) != nil || one.Description == "" || !strings.Contains(string(text), `"additionalProperties":false`) {
			t.Errorf("%s: %v %s", one.Name, err, text)
		}
		for _, name := range schema.Required {
			if schema.Properties[name].Description == "" {
				t.Errorf("%s says nothing of %s", one.Name, name)
			}
		}
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	o := newOutcome("ses_1", 20)
	if told := o.take(kernel.Stream{Name: "stdout", Data: []byte("10 %\r20 %\r")}); told != "20 %" {
		t.Errorf("told %q", told)
	}
	o.take(kernel.Stream{Name: "stderr", Data: []byte(strings.Repeat("e", 100))})
	o.take(kernel.Display{Data: kernel.Bundle{"image/png": "not base64", "text/plain": "<Figure>"}})
	if o.take(kernel.Error{Name: "E", Value: strings.Repeat("é", 1<<20)}); len(o.Error.Value) > longestError+3 {
		t.Errorf("an error of %d bytes", len(o.Error.Value))
	}
	o.take(kernel.File{Path: "a b/c.csv", Size: 3})
	got := o.answer(kernel.Done{Outcome: kernel.OutcomeTimeout, Message: "the code ran longer than 1s"}, true, 20)
	text, err := json.Marshal(got)
	for _, want := range []string{`"isError":true`, `longer than the 20 bytes`, `[the code ran longer than 1s]`, `[session ses_1: pass it on`, `"uri":"cove://ses_1/a%20b/c.csv"`, `"outcome":"timeout"`} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s, %v", want, text, err)
		}
	}
	if content, ok := got.Content[0].(*sdk.TextContent); !ok || o.Text != content.Text {
		t.Errorf("the structured content has the text %q", o.Text)
	}
	o.take(kernel.Display{Data: kernel.Bundle{"image/png": "UE5H", "text/plain": "<Figure>"}})
	if with := o.answer(kernel.Done{Outcome: kernel.OutcomeOK}, false, 20); with.StructuredContent != nil || len(with.Content) != 3 {
		t.Errorf("with a figure the answer is %+v", with)
	}
	if len(o.Stdout)+len(o.Stderr) > 20 {
		t.Errorf("%d bytes of output", len(o.Stdout)+len(o.Stderr))
	}
}

// TestMetadata: where tokens are from is told at the root and below the resource's path, with the right address of a server behind a proxy; and nothing else.
func TestMetadata(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resource, path string
		status         int
		at             string // of the metadata, as a refusal names it
	}{
		"the root":          {"https://cove.example.com/mcp", "/.well-known/oauth-protected-resource", 200, "https://cove.example.com/.well-known/oauth-protected-resource/mcp"},
		"the path":          {"https://cove.example.com/mcp", "/.well-known/oauth-protected-resource/mcp", 200, "https://cove.example.com/.well-known/oauth-protected-resource/mcp"},
		"below a proxy's":   {"https://example.com/tools/mcp", "/.well-known/oauth-protected-resource/tools/mcp", 200, "https://example.com/.well-known/oauth-protected-resource/tools/mcp"},
		"something else":    {"https://cove.example.com/mcp", "/.well-known/oauth-protected-resource/other", 404, "https://cove.example.com/.well-known/oauth-protected-resource/mcp"},
		"nobody's tokens":   {"", "/.well-known/oauth-protected-resource/mcp", 404, ""},
		"nobody's, at root": {"", "/.well-known/oauth-protected-resource", 404, ""},
	} {
		var o *OAuth
		if c.resource != "" {
			o = &OAuth{Issuer: "https://id.example.com", Resource: func() string { return c.resource }, Scope: "mcp"}
		}
		both := Surfaces(Options{OAuth: o})
		w := httptest.NewRecorder()
		both[1].Handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil))
		var said struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
		}
		if w.Code != c.status || c.status == 200 && (json.Unmarshal(w.Body.Bytes(), &said) != nil || said.Resource != c.resource || len(said.Servers) != 1) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		w = httptest.NewRecorder()
		both[0].Refuse(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", nil), problem.New(problem.Unauthenticated, "a key is needed"))
		if got := w.Header().Get("WWW-Authenticate"); c.at != "" && got != `Bearer resource_metadata="`+c.at+`", scope="mcp"` || c.at == "" && got != `Bearer realm="cove"` {
			t.Errorf("%s: %s", name, got)
		}
	}
	// A page may read it, and may ask first.
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodOptions, "/.well-known/oauth-protected-resource/mcp", nil)
	r.Header.Set("Access-Control-Request-Method", "GET")
	Surfaces(Options{OAuth: &OAuth{Resource: func() string { return "https://cove.example.com/mcp" }}})[1].Handler.ServeHTTP(w, r)
	if w.Code != http.StatusNoContent || w.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("a page asks first: %d %v", w.Code, w.Header())
	}
	if got := quotable("a \"b\" \\ é\n"); got != "a 'b' ' ''" {
		t.Errorf("%q", got)
	}
}
