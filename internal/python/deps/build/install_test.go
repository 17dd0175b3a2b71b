package build_test

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/python/deps"
	"cove/internal/python/deps/build"
	"cove/internal/python/deps/indextest"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/scan"
	"cove/internal/python/pyindex"
)

// TestInstalls has an installer meet a package without a wheel: it is built once, and what was built is used again.
func TestInstalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Sdist{Name: "grown", Version: "3.1", Require: []string{"milk"}}, indextest.Wheel{Name: "milk"})
	options := deps.Options{
		Data: t.TempDir(), Env: w.env, Policy: deps.Policy{Install: true, Build: true, Allow: []string{"grown"}, Timeout: 5 * time.Minute, Limits: layer.Limits{Wheels: 100}}, UV: w.options.UV,
		Sources: func(context.Context, string) ([]pyindex.Source, pyindex.Access, error) {
			return []pyindex.Source{{Name: "test", URL: w.index.URL}}, pyindex.Access{Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}, nil
		},
		Builder: build.New(w.options),
	}
	r := deps.Request{Report: scan.Report{Asked: []scan.Asked{{Requirement: w.resolution("grown").Requirements[0], How: "pip"}}}}
	for attempt, cached := range []bool{false, true} {
		installer, err := deps.New(options)
		if err != nil {
			t.Fatal(err)
		}
		p, err := installer.Provide(t.Context(), r, nil)
		if err != nil {
			t.Fatalf("attempt %d: %+v", attempt, err)
		}
		if p.Layer == "" || p.State.Packages["grown"] != "3.1" || p.State.Packages["milk"] != "1.0" || p.Cached != cached {
			t.Fatalf("attempt %d: %+v", attempt, p)
		}
		for _, module := range []string{"grown", "milk"} {
			if found, err := filepath.Glob(filepath.Join(installer.Store().Folder(), p.Layer, module, "__init__.py")); err != nil || len(found) != 1 {
				t.Errorf("attempt %d: the layer has no %s", attempt, module)
			}
		}
	}
	if n := w.index.Downloads("grown-3.1.tar.gz"); n > 3 {
		t.Errorf("the source was fetched %d times", n)
	}
	options.Builder, options.Data = nil, t.TempDir()
	installer, err := deps.New(options)
	if err != nil {
		t.Fatal(err)
	}
	p, err := installer.Provide(t.Context(), r, nil)
	if err != nil || p.Layer != "" || len(p.Refused) != 1 || p.Refused[0].Code != "no_wheel" || !strings.Contains(p.Refused[0].Hint, "--allow-build") {
		t.Errorf("without a builder: %+v, %v", p, err)
	}
}
