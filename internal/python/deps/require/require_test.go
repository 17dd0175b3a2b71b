package require_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/python/deps/require"
)

func TestNormalize(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Friendly-._.-Bard": "friendly-bard", "scikit_learn": "scikit-learn", "zope.interface": "zope-interface", "PyYAML": "pyyaml", "a": "a", "": "", "_x_": "-x-",
	} {
		if got := require.Normalize(name); got != want {
			t.Errorf("Normalize(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want require.Requirement
	}{
		{"numpy", require.Requirement{Name: "numpy"}},
		{"  PyYAML  ", require.Requirement{Name: "pyyaml"}},
		{"A", require.Requirement{Name: "a"}},
		{"zope.interface==5.0", require.Requirement{Name: "zope-interface", Specifier: "==5.0"}},
		{"polars<2", require.Requirement{Name: "polars", Specifier: "<2"}},
		{"requests >= 2.8.1 , == 2.8.*", require.Requirement{Name: "requests", Specifier: ">=2.8.1,==2.8.*"}},
		{"requests (>=2,<3)", require.Requirement{Name: "requests", Specifier: ">=2,<3"}},
		{"requests()", require.Requirement{Name: "requests"}},
		{"requests(~=2.1)", require.Requirement{Name: "requests", Specifier: "~=2.1"}},
		{"x>=1,", require.Requirement{Name: "x", Specifier: ">=1"}},
		{"x===1.0-whatever", require.Requirement{Name: "x", Specifier: "===1.0-whatever"}},
		{"torch==2.1+cu118", require.Requirement{Name: "torch", Specifier: "==2.1+cu118"}},
		{"x==1!2.0.post1.dev3", require.Requirement{Name: "x", Specifier: "==1!2.0.post1.dev3"}},
		{"httpx[http2]", require.Requirement{Name: "httpx", Extras: []string{"http2"}}},
		{"Uvicorn [Standard_X, a ,a]>=0.2", require.Requirement{Name: "uvicorn", Extras: []string{"a", "standard-x"}, Specifier: ">=0.2"}},
		{"x[]", require.Requirement{Name: "x"}},
		{`tomli>=1;python_version<"3.11"`, require.Requirement{Name: "tomli", Specifier: ">=1", Marker: `python_version<"3.11"`}},
		{`x ; (os_name == 'posix' or sys_platform == "win32") and "a" not in extra`, require.Requirement{Name: "x", Marker: `(os_name == 'posix' or sys_platform == "win32") and "a" not in extra`}},
		{`x (>=1) ; 'linux' in sys_platform`, require.Requirement{Name: "x", Specifier: ">=1", Marker: `'linux' in sys_platform`}},
	}
	for _, test := range tests {
		got, err := require.Parse(test.text)
		if err != nil {
			t.Errorf("Parse(%q): %v", test.text, err)
			continue
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", test.text, diff)
		}
		if again, err := require.Parse(got.String()); err != nil || !cmp.Equal(got, again) {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", got.String(), again, err, got)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const invalid, notAllowed = "requirement_invalid", "requirement_not_allowed"
	for text, want := range map[string]string{
		"": invalid, " ": invalid, "-x": invalid, "_x": invalid, "x-": invalid, "x y": invalid, "numpy=1.2": invalid, "x>": invalid, "x>=": invalid, "x>=abc": invalid,
		"x>=1.*": invalid, "x~=1": invalid, "x~=1.*": invalid, "x>1+local": invalid, "x==1.0.dev1.*": invalid, "x==1.0a1.*": invalid, "x==1+a.*": invalid, "x,": invalid, "x(>=1": invalid, "x>=1)": invalid,
		"x[a": invalid, "x[a b]": invalid, "x[-]": invalid, "x[,]": invalid, "x;": invalid, "x; python_version": invalid, "x; nonsense == '1'": invalid, "x; os_name == 'a' and": invalid,
		"x; os_name == 'a": invalid, "x; os_name == '#'": invalid, "x; os_name = 'a'": invalid, "x; os_name == 'a' ; b": invalid, "x; 'a' not 'b'": invalid, "x --hash=sha256:abc": invalid,
		"x\ny": invalid, "x\x00": invalid, "nümpy": invalid, "x # comment": invalid, "x=== 1 2": invalid, "x===": invalid,
		"x; " + strings.Repeat("(", 50) + "os_name == 'a'" + strings.Repeat(")", 50): invalid,
		strings.Repeat("x", 201): invalid, "x[" + strings.Repeat("a,", 3000) + "a]": invalid, "x" + strings.Repeat(",>1", 300): invalid,
		"x @ https://host.example/x.whl": notAllowed, "x@file:///x": notAllowed, "x[a] @ git+ssh://h/x": notAllowed, "https://host.example/x-1.tar.gz": notAllowed, "git+https://host.example/x": notAllowed,
		".": notAllowed, "./x": notAllowed, "../x.whl": notAllowed, "/x": notAllowed, "~/x": notAllowed, `c:\x`: notAllowed, "x.whl": notAllowed, "x-1.TAR.GZ": notAllowed, "x @ y": notAllowed, "x/y": notAllowed,
	} {
		_, err := require.Parse(text)
		if err == nil {
			t.Errorf("Parse(%.60q) is no problem", text)
			continue
		}
		p := problem.Of(err)
		if p.Code != want || p.Hint == "" || len(p.Message) > 400 {
			t.Errorf("Parse(%.60q): %s %q (%q), want %s with a hint", text, p.Code, p.Message, p.Hint, want)
		}
	}
}

func TestParseAll(t *testing.T) {
	t.Parallel()
	got, err := require.ParseAll("# wanted\r\n\r\nnumpy >= 2 # fast\n\tHTTPX[http2]\nx \\\n >= 1\n\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []require.Requirement{{Name: "numpy", Specifier: ">=2"}, {Name: "httpx", Extras: []string{"http2"}}, {Name: "x", Specifier: ">=1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for text, code := range map[string]string{
		"numpy\n-r other.txt": "requirement_not_allowed", "--index-url https://host.example\nx": "requirement_not_allowed", "x --hash=sha256:00": "requirement_not_allowed",
		"x @ https://host.example/x": "requirement_not_allowed", "x y": "requirement_invalid", strings.Repeat("x\n", 3000): "requirement_invalid", strings.Repeat("#", 2<<20): "requirement_invalid",
	} {
		if _, err := require.ParseAll(text); err == nil || problem.Of(err).Code != code {
			t.Errorf("ParseAll(%.40q): %v, want %s", text, err, code)
		}
	}
}

// FuzzParse looks for a requirement that reads differently once it is written.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"numpy", "X_y[a,B]>=1,<2.*;os_name=='a'", "x ===1-a ; 'b' in os_name", "x(~=1.2)", "x==1!2rc1+a.b", "a@b", "./x"} {
		f.Add(seed, "1.2")
	}
	f.Fuzz(func(t *testing.T, text, version string) {
		r, err := require.Parse(text)
		if err != nil {
			return
		}
		written := r.String()
		again, err := require.Parse(written)
		if err != nil || !cmp.Equal(r, again) {
			t.Fatalf("%q is %+v, which is written %q and then %+v (%v)", text, r, written, again, err)
		}
		if all, err := require.ParseAll(written); err != nil || len(all) != 1 || !cmp.Equal(all[0], r) {
			t.Fatalf("%q in a file is %+v (%v), want %+v", written, all, err, r)
		}
		if r.Name != require.Normalize(r.Name) || strings.ContainsAny(written, "\r\n#\\@/") {
			t.Fatalf("%q became %q", text, written)
		}
		if pin, ok := r.Pin(); ok && r.Allows(version) && !r.Allows(pin) && require.Compare(pin, "") > 0 {
			t.Fatalf("%q allows %q, and not its pin %q", written, version, pin)
		}
		if require.Compare(version, text) != -require.Compare(text, version) {
			t.Fatalf("the order of %q and %q depends on who asks", version, text)
		}
	})
}
