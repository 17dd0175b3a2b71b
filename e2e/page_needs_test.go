package e2e_test

import (
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
