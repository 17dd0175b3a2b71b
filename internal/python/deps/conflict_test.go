package deps_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/deps"
	"cove/internal/python/deps/indextest"
)

// science is a base environment with a package that others want in another version.
func science(t *testing.T) *world {
	w := newWorld(t, plain("numpy", "2.3"), plain("scipy", "1.0", "numpy>=2", "numpy<9; extra == 'x'"), plain("pandas", "2.0", "numpy>=1.5"))
	w.index.Add(indextest.Wheel{Name: "numpy", Version: "1.26"}, indextest.Wheel{Name: "numpy", Version: "2.4"}, indextest.Wheel{Name: "pandas", Version: "1.5", Require: []string{"numpy>=1.5"}},
		indextest.Wheel{Name: "gensim", Version: "4.0", Require: []string{"numpy<2"}}, indextest.Wheel{Name: "emoji"},
		indextest.Wheel{Name: "peewee", Require: []string{"traitlets>=6"}}, indextest.Wheel{Name: "traitlets", Version: "6.0"})
	return w
}

func TestBaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := science(t)
	w.index.Add(indextest.Wheel{Name: "cowsay", Require: []string{"numpy", "pandas"}})
	if p := w.provide(code("cowsay")); brought(p) != "cowsay 1.0" || p.First || len(p.Notes) > 0 {
		t.Errorf("got %+v", p)
	}
}

func TestBaseIsReplacedWhereItIsNotImported(t *testing.T) {
	t.Parallel()
	w := science(t)
	r := code("gensim")
	r.Loaded = []string{"os", "pandas", "traitlets", "no_such_thing"}
	p := w.provide(r)
	if got := brought(p); got != "gensim 4.0, numpy 1.26" || !p.First || p.Restart != "" || p.State.First[0] != p.Layer {
		t.Fatalf("got %s: %+v", got, p)
	}
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, "numpy is now 1.26") || !strings.Contains(notes, "scipy") || strings.Contains(notes, "pandas") {
		t.Errorf("notes: %s", notes)
	}
	out, err := w.imports(w.installer(), p.State, "import gensim, numpy; print(numpy.__version__)")
	if err != nil || out != "1.26" {
		t.Errorf("importing: %s, %v", out, err)
	}
	if again := w.provide(r); !again.Cached || again.Layer != p.Layer {
		t.Errorf("again: %+v", again)
	}
	more := code("emoji")
	more.State = p.State
	if second := w.provide(more); brought(second) != "emoji 1.0" || second.First || len(second.State.First) != 1 || len(second.State.Layers) != 2 {
		t.Errorf("a second layer: %+v", second)
	}
	first, last := w.provide(func() deps.Request { m := code("emoji"); m.State = p.State; return m }()).State.Paths("/opt/x")
	if len(first) != 1 || len(last) != 1 || first[0] != "/opt/x/"+p.Layer {
		t.Errorf("paths %v, %v", first, last)
	}
}

func TestConflictWithWhatIsImported(t *testing.T) {
	t.Parallel()
	for _, pristine := range []bool{false, true} {
		w := science(t)
		before := w.provide(code("emoji"))
		r := code("gensim")
		r.Loaded, r.State, r.Pristine = []string{"numpy"}, before.State, pristine
		p := w.provide(r)
		if p.Restart != "numpy 2.3 is imported, and gensim needs numpy<2" || !p.First {
			t.Fatalf("got %+v", p)
		}
		if got := brought(p); got != "emoji 1.0, gensim 4.0, numpy 1.26" || len(p.State.Layers) != 1 || len(p.State.First) != 1 || strings.Join(p.State.Requirements, " ") != "emoji gensim" {
			t.Errorf("got %s: %+v", got, p)
		}
		out, err := w.imports(w.installer(), p.State, "import gensim, numpy, emoji; print(numpy.__version__)")
		if err != nil || out != "1.26" {
			t.Errorf("importing: %s, %v", out, err)
		}
	}
}

