package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/python/deps"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/names"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
	"cove/internal/testkit/testneeds"
)

// desk is an installer of packages that all have version 1, or 2 after an upgrade, and need "dep".
type desk struct {
	standing map[bool]*cli.Standing
	provide  installation.Provision // of what it does, and nothing is changed when it refuses something
	err      error
	settings config.Config
}

func newDesk(requirements ...string) *desk {
	d := &desk{standing: map[bool]*cli.Standing{false: {}, true: {}}, provide: installation.Provision{Seconds: 0.42}}
	if len(requirements) > 0 {
		d.set(false, requirements, "1")
	}
	return d
}

func (d *desk) set(global bool, requirements []string, version string) {
	s := &cli.Standing{File: "/p/cove-packages.txt", Lock: "/p/cove-packages.lock", Requirements: requirements, Packages: map[string]string{}}
	if len(requirements) > 0 {
		s.Packages["dep"] = "1"
	}
	for _, text := range requirements {
		r, err := require.Parse(text)
		if err != nil {
			panic(err)
		}
		s.Packages[r.Name] = version
	}
	d.standing[global] = s
}

func (d *desk) done(global bool, requirements []string, version string) (installation.Provision, error) {
	if d.err == nil && len(d.provide.Refused) == 0 {
		d.set(global, requirements, version)
	}
	return d.provide, d.err
}

func (d *desk) Environment() cli.BaseEnvironment {
	return cli.BaseEnvironment{Name: "standard", Python: "3.12.4", Packages: map[string]string{"numpy": "2.3.4", "pandas": "2.3.3"}}
}
func (d *desk) Standing(global bool) (cli.Standing, error) { return *d.standing[global], nil }
func (d *desk) Add(_ context.Context, asked []require.Requirement, global bool, told func(installation.Progress)) (installation.Provision, error) {
	told(installation.Progress{Phase: "resolve"})
	requirements := d.standing[global].Requirements
	for _, r := range asked {
		requirements = append(requirements, r.String())
	}
	return d.done(global, requirements, "1")
}

func (d *desk) Remove(_ context.Context, names []string, global bool, _ func(installation.Progress)) (installation.Provision, error) {
	return d.done(global, slices.DeleteFunc(slices.Clone(d.standing[global].Requirements), func(text string) bool { return slices.Contains(names, text) }), "1")
}

func (d *desk) Lock(_ context.Context, global, upgrade bool, _ func(installation.Progress)) (installation.Provision, error) {
	version := "1"
	if upgrade {
		version = "2"
	}
	return d.done(global, d.standing[global].Requirements, version)
}

func (d *desk) Layers() ([]layer.Used, error) {
	used := time.Date(2026, 5, 4, 3, 2, 1, 0, time.Local)
	wheels := []layer.Wheel{{Name: "a", Version: "1"}, {Name: "b", Version: "1"}, {Name: "c", Version: "1"}, {Name: "d", Version: "1"}, {Name: "e", Version: "1"}, {Name: "f", Version: "1"}}
	return []layer.Used{
		{Layer: layer.Layer{Name: "secret", Wheels: wheels, Modules: []string{"a"}, Unpacked: 12_345_678}, Used: used},
		{Layer: layer.Layer{Name: "hidden", Wheels: wheels[:1], Unpacked: 4096}, Used: used},
	}, nil
}

func (d *desk) do(t *testing.T, args ...string) result {
	t.Helper()
	return run(t, &scripted{}, func(_ string, p *cli.Program) {
		p.Packages = func(_ context.Context, c config.Config, _ io.Writer) (cli.PackageDesk, error) {
			d.settings = c
			return d, nil
		}
	}, append([]string{"packages"}, args...)...)
}

func TestStandingPackages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		desk     *desk
		args     []string
		out, err string
	}{
		{"add", newDesk(), []string{"add", "Duckdb", "polars<2"}, "+ dep 1\n+ duckdb 1\n+ polars 1\n", "cove: /p/cove-packages.txt: 2 requirements, 3 packages in all (0.4 s)\n"},
		{"add for all projects", newDesk(), []string{"add", "--global", "duckdb"}, "+ dep 1\n+ duckdb 1\n", "cove: /p/cove-packages.txt: 1 requirement, 2 packages in all (0.4 s)\n"},
		{"add quietly", newDesk(), []string{"add", "-q", "duckdb"}, "", ""},
		{"remove", newDesk("duckdb", "polars"), []string{"rm", "DuckDB"}, "- duckdb 1\n", "cove: /p/cove-packages.txt: 1 requirement, 2 packages in all (0.4 s)\n"},
		{"lock", newDesk("duckdb"), []string{"lock"}, "", "cove: nothing changed; /p/cove-packages.txt: 1 requirement, 2 packages in all\n"},
		{"upgrade", newDesk("duckdb"), []string{"lock", "--upgrade"}, "~ duckdb 1 -> 2\n", "cove: /p/cove-packages.txt: 1 requirement, 2 packages in all (0.4 s)\n"},
		{"nothing to lock", newDesk(), []string{"lock", "--global"}, "", "cove: nothing changed; /p/cove-packages.txt: 0 requirements, 0 packages in all\n"},
		{"as JSON", newDesk(), []string{"add", "--json", "duckdb"}, `{
  "cached": false,
  "changes": [
    {
      "name": "dep",
      "to": "1"
    },
    {
      "name": "duckdb",
      "to": "1"
    }
  ],
  "file": "/p/cove-packages.txt",
  "lock": "/p/cove-packages.lock",
  "notes": [],
  "packages": {
    "dep": "1",
    "duckdb": "1"
  },
  "requirements": [
    "duckdb"
  ],
  "seconds": 0.42
}
`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.desk.do(t, c.args...)
			if r.code != 0 || r.out != c.out || r.err != c.err {
				t.Errorf("exit code %d, stdout:\n%sstderr:\n%swant:\n%sand:\n%s", r.code, r.out, r.err, c.out, c.err)
			}
		})
	}
}

