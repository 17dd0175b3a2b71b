package deps_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/core/config"
	"cove/internal/python/deps"
	"cove/internal/python/deps/indextest"
	"cove/internal/python/deps/require"
	"cove/internal/python/deps/scan"
	"cove/internal/python/installation"
	"cove/internal/python/pyenv"
	"cove/internal/python/pyindex"
	"cove/internal/testkit/testneeds"
)

// installed is a distribution of a fake base environment.
type installed struct {
	name, version string
	files         []string
	requires      []string
}

// world is a fake index, a fake base environment on a real Python, and a data folder.
type world struct {
	t       *testing.T
	index   *indextest.Index
	env     *pyenv.Environment
	options deps.Options
	sources []pyindex.Source
}

// newWorld returns one whose base has these distributions beside IPython's fake.
func newWorld(t *testing.T, base ...installed) *world {
	t.Helper()
	have, uv := testneeds.Environment(t, pyenv.Minimal), testneeds.FindUV(t)
	parts := strings.Split(have.Version, ".")
	dir := t.TempDir()
	site := filepath.Join(dir, "lib", "python"+parts[0]+"."+parts[1], "site-packages")
	packages := map[string]string{}
	for _, d := range append(base, installed{name: "traitlets", version: "5.0", files: []string{"traitlets/__init__.py"}}) {
		packages[d.name] = d.version
		info := filepath.Join(site, strings.ReplaceAll(d.name, "-", "_")+"-"+d.version+".dist-info")
		write(t, filepath.Join(info, "RECORD"), strings.Join(d.files, ",,\n")+",,\n")
		meta := "Metadata-Version: 2.1\nName: " + d.name + "\nVersion: " + d.version + "\n"
		for _, r := range d.requires {
			meta += "Requires-Dist: " + r + "\n"
		}
		write(t, filepath.Join(info, "METADATA"), meta+"\nRequires-Dist: not-this\n")
		for _, file := range d.files {
			write(t, filepath.Join(site, file), "")
		}
	}
	w := &world{t: t, index: indextest.New(t)}
	w.sources = []pyindex.Source{{Name: "test", URL: w.index.URL}}
	w.env = &pyenv.Environment{Dir: dir, Python: have.Python, Base: have.Base, Version: have.Version, Packages: packages, Key: "test-" + filepath.Base(dir), Set: pyenv.Minimal}
	w.options = deps.Options{
		Data: t.TempDir(), Env: w.env, Policy: deps.PolicyOf(config.Default(os.Getenv)),
		UV: func(context.Context) (string, error) { return uv, nil },
		Sources: func(context.Context, string) ([]pyindex.Source, pyindex.Access, error) {
			return w.sources, pyindex.Access{Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}, nil
		},
	}
	for _, d := range append(base, installed{name: "traitlets", version: "5.0"}) {
		w.index.Add(indextest.Wheel{Name: d.name, Version: d.version, Require: d.requires})
	}
	return w
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// installer is a new one, as of a new process.
func (w *world) installer() *deps.Installer {
	w.t.Helper()
	i, err := deps.New(w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

// code is a request for what code that imports these modules needs, all of them unknown to the kernel.
func code(modules ...string) deps.Request {
	var r deps.Request
	for _, m := range modules {
		r.Report.Imports = append(r.Report.Imports, scan.Import{Module: m})
		root, _, _ := strings.Cut(m, ".")
		r.Missing = append(r.Missing, root)
	}
	return r
}

// asking is a request with requirements in the code.
func asking(t *testing.T, how string, requirements ...string) deps.Request {
	t.Helper()
	var r deps.Request
	for _, text := range requirements {
		one, err := require.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		r.Report.Asked = append(r.Report.Asked, scan.Asked{Requirement: one, How: how})
	}
	return r
}

func (w *world) provide(r deps.Request) installation.Provision {
	w.t.Helper()
	p, err := w.installer().Provide(w.t.Context(), r, nil)
	if err != nil {
		w.t.Fatalf("%+v", err)
	}
	return p
}

// brought are the names and versions of what a Provision installed, sorted.
func brought(p installation.Provision) string {
	var out []string
	for _, one := range p.Installed {
		out = append(out, one.Name+" "+one.Version)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// imports runs Python with a state's layers and returns what the code prints.
func (w *world) imports(i *deps.Installer, s installation.State, code string) (string, error) {
	w.t.Helper()
	first, last := s.Paths(i.Store().Folder())
	program := fmt.Sprintf("import sys\nsys.path[:0] = %s\nsys.path += %s\n%s", list(first), list(last), code)
	return run(w.t, w.env.Python, "-I", "-c", program)
}

func list(paths []string) string {
	var out []string
	for _, p := range paths {
		out = append(out, fmt.Sprintf("%q", p))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// refusals are the codes and names of what was refused.
func refusals(p installation.Provision) string {
	var out []string
	for _, r := range p.Refused {
		if r.Reason == "" || r.Hint == "" {
			out = append(out, "UNEXPLAINED")
		}
		out = append(out, r.Code+" "+r.Name)
	}
	return strings.Join(out, ", ")
}

// ago is a time that long before now.
func ago(d time.Duration) time.Time { return time.Now().Add(-d) }

const day = 24 * time.Hour

func run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// plain is a distribution with one package of its own name.
func plain(name, version string, requires ...string) installed {
	return installed{name: name, version: version, files: []string{strings.ReplaceAll(name, "-", "_") + "/__init__.py"}, requires: requires}
}
