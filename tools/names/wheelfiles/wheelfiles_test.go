package wheelfiles_test

import (
	"testing"

	"cove/tools/names/wheelfiles"

	"github.com/google/go-cmp/cmp"
)

func TestModules(t *testing.T) {
	t.Parallel()
	shared := func(dotted string) bool { return dotted == "google" || dotted == "google.cloud" }
	for name, c := range map[string]struct{ files, want []string }{
		"a package":          {[]string{"a/__init__.py", "a/b.py", "a/b/c.py"}, []string{"a"}},
		"a module":           {[]string{"six.py"}, []string{"six"}},
		"extension modules":  {[]string{"_x.cpython-313-x86_64-linux-gnu.so", "y.abi3.so", "z.pyd", "w.cp312-win_amd64.pyd"}, []string{"_x", "w", "y", "z"}},
		"a compiled package": {[]string{"a/__init__.cpython-313-x86_64-linux-gnu.so"}, []string{"a"}},
		"a namespace":        {[]string{"zope/interface/__init__.py", "zope/event.py"}, []string{"zope.event", "zope.interface"}},
		"a namespace by pkgutil": {
			[]string{"google/__init__.py", "google/cloud/__init__.py", "google/cloud/storage/__init__.py"}, []string{"google.cloud.storage"},
		},
		"tests beside":           {[]string{"a/__init__.py", "tests/__init__.py", "docs/conf.py", "examples/x.py"}, []string{"a"}},
		"tests alone":            {[]string{"tests/__init__.py"}, []string{"tests"}},
		"data schemes":           {[]string{"n-1.data/purelib/a.py", "n-1.data/platlib/b/__init__.py", "n-1.data/scripts/c.py", "n-1.data/data/d.py"}, []string{"a", "b"}},
		"metadata and data":      {[]string{"a-1.dist-info/RECORD", "a-1.egg-info/x.py", "share/doc/readme.txt", "a.pth"}, nil},
		"stubs":                  {[]string{"yaml-stubs/__init__.pyi", "a.pyi"}, nil},
		"what nobody can import": {[]string{"a-b/__init__.py", "1a.py", "a.b/__init__.py", "", "/", "/etc/x.py", "../x.py", "a//b.py"}, nil},
		"nothing":                {nil, nil},
		"a folder of data":       {[]string{"a/x.json", "b/__init__.py"}, []string{"b"}},
		"__main__":               {[]string{"a/__main__.py", "a/__init__.py", "__main__.py"}, []string{"a"}},
	} {
		if diff := cmp.Diff(c.want, wheelfiles.Modules(c.files, shared)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPrimary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dist    string
		modules []string
		want    string
	}{
		{"scikit-learn", []string{"sklearn"}, "sklearn"},
		{"attrs", []string{"attr", "attrs"}, "attrs"},
		{"setuptools", []string{"_distutils_hack", "pkg_resources", "setuptools"}, "setuptools"},
		{"cffi", []string{"_cffi_backend", "cffi"}, "cffi"},
		{"google-cloud-storage", []string{"google.cloud.storage", "google.cloud.storage_v2"}, "google.cloud.storage"},
		{"x", []string{"bb", "aa"}, "aa"},
		{"x", []string{"_only"}, "_only"},
		{"x", nil, ""},
	} {
		if got := wheelfiles.Primary(c.dist, c.modules); got != c.want {
			t.Errorf("%s of %v: %q, want %q", c.dist, c.modules, got, c.want)
		}
	}
}
