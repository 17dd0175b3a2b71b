package deps_test

import (
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/python/deps"
	"cove/internal/python/deps/indextest"
	"cove/internal/python/deps/scan"
	"cove/internal/python/installation"
)

func TestMissingPackageIsInstalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain("packaging", "24.0"))
	w.index.Add(indextest.Wheel{Name: "cowsay", Version: "6.1", Require: []string{"humanize", "packaging>=20"}}, indextest.Wheel{Name: "humanize", Version: "4.0"},
		indextest.Wheel{Name: "packaging", Version: "25.0"})
	var phases []string
	p, err := w.installer().Provide(t.Context(), code("cowsay"), func(p installation.Progress) {
		if len(phases) == 0 || phases[len(phases)-1] != p.Phase {
			phases = append(phases, p.Phase)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := brought(p); got != "cowsay 6.1, humanize 4.0" || p.First || p.Restart != "" || p.Cached || p.Layer == "" || p.Silent() || p.Seconds <= 0 {
		t.Fatalf("got %s: %+v", got, p)
	}
	if i := p.Installed[0]; i.Name != "cowsay" || !i.Asked || i.Module != "cowsay" || i.Reason != "table" || i.Size == 0 || p.Installed[1].Asked {
		t.Errorf("described as %+v", p.Installed)
	}
	if phases[0] != "resolve" || !strings.Contains(strings.Join(phases, " "), "download") {
		t.Errorf("told %v", phases)
	}
	out, err := w.imports(w.installer(), p.State, "import cowsay, humanize; print(cowsay.__version__, humanize.__version__)")
	if err != nil || out != "6.1 4.0" {
		t.Errorf("importing: %s, %v", out, err)
	}

	asked := w.index.Requests("")
	again := w.provide(code("cowsay"))
	if again.Layer != p.Layer || !again.Cached || brought(again) != brought(p) {
		t.Errorf("another session got %+v", again)
	}
	same := code("cowsay", "humanize")
	same.State = p.State
	if rest := w.provide(same); !rest.Silent() || !rest.Cached {
		t.Errorf("the same session got %+v", rest)
	}
	if n := w.index.Requests("") - asked; n != 0 {
		t.Errorf("the index was asked %d more times", n)
	}
}

func TestNothingIsInstalled(t *testing.T) {
	t.Parallel()
	base := []installed{plain("numpy", "2.0"), {name: "matplotlib", version: "3.9", files: []string{"matplotlib/__init__.py", "mpl_toolkits/mplot3d/__init__.py", "pylab.py"}},
		plain("opencv-python", "4.0"), {name: "ujson", version: "5.0", files: []string{"ujson.cpython-399-x86_64-linux-gnu.so"}}}
	missing := func(r deps.Request, modules ...string) deps.Request { r.Missing = modules; return r }
	tests := map[string]deps.Request{
		"no imports":             {},
		"standard library":       code("os", "os.path", "xml.etree.ElementTree", "_thread"),
		"environment":            code("numpy", "numpy.linalg", "pylab", "ujson", "emoji", "peewee"),
		"shared, in environment": missing(deps.Request{Report: scan.Report{Imports: []scan.Import{{Module: "mpl_toolkits", Names: []string{"mplot3d"}}, {Module: "mpl_toolkits.mplot3d", Names: []string{"Axes3D"}}}}}),
		"optional":               {Report: scan.Report{Imports: []scan.Import{{Module: "cowsay", Optional: true}}}, Missing: []string{"cowsay"}},
		"local module":           missing(code("cowsay", "my_own_module"), "something_else"),
		"shared, alone":          missing(code("mpl_toolkits")),
		"another build of it":    code("cv2"),
		"installed already":      asking(t, "pip", "numpy", "numpy>=1.5", "numpy==2.0", "matplotlib<4", "opencv_python"),
		"a need that is there":   missing(deps.Request{Report: scan.Report{Imports: []scan.Import{{Module: "numpy", Need: "read_x", Distribution: "numpy"}}}}, "numpy"),
	}
	w := newWorld(t, base...)
	w.index.Add(indextest.Wheel{Name: "cowsay"})
	loose := filepath.Join(w.env.Dir, "lib", "python"+w.env.Version[:strings.LastIndex(w.env.Version, ".")], "site-packages")
	write(t, filepath.Join(loose, "emoji", "__init__.py"), "")
	write(t, filepath.Join(loose, "peewee.py"), "")
	for name, request := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := w.installer().Provide(t.Context(), request, nil)
			if err != nil || !p.Silent() || !p.Cached {
				t.Errorf("got %+v, %v", p, err)
			}
		})
	}
	if n := w.index.Requests(""); n != 0 {
		t.Errorf("the index was asked %d times", n)
	}
	provided := w.installer().Provided(installation.State{})
	for root, want := range map[string]bool{"os": true, "numpy": true, "pylab": true, "ujson": true, "mpl_toolkits": false, "cowsay": false, "google": false, "": false} {
		if got := provided(root); got != want {
			t.Errorf("%q provided: %t", root, got)
		}
	}
}

func TestOneLayerForAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "pyyaml", Version: "6.0", Files: map[string]string{"yaml/__init__.py": "a = 1"}}, indextest.Wheel{Name: "beautifulsoup4", Files: map[string]string{"bs4/__init__.py": "a = 2"}},
		indextest.Wheel{Name: "openpyxl", Version: "3.1"}, indextest.Wheel{Name: "polars", Version: "1.9"}, indextest.Wheel{Name: "polars", Version: "2.1"})
	r := code("yaml", "bs4")
	r.Report.Imports = append(r.Report.Imports, scan.Import{Module: "openpyxl", Need: "read_excel", Distribution: "openpyxl"})
	r.Missing = append(r.Missing, "openpyxl", "polars")
	r.Report.Imports = append(r.Report.Imports, scan.Import{Module: "polars"})
	r.Report.Asked = asking(t, "pip", "polars<2").Report.Asked
	p := w.provide(r)
	if got := brought(p); got != "beautifulsoup4 1.0, openpyxl 3.1, polars 1.9, pyyaml 6.0" || len(p.State.Layers) != 1 {
		t.Fatalf("got %s: %+v", got, p)
	}
	for _, one := range p.Installed {
		if one.Name == "openpyxl" && one.Reason != "read_excel" || one.Name == "polars" && one.Reason != "pip" {
			t.Errorf("described as %+v", one)
		}
	}
	out, err := w.imports(w.installer(), p.State, "import yaml, bs4; print(yaml.a, bs4.a)")
	if err != nil || out != "1 2" {
		t.Errorf("importing: %s, %v", out, err)
	}
}

// TestCompanions has what keras computes with come along, unless something of the kind is there or asked for.
func TestCompanions(t *testing.T) {
	t.Parallel()
	plain := func(name string) installed {
		return installed{name: name, version: "2.0", files: []string{name + "/__init__.py"}}
	}
	keras := func(more ...string) deps.Request {
		r := code(append(more, "keras")...)
		r.Missing = append(r.Missing, "keras", "torch")
		return r
	}
	for name, c := range map[string]struct {
		base    []installed
		request deps.Request
		want    string
	}{
		"none there":         {nil, keras(), "keras 3.0, tensorflow-cpu 2.0"},
		"one there":          {[]installed{plain("jax")}, keras(), "keras 3.0"},
		"another imported":   {nil, keras("torch"), "keras 3.0, torch 2.0"},
		"keras itself there": {[]installed{plain("keras")}, keras(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.base...)
			w.index.Add(indextest.Wheel{Name: "keras", Version: "3.0"}, indextest.Wheel{Name: "tensorflow-cpu", Version: "2.0"}, indextest.Wheel{Name: "torch", Version: "2.0"})
			if got := brought(w.provide(c.request)); got != c.want {
				t.Errorf("%q was installed", got)
			}
		})
	}
}

func TestLaterLayers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "polars", Version: "1.0", Require: []string{"humanize"}}, indextest.Wheel{Name: "humanize", Version: "1.0"}, indextest.Wheel{Name: "cowsay", Require: []string{"humanize"}},
		indextest.Wheel{Name: "polars", Version: "2.0", Require: []string{"humanize"}})
	first := w.provide(asking(t, "pip", "polars<2"))
	w.index.Add(indextest.Wheel{Name: "humanize", Version: "2.0"}) // a session keeps what it has
	r := code("cowsay")
	r.State = first.State
	second := w.provide(r)
	if got := brought(second); got != "cowsay 1.0" || second.State.Packages["humanize"] != "1.0" || len(second.State.Layers) != 2 || second.State.Layers[0] != second.Layer {
		t.Fatalf("got %s: %+v", got, second)
	}
	// A later wish for the same package takes the place of the earlier one.
	r = asking(t, "pip", "polars>=2")
	r.State = second.State
	third := w.provide(r)
	if got := brought(third); got != "polars 2.0" || third.First || third.Restart != "" || strings.Join(third.State.Requirements, " ") != "cowsay polars>=2" {
		t.Fatalf("got %s: %+v", got, third)
	}
	out, err := w.imports(w.installer(), third.State, "import cowsay, polars, humanize; print(polars.__version__, humanize.__version__)")
	if err != nil || out != "2.0 1.0" {
		t.Errorf("importing: %s, %v", out, err)
	}
	if len(first.State.Layers) != 1 || len(second.State.Layers) != 2 || second.State.Packages["polars"] != "1.0" {
		t.Error("an earlier state was changed")
	}

	// What a sweep has taken away is missing again.
	if err := w.installer().Store().Sweep(nil, -day); err != nil {
		t.Fatal(err)
	}
	if w.installer().Provided(third.State)("cowsay") {
		t.Error("a layer that is gone still provides")
	}
	r = code("cowsay")
	r.State = third.State
	fourth := w.provide(r)
	if len(fourth.State.Layers) != 1 || fourth.Layer == "" || fourth.State.Packages["polars"] != "" {
		t.Errorf("after a sweep: %+v", fourth)
	}
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, installed{name: "google-auth", version: "2.0", files: []string{"google/auth/__init__.py", "google/oauth2/__init__.py"}})
	w.index.Add(indextest.Wheel{Name: "google-cloud-storage", Files: map[string]string{"google/cloud/storage/__init__.py": "a = 1"}},
		indextest.Wheel{Name: "google-cloud-bigquery", Files: map[string]string{"google/cloud/bigquery/__init__.py": "a = 2"}})
	r := deps.Request{Report: scan.Report{Imports: []scan.Import{{Module: "google.cloud", Names: []string{"storage"}}, {Module: "google.auth", Names: []string{"default"}}, {Module: "google.oauth2.credentials"}}}}
	p := w.provide(r) // the kernel finds the root google, and says that nothing is missing
	if got := brought(p); got != "google-cloud-storage 1.0" {
		t.Fatalf("got %s: %+v", got, p)
	}
	i := w.installer()
	if i.Provided(p.State)("google") {
		t.Error("google is said to be provided whole")
	}
	r.State = p.State
	if again := w.provide(r); !again.Silent() {
		t.Errorf("again: %+v", again)
	}
	r.Report.Imports = append(r.Report.Imports, scan.Import{Module: "google.cloud.bigquery", Names: []string{"Client"}})
	p = w.provide(r)
	if got := brought(p); got != "google-cloud-bigquery 1.0" {
		t.Errorf("got %s: %+v", got, p)
	}
}

