package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"cove/internal/python/deps/indextest"
	"cove/internal/testkit/testneeds"
)

// pageWheel is what the page's checks install. It is large enough for its download to be seen.
var pageWheel = indextest.Wheel{Name: "cowsay", Version: "6.1", Files: map[string]string{"cowsay.py": "def say(): return 'moo'\n"}, Padding: 4 << 20}

// pagePackages is a data folder whose packages are the page's checks' own, and an index that has one package, refuses one and has one that wants approval.
func pagePackages(t *testing.T) (home string, index *indextest.Index) {
	t.Helper()
	cfg, err := testneeds.Config()
	if err != nil {
		t.Fatal(err)
	}
	index = indextest.New(t)
	index.Add(pageWheel, indextest.Sdist{Name: "hnswlib", Version: "1.0", Extra: map[string]string{"hnswlib/space.cpp": ""}})
	// With one release it is not installed without somebody's approval.
	index.Add(indextest.Wheel{Name: "quietfern", Version: "1.0", Files: map[string]string{"quietfern.py": "leaves = 7\n"}})
	return emptyHome(t, cfg), index
}

// pageJupyter is a Python that has what runs notebooks.
func pageJupyter(t *testing.T) string {
	t.Helper()
	return filepath.Join(pythonFolder(t, filepath.Join("testdata", "sdk", "jupyter")), "venv", "bin", "python")
}

// addWidgets puts Jupyter's widgets into an index, as they are, but without the packages for Jupyter's own page.
func addWidgets(t *testing.T, index *indextest.Index) {
	t.Helper()
	folder := pythonFolder(t, filepath.Join("testdata", "sdk", "widgets"))
	for _, wheel := range []indextest.Wheel{{Name: "comm", Version: "0.2.3"}, {Name: "ipywidgets", Version: "8.1.9", Require: []string{"comm"}}} {
		found, err := filepath.Glob(filepath.Join(folder, "venv", "lib", "python3*", "site-packages", wheel.Name))
		if err != nil || len(found) != 1 {
			t.Fatalf("%v: %q", err, found)
		}
		wheel.Files = map[string]string{}
		err = filepath.WalkDir(found[0], func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(file) != ".py" {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			inside, err := filepath.Rel(filepath.Dir(found[0]), file)
			wheel.Files[filepath.ToSlash(inside)] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		index.Add(wheel)
	}
}
