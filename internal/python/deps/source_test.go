package deps_test

import (
	"os"
	"path/filepath"
	"testing"

	"cove/internal/python/deps/indextest"
	"cove/internal/python/pyindex"
	"cove/internal/testkit/testneeds"
)

func TestEveryKindOfIndex(t *testing.T) {
	t.Parallel()
	for name, style := range map[string]indextest.Style{"negotiated": indextest.Negotiated, "JSON": indextest.JSON, "HTML": indextest.HTML, "mirror": indextest.Mirror} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plain("numpy", "2.3"))
			w.index.Speak(style)
			w.index.Add(indextest.Wheel{Name: "cowsay", Require: []string{"humanize>=1", "numpy"}, Padding: 50_000}, indextest.Wheel{Name: "humanize"})
			if p := w.provide(code("cowsay")); brought(p) != "cowsay 1.0, humanize 1.0" {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestFolderOfWheelsOffline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := t.TempDir()
	for _, wheel := range []indextest.Wheel{{Name: "cowsay", Require: []string{"humanize"}}, {Name: "humanize"}} {
		if err := os.WriteFile(filepath.Join(folder, wheel.Filename()), wheel.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// An index beside it that was never asked is no reason to fail.
	w.sources = append([]pyindex.Source{{Name: "folder", Folder: folder}}, w.sources...)
	w.options.Policy.Offline = true
	if p := w.provide(code("cowsay")); brought(p) != "cowsay 1.0, humanize 1.0" {
		t.Errorf("got %+v", p)
	}
}

// TestBuildsForCPUs has torch come from an index of builds for CPUs that is named before the usual one, and everything else from that.
func TestBuildsForCPUs(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "torch", Version: "2.15.0", Require: []string{"nvidia-cudnn-cu12", "humanize"}}, indextest.Wheel{Name: "nvidia-cudnn-cu12"}, indextest.Wheel{Name: "humanize"})
	small := indextest.New(t)
	small.Add(indextest.Wheel{Name: "torch", Version: "2.14.0+cpu", Require: []string{"humanize"}})
	w.sources = append([]pyindex.Source{{Name: "cpu", URL: small.URL}}, w.sources...)
	if got := brought(w.provide(code("torch"))); got != "humanize 1.0, torch 2.14.0+cpu" {
		t.Errorf("installed %s", got)
	}
}

func TestExtras(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain("numpy", "2.3"))
	w.index.Add(indextest.Wheel{Name: "polars", Extras: map[string][]string{"excel": {"openpyxl"}, "plot": {"emoji"}}}, indextest.Wheel{Name: "openpyxl"}, indextest.Wheel{Name: "emoji"})
	p := w.provide(asking(t, "pip", "polars[excel]"))
	if brought(p) != "openpyxl 1.0, polars 1.0" {
		t.Fatalf("got %+v", p)
	}
	for _, tt := range []struct{ asked, brought string }{{"polars", ""}, {"polars[excel]", ""}, {"polars[plot]", "emoji 1.0"}} {
		r := asking(t, "pip", tt.asked)
		r.State = p.State
		if got := brought(w.provide(r)); got != tt.brought {
			t.Errorf("%s brought %q", tt.asked, got)
		}
	}
}

// What holds elsewhere alone is not installed, and nothing is said about it.
func TestMarkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "cowsay"}, indextest.Wheel{Name: "humanize"})
	p := w.provide(asking(t, "script", "cowsay ; sys_platform == 'win32'", "humanize ; sys_platform == 'linux'"))
	if brought(p) != "humanize 1.0" || len(p.Refused) != 0 || len(p.Notes) != 0 {
		t.Errorf("got %+v", p)
	}
}

// The index that is named in the settings takes the place of all that uv and pip were told.
func TestSettingsTellPlansApart(t *testing.T) {
	w := newWorld(t)
	w.options.Index = w.index.URL
	w.options.Sources = nil
	for _, name := range []string{"UV_INDEX_URL", "UV_INDEX", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"} {
		t.Setenv(name, indextest.Absent(t))
	}
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, "")
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("PIP_CONFIG_FILE", os.DevNull)
	w.index.Add(indextest.Wheel{Name: "cowsay", Version: "1.0"})
	if p := w.provide(code("cowsay")); brought(p) != "cowsay 1.0" {
		t.Fatalf("got %+v", p)
	}
	other := indextest.New(t)
	other.Add(indextest.Wheel{Name: "cowsay", Version: "3.0"})
	w.options.Index = other.URL
	if p := w.provide(code("cowsay")); brought(p) != "cowsay 3.0" {
		t.Errorf("from another index: %+v", p)
	}
	w.options.Index = w.index.URL
	if p := w.provide(code("cowsay")); brought(p) != "cowsay 1.0" || !p.Cached {
		t.Errorf("from the first again: %+v", p)
	}
}
