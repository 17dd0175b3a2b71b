package scan_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/local"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/deps/scan"
	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
)

// python returns the interpreter that cove would build an environment on.
func python(t testing.TB) pyenv.Interpreter {
	t.Helper()
	return testneeds.FindPython(t)
}

// startLocal starts a scanner without isolation, which is the quick way to a real one.
func startLocal(t testing.TB) (*guestlink.Link, *scan.Scanner) {
	t.Helper()
	e := local.New(local.Options{State: t.TempDir()})
	_, l := sandboxtest.Start(t, e, sandbox.Spec{})
	return l, startOn(t, l, python(t).Path)
}

func startOn(t testing.TB, l *guestlink.Link, python string) *scan.Scanner {
	t.Helper()
	s, err := scan.Start(t.Context(), l, python)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(s.Close)
	return s
}

func look(t testing.TB, s *scan.Scanner, code scan.Code) scan.Report {
	t.Helper()
	r, err := s.Scan(t.Context(), code)
	if err != nil {
		t.Fatalf("%.200s\n%+v", code.Text, err)
	}
	return r
}

// describe writes a report in few words: "numpy", "numpy?" where it is optional, "numpy<-a,b" only without a and b, "read_excel:openpyxl" for a
// need, "pip=polars<2" for what is asked for.
func describe(r scan.Report) string {
	var out []string
	for _, i := range r.Imports {
		text := i.Module
		if i.Need != "" {
			text = i.Need + ":" + i.Module
		}
		if i.Optional {
			text += "?"
		}
		if len(i.Unless) > 0 {
			text += "<-" + strings.Join(i.Unless, ",")
		}
		out = append(out, text)
	}
	for _, a := range r.Asked {
		out = append(out, a.How+"="+a.String())
	}
	for _, refused := range r.Refused {
		out = append(out, "refused="+refused)
	}
	if r.RequiresPython != "" {
		out = append(out, "python"+r.RequiresPython)
	}
	if r.Invalid {
		out = append(out, "invalid")
	}
	return strings.Join(out, " ")
}

// TestScan has the snippets of corpus_test.go scanned, and Suspect look at each: what the scanner finds, Suspect may not miss.
func TestScan(t *testing.T) {
	t.Parallel()
	_, s := startLocal(t)
	for _, c := range corpus {
		t.Run(c.name, func(t *testing.T) {
			r := look(t, s, scan.Code{Text: c.code, Script: c.script})
			if diff := cmp.Diff(c.want, describe(r)); diff != "" {
				t.Errorf("%s\n(-want +got)\n%s", c.code, diff)
			}
			requireSuspect(t, c.code, r)
			requirePlain(t, s, c.code)
		})
	}
}

// requirePlain holds Plain, where it reads the code, to what the scanner finds in it.
func requirePlain(t testing.TB, s *scan.Scanner, code string) (read bool) {
	t.Helper()
	r := look(t, s, scan.Code{Text: code, Script: true})
	if r.Invalid {
		return false
	}
	if _, read := scan.Plain(code, func(string) bool { return false }); read && slices.ContainsFunc(r.Imports, isNeed) {
		t.Errorf("%.500s\nis read as plain, though it needs what it does not import", code)
	}
	got, read := scan.Plain(code, func(string) bool { return true })
	if !read {
		return false
	}
	r.Imports = slices.DeleteFunc(r.Imports, isNeed) // which is provided
	if diff := cmp.Diff(r, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%.500s\nread as plain: (-scanned +read)\n%s", code, diff)
	}
	return true
}

func isNeed(i scan.Import) bool { return i.Need != "" }

// TestPlain is about what has to be read without the scanner.
func TestPlain(t *testing.T) {
	t.Parallel()
	_, s := startLocal(t)
	for _, code := range []string{
		program, "import a", "import a.b as c, d\nfrom e.f import (\n  g as h,  # one\n  i,\n)\nfrom j import *\nfrom . import k\nfrom .l import m",
		"\"\"\"import this\n\"\"\"\nimport a  # why\ndef f(x):\n    return f'{x[\"import\"]}' 'import b'\n",
		"x = [\n  1,\n]\nimport a\nimport a.b\nfrom a import c\nfrom a import d, c\n", "x = 1 + \\\n  2\nimport a", "",
	} {
		if !requirePlain(t, s, code) {
			t.Errorf("not read as plain:\n%s", code)
		}
	}
}

// requireSuspect holds Suspect to what a report says, for every module that could be the only one that is missing.
func requireSuspect(t testing.TB, code string, r scan.Report) {
	t.Helper()
	if (len(r.Asked) > 0 || len(r.Refused) > 0 || r.RequiresPython != "") && !scan.Suspect(code, func(string) bool { return true }) {
		t.Errorf("%.500s\nis not suspected, though it says what it requires", code)
	}
	for _, i := range r.Imports {
		root, _, _ := strings.Cut(i.Module, ".")
		if !scan.Suspect(code, func(module string) bool { return module != root }) {
			t.Errorf("%.500s\nis not suspected where %s is missing", code, root)
		}
	}
}

