package mcp

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cove/internal/kernel"
	"cove/internal/problem"
)

func TestRefuse(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	refuse(w, nil, problem.New(problem.Unauthenticated, "a key is needed"))
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
	o := &outcome{Session: "ses_1", Files: []fileSaid{}, room: 20}
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
	if len(o.Stdout)+len(o.Stderr) > 20 {
		t.Errorf("%d bytes of output", len(o.Stdout)+len(o.Stderr))
	}
}
