package workspace_test

import (
	"testing"

	"cove/internal/workspace"
)

func TestIncidental(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"a.csv": false, ".env": false, ".keras": false, ".keras/keras.json": true, ".cache/a/b": true, "a/.keras/b": false, ".github/workflows/ci.yml": false,
		"a/__pycache__/b.pyc": true, "__pycache__": false, "a/.ipynb_checkpoints/b.ipynb": true, "": false, "..data/x": true,
	} {
		if got := workspace.Incidental(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}
