package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReplaceSweeps finds what a crash has left, and what another process writes right now.
func TestReplaceSweeps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left, fresh := filepath.Join(dir, ".new-left"), filepath.Join(dir, ".new-fresh")
	for _, path := range []string{left, fresh} {
		if err := os.WriteFile(path, []byte("part"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * newLife)
	if err := os.Chtimes(left, long, long); err != nil {
		t.Fatal(err)
	}
	if err := replace(filepath.Join(dir, "file"), 0o600, strings.NewReader("whole")); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	hidden, _ := filepath.Glob(filepath.Join(dir, ".new-*"))
	if err != nil || len(names) != 2 || len(hidden) != 1 || hidden[0] != fresh {
		t.Errorf("there are %q and %q: %v", names, hidden, err)
	}
}