func TestAskingForAnotherVersionOfWhatIsImported(t *testing.T) {
	t.Parallel()
	w := science(t)
	r := asking(t, "pip", "pandas<2")
	r.Loaded = []string{"pandas"}
	p := w.provide(r)
	if p.Restart != "pandas 2.0 is imported, and pandas<2 is asked for" || brought(p) != "pandas 1.5" {
		t.Errorf("got %+v", p)
	}
	r.Loaded = []string{"numpy"}
	if p := w.provide(r); p.Restart != "" || !p.First || brought(p) != "pandas 1.5" {
		t.Errorf("not imported: %+v", p)
	}
}

func TestTheKernelStaysWhatItIs(t *testing.T) {
	t.Parallel()
	w := science(t)
	p, err := w.installer().Provide(t.Context(), code("peewee"), nil)
	if e := problem.Of(err); e == nil || e.Code != "resolve_failed" || !strings.Contains(e.Message, "peewee needs traitlets>=6, and the interpreter itself runs on traitlets 5.0") || p.Layer != "" {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestWhatCannotBeSolved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "emoji", Require: []string{"humanize<2"}}, indextest.Wheel{Name: "peewee", Require: []string{"emoji", "humanize>=2"}}, indextest.Wheel{Name: "humanize", Version: "1.0"},
		indextest.Wheel{Name: "humanize", Version: "2.0"}, indextest.Wheel{Name: "cowsay", Require: []string{"zznowhere"}})
	for name, request := range map[string]deps.Request{"zznowhere": code("cowsay"), "humanize": code("peewee")} {
		_, err := w.installer().Provide(t.Context(), request, nil)
		if e := problem.Of(err); e == nil || e.Code != "resolve_failed" || !strings.Contains(e.Message, name) || e.Hint == "" || strings.Contains(e.Message, "╰") {
			t.Errorf("got %v", err)
		}
	}
}

// What cannot be installed does not keep away what can.
func TestTheRestIsInstalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "emoji", Require: []string{"humanize<2"}}, indextest.Wheel{Name: "peewee", Require: []string{"humanize>=2"}}, indextest.Wheel{Name: "humanize", Version: "1.0"},
		indextest.Wheel{Name: "humanize", Version: "2.0"}, indextest.Wheel{Name: "cowsay", Require: []string{"zzsource"}}, indextest.Sdist{Name: "zzsource", Version: "1.0"},
		indextest.Wheel{Name: "openpyxl", Require: []string{"zzother"}}, indextest.Wheel{Name: "zzother", Tag: "cp27-cp27m-win32"})
	p := w.provide(code("cowsay", "emoji", "peewee", "openpyxl"))
	if brought(p) != "emoji 1.0, humanize 1.0" || refusals(p) != "no_wheel cowsay, resolve_failed peewee, no_wheel openpyxl" {
		t.Errorf("got %s, %s: %+v", brought(p), refusals(p), p)
	}
	if reason := p.Refused[0].Reason; !strings.Contains(reason, "zzsource, which cowsay needs, has no wheel") {
		t.Errorf("it says %s", reason)
	}
}

// Extension modules that were built with NumPy 1 do not load beside NumPy 2, and do not say so.
func TestBuiltForNumpyOne(t *testing.T) {
	t.Parallel()
	w := science(t)
	tag := tagOf(t, w)
	before, after := indextest.Listed{Uploaded: time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)}, indextest.Listed{Uploaded: time.Date(2024, 9, 1, 0, 0, 0, 0, time.UTC)}
	w.index.Add(indextest.Wheel{Name: "hdbscan", Tag: tag, Require: []string{"numpy>=1"}, Listed: before}, indextest.Wheel{Name: "shap", Tag: tag, Require: []string{"numpy>=1"}, Listed: after},
		indextest.Wheel{Name: "missingno", Require: []string{"numpy>=1"}, Listed: before})
	for module, want := range map[string]string{"hdbscan": "hdbscan 1.0, numpy 1.26", "shap": "shap 1.0", "missingno": "missingno 1.0"} {
		if p := w.provide(code(module)); brought(p) != want || p.First != strings.Contains(want, "numpy") || p.Restart != "" {
			t.Errorf("%s: got %+v", module, p)
		}
	}
	r := code("hdbscan")
	r.Loaded = []string{"numpy"}
	if p := w.provide(r); p.Restart != "numpy 2.3 is imported, and hdbscan needs numpy<2" || brought(p) != "hdbscan 1.0, numpy 1.26" {
		t.Errorf("imported: %+v", p)
	}
}

