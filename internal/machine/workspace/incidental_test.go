package workspace_test

import (
	"testing"

	"cove/internal/machine/workspace"
)

func TestIncidental(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"a.csv": false, ".env": false, ".keras": false, ".keras/keras.json": true, ".cache/a/b": true, "a/.keras/b": false, ".github/workflows/ci.yml": false,
		"a/__pycache__/b.pyc": true, "__pycache__": false, "a/.ipynb_checkpoints/b.ipynb": true, "": false, "..data/x": true,
		"catboost_info/learn_error.tsv": true, "a/catboost_info/x": false, ".pdfbox.cache": true, "a/.pdfbox.cache": false,
	} {
		if got := workspace.Incidental(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

func TestUnfinished(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"a.mp3": true, "out/A.MP4": true, "a.csv": true, "a.b/c": false, "pkg/__init__.py": false, ".gitkeep": false, "py.typed": false, "run.LOG": false} {
		if got := workspace.Unfinished(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}
