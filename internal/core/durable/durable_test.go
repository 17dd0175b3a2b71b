package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	long := time.Now().Add(-2 * partLife)
	if err := os.Chtimes(left, long, long); err != nil {
		t.Fatal(err)
	}
	if err := Replace(filepath.Join(dir, "file"), 0o600, strings.NewReader("whole")); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	hidden, _ := filepath.Glob(filepath.Join(dir, ".new-*"))
	if err != nil || len(names) != 2 || len(hidden) != 1 || hidden[0] != fresh {
		t.Errorf("there are %q and %q: %v", names, hidden, err)
	}
}

// TestReplace wants the whole file with its mode, or what was there.
func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for i, text := range []string{"first", "", strings.Repeat("long", 1<<18)} {
		mode := []os.FileMode{0o600, 0o644, 0o755}[i]
		if err := Replace(path, mode, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, serr := os.Stat(path)
		if err != nil || serr != nil || string(got) != text || info.Mode().Perm() != mode {
			t.Errorf("the file has %d bytes and the mode %v, want %d and %v: %v, %v", len(got), info.Mode(), len(text), mode, err, serr)
		}
	}
	before, _ := os.ReadFile(path)
	broken := errors.New("broken off")
	if err := Replace(path, 0o600, io.MultiReader(strings.NewReader("half"), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Errorf("the file has %d bytes after a failure, want %d", len(after), len(before))
	}
	if err := Replace(filepath.Join(dir, "none", "file"), 0o600, strings.NewReader("")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files are left", len(left))
	}
}

// TestReplaceAtOnce has many replace one file: whoever reads meanwhile finds a whole one.
func TestReplaceAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	var writing sync.WaitGroup
	for i := range 8 {
		writing.Go(func() {
			for range 5 {
				if err := Replace(path, 0o600, strings.NewReader(strings.Repeat(string(rune('a'+i)), 100_000))); err != nil {
					t.Error(err)
				}
				text, err := os.ReadFile(path)
				if err != nil || len(text) != 100_000 || strings.Count(string(text), string(text[:1])) != 100_000 {
					t.Errorf("%d bytes: %v", len(text), err)
				}
			}
		})
	}
	writing.Wait()
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