// tagOf is the tag of extension modules for the Python here.
func tagOf(t *testing.T, w *world) string {
	t.Helper()
	parts := strings.Split(w.env.Version, ".")
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	own := "cp" + parts[0] + parts[1]
	return own + "-" + own + "-manylinux_2_17_" + machine
}

func TestPins(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, how, asked string
		brought, refused string
		note             string
	}{
		{name: "to be had", how: "script", asked: "polars==1.2", brought: "polars 1.2"},
		{name: "same major version, later", how: "script", asked: "polars==1.1", brought: "polars 1.4", note: "polars==1.1 was asked for, but it has no wheel for Python"},
		{name: "same major version, earlier", how: "comment", asked: "polars==1.9", brought: "polars 1.4", note: "the index has no such version; polars 1.4 was taken instead"},
		{name: "any", how: "pip", asked: "polars==0.3", brought: "polars 2.0", note: "polars==0.3 was asked for"},
		{name: "withheld", how: "pip", asked: "polars==2.1", brought: "polars 2.0", note: "uploaded"},
		{name: "a range", how: "pip", asked: "polars>=7", refused: "version_unavailable polars>=7"},
		{name: "no wheel at all", how: "pip", asked: "cowsay", refused: "no_wheel cowsay"},
		{name: "all too young", how: "pip", asked: "emoji", refused: "file_withheld emoji"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			young := indextest.Listed{Uploaded: ago(day)}
			w.index.Add(indextest.Wheel{Name: "polars", Version: "1.1", Tag: "cp27-cp27m-win32"}, indextest.Wheel{Name: "polars", Version: "1.2"}, indextest.Wheel{Name: "polars", Version: "1.4"},
				indextest.Wheel{Name: "polars", Version: "2.0"}, indextest.Wheel{Name: "polars", Version: "2.1", Listed: young}, indextest.Sdist{Name: "cowsay", Version: "1.0"},
				indextest.Wheel{Name: "emoji", Listed: young}, indextest.Wheel{Name: "humanize"})
			r := asking(t, tt.how, tt.asked)
			p := w.provide(r)
			if brought(p) != tt.brought || refusals(p) != tt.refused || !strings.Contains(strings.Join(p.Notes, "\n"), tt.note) || (tt.note == "") != (len(p.Notes) == 0) {
				t.Errorf("got %s, %s: %+v", brought(p), refusals(p), p)
			}
			// What cannot be had does not keep the rest away.
			r.Report.Asked = append(r.Report.Asked, asking(t, "pip", "humanize").Report.Asked...)
			if p := w.provide(r); !strings.Contains(brought(p), "humanize 1.0") || refusals(p) != tt.refused {
				t.Errorf("beside another: got %s, %s: %+v", brought(p), refusals(p), p)
			}
		})
	}
}

func TestRequiresPython(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "cowsay", Version: "1.0"}, indextest.Wheel{Name: "cowsay", Version: "2.0", Listed: indextest.Listed{RequiresPython: ">=3.99"}})
	r := code("cowsay")
	r.Report.RequiresPython = ">=3.98"
	p := w.provide(r)
	if brought(p) != "cowsay 1.0" || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], ">=3.98") {
		t.Errorf("got %+v", p)
	}
}