func TestModule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "cowsay"})
	i := w.installer()
	p, err := i.Module(t.Context(), "cowsay", nil, installation.State{}, nil)
	if err != nil || brought(p) != "cowsay 1.0" {
		t.Fatalf("got %+v, %v", p, err)
	}
	for range 3 {
		p, err = i.Module(t.Context(), "no_such_module_at_all", nil, p.State, nil)
		if err != nil || refusals(p) != "package_unknown no_such_module_at_all" || len(p.State.Layers) != 1 {
			t.Errorf("got %+v, %v", p, err)
		}
	}
	if n := w.index.Requests("/simple/no-such-module-at-all/"); n > 1 {
		t.Errorf("the index was asked %d times for what it does not have", n)
	}
}

// What was asked for in words is what an import of an unknown module most likely means.
func TestAskedComesBeforeGuessed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "obscure-tools", Files: map[string]string{"obscure_thing/__init__.py": ""}, Listed: indextest.Listed{Uploaded: ago(400 * day)}},
		indextest.Wheel{Name: "obscure-tools", Version: "0.9"}, indextest.Wheel{Name: "obscure-thing"}, indextest.Wheel{Name: "obscure-thing", Version: "0.9"})
	r := asking(t, "pip", "obscure-tools")
	r.Report.Imports, r.Missing = []scan.Import{{Module: "obscure_thing"}}, []string{"obscure_thing"}
	p := w.provide(r)
	if got := brought(p); got != "obscure-tools 1.0" || len(p.Refused) != 0 {
		t.Errorf("got %s: %+v", got, p)
	}
}

// TestBackToAnEarlierLayer asks for a version again that a later layer has taken the place of.
func TestBackToAnEarlierLayer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "cowsay", Version: "5.0"}, indextest.Wheel{Name: "cowsay", Version: "6.1"})
	newest := w.provide(code("cowsay"))
	step := func(state installation.State, requirement string) installation.Provision {
		r := asking(t, "pip", requirement)
		r.State = state
		return w.provide(r)
	}
	older := step(newest.State, "cowsay<6")
	back := step(older.State, "cowsay==6.1")
	if brought(older) != "cowsay 5.0" || brought(back) != "cowsay 6.1" || back.Layer != newest.Layer || back.State.Layers[0] != newest.Layer || len(back.State.Layers) != 2 {
		t.Errorf("first %s, then %+v", brought(older), back)
	}
}

// TestAlternatives has code that wants one module only where none of some others can be imported.
func TestAlternatives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain("orjson", "1.0"))
	w.index.Add(indextest.Wheel{Name: "simplejson"})
	for other, want := range map[string]string{"json": "", "orjson": "", "own": "", "ujson": "simplejson 1.0"} {
		r := deps.Request{Report: scan.Report{Imports: []scan.Import{{Module: "simplejson", Unless: []string{other}}}}, Missing: []string{"simplejson", "ujson"}}
		if got := brought(w.provide(r)); got != want {
			t.Errorf("beside %s it installed %q, want %q", other, got, want)
		}
	}
}

// TestVersionsThatHaveAModule has a module that later versions of its distribution have no more.
func TestVersionsThatHaveAModule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "setuptools", Version: "84.0"}, indextest.Wheel{Name: "setuptools", Version: "80.1"})
	newest := w.provide(code("setuptools"))
	r := code("pkg_resources")
	r.State = newest.State
	if p := w.provide(r); brought(newest) != "setuptools 84.0" || brought(p) != "setuptools 80.1" {
		t.Errorf("first %s, then %+v", brought(newest), p)
	}
}
