package sharedmem_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/sharedmem"
)

func add(t *testing.T, dir, text string) *sharedmem.Heap {
	t.Helper()
	h, err := sharedmem.Add(dir, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func wantChanged(t *testing.T, err error) {
	t.Helper()
	if !problem.Has(problem.Of(err), problem.MemoryChanged) {
		t.Errorf("got %v", err)
	}
}

// harms are what may happen to a file that nobody but cove should touch.
var harms = map[string]func(path string) error{
	"truncated": func(path string) error { return os.Truncate(path, 3) },
	"flipped": func(path string) error {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("X"), 1)
		return errors.Join(err, f.Close())
	},
	"emptied and written again": func(path string) error { return os.WriteFile(path, []byte("memory?"), 0o600) },
}

func TestIntact(t *testing.T) {
	t.Parallel()
	for name, harm := range harms {
		dir := t.TempDir()
		h := add(t, dir, "memory!")
		image := t.TempDir()
		if err := h.Attach(image); err != nil {
			t.Fatal(err)
		}
		if err := h.Intact(); err != nil {
			t.Errorf("%s: intact and linked, it is said to be changed: %v", name, err)
		}
		path := filepath.Join(dir, h.Name)
		if err := os.Chmod(path, 0o600); err != nil { // tests run as an ordinary user too
			t.Fatal(err)
		}
		if err := harm(path); err != nil {
			t.Fatal(err)
		}
		wantChanged(t, h.Intact())
		wantChanged(t, h.Attach(t.TempDir()))
		wantChanged(t, sharedmem.Verify(filepath.Join(image, sharedmem.Folder, h.Name)))
	}
}

// TestReplaced: what takes the file's place does not change what is open, and is found when the heap is opened again.
func TestReplaced(t *testing.T) {
	t.Parallel()
	dir, image := t.TempDir(), t.TempDir()
	h := add(t, dir, "memory!")
	if err := h.Attach(image); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, h.Name)
	other := filepath.Join(dir, "other")
	if err := errors.Join(os.WriteFile(other, []byte("another"), 0o444), os.Rename(other, path)); err != nil {
		t.Fatal(err)
	}
	if err := h.Intact(); err != nil {
		t.Error(err)
	}
	again, err := sharedmem.Of(image, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if text, err := os.ReadFile(path); err != nil || string(text) != "memory!" {
		t.Errorf("the file is %q after the checkpoint has put it back: %v", text, err)
	}
}

// TestGone: a checkpoint that was made of a running sandbox has the heap although its last name is gone, and puts it back; its times are those that gVisor looks for.
func TestGone(t *testing.T) {
	t.Parallel()
	dir, image := t.TempDir(), t.TempDir()
	h := add(t, dir, "memory!")
	path := filepath.Join(dir, h.Name)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), h.Attach(image)); err != nil {
		t.Fatal(err)
	}
	if names, err := sharedmem.Attached(image); err != nil || !slices.Equal(names, []string{h.Name}) {
		t.Errorf("attached is %q, %v", names, err)
	}
	again, err := sharedmem.Of(image, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	after, err := os.Stat(path)
	if err != nil || !after.ModTime().Equal(before.ModTime()) || after.Size() != before.Size() || after.Mode() != before.Mode() {
		t.Errorf("it is %v, was %v: %v", after, before, err)
	}
}

func TestNone(t *testing.T) {
	t.Parallel()
	var none sharedmem.Set
	image := t.TempDir()
	if err := errors.Join(none.Intact(), none.Attach(image), none.Close()); err != nil {
		t.Error(err)
	}
	if h, err := sharedmem.Of(image, t.TempDir()); len(h) > 0 || err != nil {
		t.Error(h, err)
	}
	if entries, err := os.ReadDir(image); len(entries) > 0 || err != nil {
		t.Error(entries, err)
	}
	if err := os.MkdirAll(filepath.Join(image, sharedmem.Folder, "heap-x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := sharedmem.Attached(image); err == nil {
		t.Error("a name that is no heap's is taken for one")
	}
}

// TestNothingHalf: what could not be written whole leaves nothing.
func TestNothingHalf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := errors.New("broken")
	_, err := sharedmem.Add(dir, func(w io.Writer) error {
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
		return broken
	})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Error(entries)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	dir, image := t.TempDir(), t.TempDir()
	kept, young := add(t, dir, "kept"), add(t, dir, "young")
	if err := kept.Attach(image); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cove-guest-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sharedmem.Sweep(dir, time.Hour)
	for _, name := range []string{kept.Name, young.Name, "cove-guest-1"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	sharedmem.Sweep(dir, 0)
	if _, err := os.Stat(filepath.Join(dir, young.Name)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what no checkpoint needs is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, kept.Name)); err != nil {
		t.Error(err)
	}
}

// TestOpenOnce has many sandboxes use one heap: the process has its file open once, until the last of them lets it go.
func TestOpenOnce(t *testing.T) {
	dir := t.TempDir()
	image := filepath.Join(t.TempDir(), "image")
	if err := os.Mkdir(image, 0o700); err != nil {
		t.Fatal(err)
	}
	first, err := sharedmem.Add(dir, func(w io.Writer) error { _, err := w.Write([]byte("memory")); return err })
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Attach(image); err != nil {
		t.Fatal(err)
	}
	open := func() (n int) {
		files, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if to, err := os.Readlink(f); err == nil && to == filepath.Join(dir, first.Name) {
				n++
			}
		}
		return n
	}
	var all []sharedmem.Set
	for range 10 {
		set, err := sharedmem.Of(image, dir)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, set)
	}
	if n := open(); n != 1 {
		t.Errorf("the file is open %d times for eleven users", n)
	}
	for _, set := range all {
		if err := errors.Join(set.Intact(), set.Close()); err != nil {
			t.Error(err)
		}
	}
	if n := open(); n != 1 {
		t.Errorf("the file is open %d times for the last user", n)
	}
	if err := errors.Join(first.Intact(), first.Close()); err != nil {
		t.Error(err)
	}
	if n := open(); n != 0 {
		t.Errorf("the file is open %d times for nobody", n)
	}
}
