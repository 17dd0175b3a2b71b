package deps_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/deps"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/indextest"
	"cove/internal/python/deps/layer"
	"cove/internal/python/installation"
	"cove/internal/python/pyenv"
)

func TestBestWheel(t *testing.T) {
	t.Parallel()
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	w := newWorld(t)
	parts := strings.Split(w.env.Version, ".")
	own := "cp" + parts[0] + parts[1]
	tests := []struct {
		name string
		tags []string
		want int // of the tags; -1: none
	}{
		{"its own before all", []string{"py3-none-any", own + "-" + own + "-manylinux_2_17_" + machine, "cp32-abi3-manylinux_2_17_" + machine}, 1},
		{"newer C library first, but not too new", []string{own + "-" + own + "-manylinux2014_" + machine, own + "-" + own + "-manylinux_2_28_" + machine, own + "-" + own + "-manylinux_2_99_" + machine}, 1},
		{"stable interface", []string{"py3-none-any", "cp36-abi3-manylinux_2_17_" + machine + ".manylinux2014_" + machine}, 1},
		{"any", []string{"cp39-cp39-win_amd64", "py2.py3-none-any"}, 1},
		{"program in a wheel", []string{"py3-none-manylinux2014_" + machine, "py3-none-macosx_11_0_arm64"}, 0},
		{"other C library", []string{own + "-" + own + "-musllinux_1_2_" + machine}, -1},
		{"other Python", []string{"cp27-cp27mu-manylinux2014_" + machine, "py2-none-any", own + "-" + own + "t-manylinux2014_" + machine}, -1},
	}
	for n, tt := range tests {
		name := []string{"cowsay", "humanize", "emoji", "peewee", "polars", "openpyxl", "gensim"}[n]
		for _, tag := range tt.tags {
			w.index.Add(indextest.Wheel{Name: name, Tag: tag})
		}
		p := w.provide(asking(t, "pip", name))
		if tt.want < 0 {
			if refusals(p) != "no_wheel "+name || !strings.Contains(p.Refused[0].Reason, "Python "+parts[0]+"."+parts[1]) {
				t.Errorf("%s: %+v", tt.name, p)
			}
			continue
		}
		l, err := w.installer().Store().Get(p.Layer)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if want := name + "-1.0-" + tt.tags[tt.want] + ".whl"; l.Wheels[0].File != want {
			t.Errorf("%s: chose %s, want %s", tt.name, l.Wheels[0].File, want)
		}
	}
}

// builder makes wheels out of nothing, as a sandbox would of source.
type builder struct {
	wheels []indextest.Wheel
	asked  []deps.Resolution
	fail   error
}

func (b *builder) Build(_ context.Context, _ *gateway.Gateway, _ *pyenv.Environment, r deps.Resolution, dir string, told func(installation.Progress)) ([]layer.Wheel, error) {
	b.asked = append(b.asked, r)
	told(installation.Progress{Phase: "build"})
	var out []layer.Wheel
	for _, w := range b.wheels {
		if err := os.WriteFile(filepath.Join(dir, w.Filename()), w.Bytes(), 0o600); err != nil {
			return nil, err
		}
		out = append(out, layer.Wheel{Name: w.Name, Version: w.Version, File: w.Filename(), SHA256: w.SHA256()})
	}
	return out, b.fail
}

func TestBuildFromSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain("numpy", "2.0"))
	w.index.Add(indextest.Sdist{Name: "cowsay", Version: "1.0"}, indextest.Wheel{Name: "emoji", Require: []string{"cowsay"}})
	b := &builder{wheels: []indextest.Wheel{{Name: "cowsay", Version: "1.0"}, {Name: "numpy", Version: "2.0"}}}
	w.options.Builder, w.options.Policy.BuildKnown = b, false
	if p := w.provide(code("cowsay")); refusals(p) != "no_wheel cowsay" || len(b.asked) != 0 {
		t.Fatalf("without leave: %+v", p)
	}
	w.options.Policy.Build = true
	p := w.provide(code("cowsay"))
	if brought(p) != "cowsay 1.0" || len(b.asked) != 1 || b.asked[0].Requirements[0].String() != "cowsay" {
		t.Fatalf("got %+v, asked %+v", p, b.asked)
	}
	constrained := false
	for _, c := range b.asked[0].Constraints {
		constrained = constrained || c.String() == "numpy==2.0"
	}
	if !constrained {
		t.Errorf("what is there does not bind: %+v", b.asked[0])
	}
	if again := w.provide(code("cowsay")); again.Layer != p.Layer || len(b.asked) != 1 {
		t.Errorf("again: %+v", again)
	}
	b.fail = problem.New(problem.BuildFailed, "it does not build").WithCause(errors.New("x"))
	if _, err := w.installer().Provide(t.Context(), code("emoji"), nil); problem.Of(err) == nil || problem.Of(err).Code != "build_failed" {
		t.Errorf("a failed build: %v", err)
	}
}

// TestBuildKnown has what is known, old and pure built without leave, and nothing else.
func TestBuildKnown(t *testing.T) {
	t.Parallel()
	young := indextest.Listed{Uploaded: time.Now().Add(-20 * 24 * time.Hour)}
	for name, c := range map[string]struct {
		module string
		source indextest.Sdist
		built  indextest.Wheel
		want   string
	}{
		"known, old and pure": {"cowsay", indextest.Sdist{Name: "cowsay"}, indextest.Wheel{Name: "cowsay", Version: "1.0"}, "cowsay 1.0"},
		"code of its tests":   {"cowsay", indextest.Sdist{Name: "cowsay", Extra: map[string]string{"tests/a.c": ""}}, indextest.Wheel{Name: "cowsay", Version: "1.0"}, "cowsay 1.0"},
		"young":               {"cowsay", indextest.Sdist{Name: "cowsay", Listed: young}, indextest.Wheel{}, ""},
		"no time":             {"cowsay", indextest.Sdist{Name: "cowsay", Listed: indextest.Listed{Undated: true}}, indextest.Wheel{}, ""},
		"to be compiled":      {"cowsay", indextest.Sdist{Name: "cowsay", Extra: map[string]string{"src/fast.pyx": ""}}, indextest.Wheel{}, ""},
		"compiled all the same": {"cowsay", indextest.Sdist{Name: "cowsay"},
			indextest.Wheel{Name: "cowsay", Version: "1.0", Tag: "cp311-cp311-linux_x86_64"}, ""},
		"not known": {"zz_unheard_of_zz", indextest.Sdist{Name: "zz-unheard-of-zz"}, indextest.Wheel{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.index.Add(c.source)
			b := &builder{}
			if c.built.Name != "" {
				b.wheels = []indextest.Wheel{c.built}
			}
			w.options.Builder = b
			p, err := w.installer().Provide(t.Context(), code(c.module), nil)
			refused := len(p.Refused) == 1 || problem.Has(err, problem.NoWheel)
			if brought(p) != c.want || refused != (c.want == "") {
				t.Errorf("brought %q, refused %+v, %v", brought(p), p.Refused, err)
			}
			if built := len(b.asked) > 0; built != (c.built.Name != "") {
				t.Errorf("built: %v", built)
			}
		})
	}
}