func TestStandingPackagesThatCannotBe(t *testing.T) {
	t.Parallel()
	refused := newDesk()
	refused.provide.Refused = []installation.Refusal{{Name: "foo", Code: "package_unknown", Reason: "the index has no package named foo", Hint: "check the name"}, {Name: "bar", Code: "no_wheel", Reason: "it has no wheel", Hint: "--allow-build"}}
	failing := newDesk()
	failing.err = unreachable()
	for _, c := range []struct {
		name string
		desk *desk
		args []string
		err  string
	}{
		{"refused", refused, []string{"add", "foo", "bar"}, "cove: the index has no package named foo\n  check the name\ncove: bar: it has no wheel\n  --allow-build\n"},
		{"failed", failing, []string{"lock"}, "cove: the package index cannot be reached\n  check the network\n  or use --offline\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.desk.do(t, c.args...)
			if r.code != 125 || r.out != "" || r.err != c.err {
				t.Errorf("exit code %d, stdout %q, stderr:\n%s\nwant:\n%s", r.code, r.out, r.err, c.err)
			}
		})
	}
	if r := newDesk().do(t, "add", "git+https://example.invalid/x"); r.code != 125 || r.err == "" {
		t.Errorf("a URL was taken: exit code %d, stderr %q", r.code, r.err)
	}
}

func TestDeskSettings(t *testing.T) {
	t.Parallel()
	d := newDesk()
	d.do(t, "add", "--offline", "--allow-build", "--packages", "minimal", "x")
	if c := d.settings; !c.Packages.Offline || !c.Packages.Build || !c.Packages.Install || c.Packages.Set != "minimal" {
		t.Errorf("offline %v, build %v, install %v, set %s", c.Packages.Offline, c.Packages.Build, c.Packages.Install, c.Packages.Set)
	}
}

func TestPackagesLs(t *testing.T) {
	t.Parallel()
	d := newDesk("polars<2", "duckdb", "xarray")
	delete(d.standing[false].Packages, "xarray") // as when somebody has edited the file
	want := `environment  standard, Python 3.12.4, 2 packages
  numpy      2.3.4
  pandas     2.3.3
project      /p/cove-packages.txt
  duckdb     1
  polars     1  polars<2
  xarray     not locked
  dep        1
elsewhere    none
installed    2 layers, 12 MB

LAST USED         SIZE   PACKAGES
2026-05-04 03:02  12 MB  a 1, b 1, c 1, d 1, e 1 and 1 more
2026-05-04 03:02  4 kB   a 1
`
	r := d.do(t, "ls", "-v")
	if diff := cmp.Diff(want, r.out); diff != "" || r.code != 0 {
		t.Errorf("exit code %d, stderr %q\n%s", r.code, r.err, diff)
	}
	var got struct {
		Environment, Project, Global struct {
			Requirements []string
			Packages     map[string]string
		}
		Layers []struct{ Packages map[string]string }
	}
	text := d.do(t, "ls", "--json").out
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Layers) != 2 || got.Layers[1].Packages["a"] != "1" || got.Project.Packages["polars"] != "1" || got.Global.Requirements == nil {
		t.Errorf("%v: %s", err, text)
	}
	if strings.Contains(text+r.out, "secret") {
		t.Error("the name of a layer, which sandboxes must not know, is shown")
	}
}

// explained is what the table and policy say in TestResolve.
var explained = map[string]names.Answer{
	"sklearn":     {Status: names.Found, Distribution: "scikit-learn", Reason: names.ByTable, Explanation: "sklearn is provided by scikit-learn"},
	"a.b":         {Status: names.Found, Distribution: "a-b", Extras: []string{"x", "y"}, Reason: names.ByOverride, Explanation: "by hand"},
	"json":        {Status: names.Standard, Reason: names.ByStdlib, Explanation: "json is part of Python's standard library"},
	"RPi":         {Status: names.Refused, Reason: names.ByNever, Explanation: "RPi does not come from a package index", Hint: "it needs a board"},
	"torchvisoin": {Status: names.Unknown, Reason: names.ByNothing, Explanation: "nothing is known", Hint: "check the spelling", Suggestions: []string{"torchvision"}},
}