// TestNeedsNothing is for programs that get by on what is there, in which nothing may be found that has to be installed.
func TestNeedsNothing(t *testing.T) {
	t.Parallel()
	_, s := startLocal(t)
	there := func(module string) bool {
		root, _, _ := strings.Cut(module, ".")
		return slices.Contains(strings.Fields("os sys json re math random time logging csv collections pathlib typing importlib"), root)
	}
	for i, code := range frugal {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := look(t, s, scan.Code{Text: code, Script: true})
			if needed := r.Needed(there); len(needed) > 0 || len(r.Asked) > 0 || r.Invalid {
				t.Errorf("%s\nneeds %+v, asks for %+v, invalid: %v", code, needed, r.Asked, r.Invalid)
			}
		})
	}
}

func TestNeeded(t *testing.T) {
	t.Parallel()
	r := scan.Report{Imports: []scan.Import{
		{Module: "a.b"}, {Module: "c"}, {Module: "d", Optional: true}, {Module: "e", Unless: []string{"c"}}, {Module: "f", Unless: []string{"a"}},
	}}
	var got []string
	for _, i := range r.Needed(func(root string) bool { return root == "c" }) {
		got = append(got, i.Module)
	}
	if want := "a.b f"; strings.Join(got, " ") != want {
		t.Errorf("needs %v, want %s", got, want)
	}
}

// TestNames has the names of from-imports come through, for namespaces.
func TestNames(t *testing.T) {
	t.Parallel()
	_, s := startLocal(t)
	r := look(t, s, scan.Code{Text: "from google.cloud import storage, bigquery as bq\nfrom google.cloud import storage\nfrom a import *"})
	want := []scan.Import{{Module: "google.cloud", Names: []string{"storage", "bigquery"}}, {Module: "a"}}
	if diff := cmp.Diff(want, r.Imports); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDistributionsAreGiven(t *testing.T) {
	t.Parallel()
	_, s := startLocal(t)
	r := look(t, s, scan.Code{Text: "import pandas as pd\npd.read_excel('a.ods')"})
	want := []scan.Import{{Module: "pandas"}, {Module: "odf", Need: "read_excel", Distribution: "odfpy"}}
	if diff := cmp.Diff(want, r.Imports); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestSurvives gives the scanner what is no program at all, and then one that is.
func TestSurvives(t *testing.T) {
	t.Parallel()
	_, s := startLocal(t)
	for name, code := range map[string]string{
		"null bytes":      "import numpy\n\x00\x00import pandas",
		"not UTF-8":       "import numpy\nx = '\xff\xfe'",
		"surrogates":      "import numpy\nx = '\\ud800'\nprint('\\U0001F600')",
		"brackets":        "import numpy\n" + strings.Repeat("(", 100_000),
		"closed brackets": "import numpy\nx = " + strings.Repeat("[", 3000) + strings.Repeat("]", 3000),
		"unary operators": "import numpy\nx = " + strings.Repeat("-", 200_000) + "1",
		"a long sum":      "import numpy\nx = 1" + strings.Repeat("+1", 200_000),
		"attributes":      "import numpy\nx" + strings.Repeat(".a", 200_000),
		"calls":           "import numpy\nx" + strings.Repeat("()", 100_000),
		"blocks":          "import numpy\n" + nested(90),
		"else if":         "import numpy\nif a: pass\n" + strings.Repeat("elif a: pass\n", 20_000),
		"doubling":        "import numpy\nx = 'pip install a'\n" + strings.Repeat("x = x\n", 2000) + strings.Repeat("os.system(x)\n", 2000),
		"a huge number":   "import numpy\nx = " + strings.Repeat("9", 100_000),
		"an open string":  "import numpy\nx = '''" + strings.Repeat("import pandas\n", 1000),
		"many tries":      "import numpy\n" + strings.Repeat("try: import os\nexcept ImportError: os = 1\n", 10_000),
		"many magics":     "import numpy\n" + strings.Repeat("!ls\n", 50_000),
		"most":            "import numpy\n" + strings.Repeat("#\n", scan.MaxCode/2-10),
	} {
		r := look(t, s, scan.Code{Text: code})
		if !strings.HasPrefix(describe(r), "numpy") {
			t.Errorf("%s: got %.300s", name, describe(r))
		}
	}
	many := strings.Builder{}
	for i := range 2000 {
		fmt.Fprintf(&many, "import module%d\n", i)
	}
	if r := look(t, s, scan.Code{Text: many.String()}); len(r.Imports) != 500 {
		t.Errorf("%d imports of 2000", len(r.Imports))
	}
}

// nested returns n blocks inside of each other.
func nested(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "if a:\n")
	}
	return b.String() + strings.Repeat(" ", n) + "pass\n"
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	_, s := startLocal(t)
	_, err := s.Scan(t.Context(), scan.Code{Text: strings.Repeat("#", scan.MaxCode+1)})
	requireProblem(t, err, "scan_too_large")
	look(t, s, scan.Code{Text: "1"})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	_, s := startLocal(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Scan(ctx, scan.Code{Text: "1"})
	requireProblem(t, err, "canceled")
}
