package jupyter_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"cove/internal/http/compat/jupyter"
)

// TestDescription: the description is of all that is served, and only of that.
func TestDescription(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	w, err := http.Get(g.url + "/api/spec.yaml?token=annskey")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Body.Close() }()
	text, err := io.ReadAll(w.Body)
	var said struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			Summary    string
			Parameters []struct{ Name string }
			Security   []any
		}
	}
	if err != nil || w.StatusCode != http.StatusOK || yaml.Unmarshal(text, &said) != nil || said.OpenAPI != "3.0.3" {
		t.Fatalf("%v: %d %s", err, w.StatusCode, text)
	}
	described := 0
	for path, methods := range said.Paths {
		for method, one := range methods {
			described++
			if one.Summary == "" || len(one.Parameters) != strings.Count(path, "{") {
				t.Errorf("%s %s: %+v", method, path, one)
			}
		}
	}
	if served := len(jupyter.Surface(jupyter.Options{}).Routes); described != served {
		t.Errorf("%d operations are described, and %d are served", described, served)
	}
}

// TestRefused: a browser reports what it has refused, without a key.
func TestRefused(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	if status, header, _ := g.ask("POST", "/api/security/csp-report", `{"csp-report": {}}`); status != 204 || header.Get("Content-Security-Policy") != "frame-ancestors 'self'; report-uri /jupyter/api/security/csp-report; default-src 'none'" {
		t.Errorf("%d %v", status, header)
	}
}