func resolve(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return run(t, &scripted{}, func(_ string, p *cli.Program) {
		p.In = strings.NewReader(stdin)
		p.Explain = func(config.Config) cli.Explain {
			return func(module string) (names.Answer, deps.Tier) {
				a, ok := explained[module]
				if !ok {
					a = names.Answer{Status: names.Found, Distribution: module, Reason: names.BySameName, Explanation: "a guess"}
				}
				a.Module = module
				return a, deps.TierOther
			}
		}
	}, append([]string{"packages", "resolve"}, args...)...)
}

func TestResolve(t *testing.T) {
	t.Parallel()
	r := resolve(t, "", slices.Sorted(maps.Keys(explained))...)
	want := `MODULE       PACKAGE                       TIER     WHY
RPi          -                             refused  RPi does not come from a package index; it needs a board
a.b          a-b[x,y]                      other    by hand
json         -                             stdlib   json is part of Python's standard library
sklearn      scikit-learn                  other    sklearn is provided by scikit-learn
torchvisoin  -                             unknown  nothing is known; check the spelling; similar: torchvision
`
	if diff := cmp.Diff(want, r.out); diff != "" || r.code != 1 || r.err != "" {
		t.Errorf("exit code %d, stderr %q\n%s", r.code, r.err, diff)
	}
	if r := resolve(t, "", "sklearn", "json"); r.code != 0 {
		t.Errorf("exit code %d when all is known", r.code)
	}
	r = resolve(t, "sklearn json # a.b\n\n  whatever\n", "--json", "-", "a.b")
	want = `{"module":"sklearn","status":"found","distribution":"scikit-learn","reason":"table","explanation":"sklearn is provided by scikit-learn","tier":"other"}
{"module":"json","status":"stdlib","reason":"stdlib","explanation":"json is part of Python's standard library","tier":"stdlib"}
{"module":"whatever","status":"found","distribution":"whatever","reason":"same_name","explanation":"a guess","tier":"other"}
{"module":"a.b","status":"found","distribution":"a-b","extras":["x","y"],"reason":"override","explanation":"by hand","tier":"other"}
`
	if diff := cmp.Diff(want, r.out); diff != "" || r.code != 0 || r.err != "" {
		t.Errorf("exit code %d, stderr %q\n%s", r.code, r.err, diff)
	}
	for want, args := range map[string][]string{"not a version of Python": {"--python", "twelve", "x"}, "expected": {}} {
		if r := resolve(t, "", args...); r.code != 125 || !strings.Contains(r.err, want) {
			t.Errorf("%q: exit code %d, stderr %q", args, r.code, r.err)
		}
	}
}

func TestResolveWithoutAnEnvironment(t *testing.T) {
	t.Parallel()
	r := run(t, &scripted{}, func(_ string, p *cli.Program) {
		p.Explain = func(config.Config) cli.Explain { return nil }
	}, "packages", "resolve", "sklearn", "json")
	for _, want := range []string{"scikit-learn", "table", "stdlib"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q lacks %s", r.out, want)
		}
	}
	// An environment has its own standard library; another Python is asked about by its version alone.
	if r := resolve(t, "", "--python", "3.12", "sklearn"); !strings.Contains(r.out, "table") {
		t.Errorf("the answer is the environment's: %q", r.out)
	}
}

func TestNamesByTheThousandAreAnsweredAsTheyCome(t *testing.T) {
	t.Parallel()
	in, ask := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan int, 1)
	p := &cli.Program{In: in, Out: out, Err: io.Discard, Getenv: environment, Config: config.Default(environment)}
	go func() {
		ended <- cli.Main(t.Context(), []string{"packages", "resolve", "--json", "-"}, p)
		_ = out.Close()
	}()
	lines := json.NewDecoder(answers)
	var a names.Answer
	if _, err := io.WriteString(ask, "first\nmodule"); err != nil {
		t.Fatal(err)
	}
	if err := lines.Decode(&a); err != nil || a.Module != "first" {
		t.Fatalf("the answer to the first name, before the second is asked: %+v, %v", a, err)
	}
	many := 10_000
	if !testneeds.MoreThanQuick() {
		many = 2000
	}
	go func() {
		all := strings.Builder{}
		all.WriteString("0\n") // of the line that was begun
		for n := range many - 1 {
			fmt.Fprintf(&all, "module%d\n", n+1)
		}
		_, _ = io.WriteString(ask, all.String())
		_ = ask.Close()
	}()
	n := 0
	for ; ; n++ {
		err := lines.Decode(&a)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || a.Module != fmt.Sprintf("module%d", n) {
			t.Fatalf("answer %d: %+v, %v", n, a, err)
		}
	}
	if code := <-ended; n != many || code != 0 {
		t.Errorf("%d answers, exit code %d", n, code)
	}
}
