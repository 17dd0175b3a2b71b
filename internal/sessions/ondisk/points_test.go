package ondisk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cove/internal/sessions/ondisk"
)

// marked is a session in which the codes ran one after the other, with a point before each that is named for it.
func marked(t *testing.T, store ondisk.Store, o ondisk.Options, codes ...string) {
	t.Helper()
	s := open(t, store, "lab", o)
	for _, code := range codes {
		if err := s.Mark(t.Context(), "before "+code); err != nil {
			t.Fatal(err)
		}
		execute(t, s, code)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestPoints has points be packed, returned to and forked from, whatever became of the session meanwhile.
func TestPoints(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	o := (&machine{}).options()
	o.Depth = 10
	marked(t, store, o, "a", "b", "c", "d", "e")
	info := show(t, store)
	if len(info.Undo) != 5 || info.Undo[0].Point() != "start" {
		t.Fatalf("the points are %+v", info.Undo)
	}
	whole := int64(80 * 4096)
	for i, e := range info.Undo[1:] {
		if !e.Packed || e.Before[0] != "before "+string("bcde"[i]) || i > 0 && e.Room > whole/4 {
			t.Errorf("point %d is %+v", i, e)
		}
	}
	if info.Disk > 3*whole {
		t.Errorf("six states take %d bytes", info.Disk)
	}
	fork := func(to, point string) string {
		t.Helper()
		if _, err := store.Fork(t.Context(), "lab", to, "x", point); err != nil {
			t.Fatal(err)
		}
		return ran(t, store, to)
	}
	if got := fork("of-c", "before c"); got != "a b" {
		t.Errorf("a fork from before c has %q", got)
	}
	if got := fork("of-start", "start"); got != "" {
		t.Errorf("a fork from the start has %q", got)
	}
	if got := fork("of-now", ""); got != "a b c d e" {
		t.Errorf("a fork has %q", got)
	}
	_, err := store.Return(t.Context(), "lab", "x", "before z")
	fails(t, err, "point_unknown", "dropped for newer ones")
	_, err = store.Fork(t.Context(), "lab", "lab9", "x", "before z")
	fails(t, err, "point_unknown", "")
	// As a command leaves it that was killed after it had unpacked the point.
	if err := os.MkdirAll(filepath.Join(store.Dir, "lab", "snapshots", info.Undo[3].Snapshot, "image"), 0o700); err != nil {
		t.Fatal(err)
	}
	if info, err = store.Return(t.Context(), "lab", "x", "before d"); err != nil {
		t.Fatal(err)
	}
	if got := ran(t, store, "lab"); got != "a b c" || len(info.Undo) != 3 || info.Executions != 3 {
		t.Errorf("returned, it has %q and %+v", got, info.Undo)
	}
	marked(t, store, o, "f")
	if info, err = store.Return(t.Context(), "lab", "x", "before d"); err != nil || len(info.Undo) != 3 {
		t.Fatal(err, info.Undo)
	}
	if got := ran(t, store, "lab"); got != "a b c" {
		t.Errorf("returned again, it has %q", got)
	}
	if info, err = store.Undo(t.Context(), "lab", "x"); err != nil || ran(t, store, "lab") != "a b" {
		t.Error(err, ran(t, store, "lab"))
	}
}

// TestPointsAreBounded drops the oldest points when there are too many, or when they take too much.
func TestPointsAreBounded(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	o := (&machine{}).options()
	var codes []string
	for i := range 40 {
		codes = append(codes, fmt.Sprint("x", i))
	}
	o.Depth = 12
	marked(t, store, o, codes[:20]...)
	if n := len(show(t, store).Undo); n != 12 {
		t.Errorf("%d points are kept", n)
	}
	o.Depth, o.Room = 100, 90*4096
	marked(t, store, o, codes[20:]...)
	info := show(t, store)
	stat, err := os.Stat(filepath.Join(store.Dir, "lab", "pages", "pages"))
	if err != nil || stat.Size() > 110*4096 || len(info.Undo) < 5 || len(info.Undo) > 12 {
		t.Errorf("%v, %d bytes, %d points", err, stat.Size(), len(info.Undo))
	}
	for _, e := range info.Undo[1:] {
		if _, err := store.Fork(t.Context(), "lab", "of-"+e.Before[0][len("before "):], "x", e.Point()); err != nil {
			t.Error(err)
		}
	}
	last := info.Undo[len(info.Undo)-1]
	if got, want := ran(t, store, "of-x39"), strings.Join(codes[:39], " "); last.Before[0] != "before x39" || got != want {
		t.Errorf("before the last execution it has %q, not %q", got, want)
	}
}

// TestDamagedPoints has files of points harmed: what needs them is refused, and everything else goes on.
func TestDamagedPoints(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(dir string) error{
		"the pages are cut":  func(dir string) error { return os.Truncate(filepath.Join(dir, "pages", "pages"), 4096) },
		"the pages are gone": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "pages")) },
		"the lists are cut": func(dir string) error {
			return each(dir, "pages.img.pages", func(p string) error { return os.Truncate(p, 6) })
		},
		"the lists are wrong": func(dir string) error {
			return each(dir, "pages.img.pages", func(p string) error { return os.WriteFile(p, slices.Repeat([]byte{255}, 320), 0o600) })
		},
		"the small are gone":   func(dir string) error { return each(dir, "state.gz", os.Remove) },
		"the manifest is gone": func(dir string) error { return each(dir, "../manifest.json", os.Remove) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := ondisk.Store{Dir: t.TempDir()}
			o := (&machine{}).options()
			marked(t, store, o, "a", "b", "c")
			if err := harm(filepath.Join(store.Dir, "lab")); err != nil {
				t.Fatal(err)
			}
			_, err := store.Return(t.Context(), "lab", "x", "before c")
			fails(t, err, "snapshot_damaged", "")
			if got := ran(t, store, "lab"); got != "a b c" {
				t.Errorf("it has %q", got)
			}
			marked(t, store, o, "d", "e")
			if _, err := store.Return(t.Context(), "lab", "x", "before e"); err != nil {
				t.Error(err)
			}
			if got := ran(t, store, "lab"); got != "a b c d" {
				t.Errorf("returned, it has %q", got)
			}
		})
	}
}

// each does something to a file of each packed snapshot.
func each(dir, name string, do func(path string) error) error {
	all, err := filepath.Glob(filepath.Join(dir, "snapshots", "*.packed", "image"))
	if len(all) == 0 {
		return fmt.Errorf("there is no packed snapshot: %w", err)
	}
	for _, image := range all {
		if err := do(filepath.Join(image, name)); err != nil {
			return err
		}
	}
	return nil
}

// TestTake has a session go on from the state of a fork of it, and back.
func TestTake(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	o := (&machine{}).options()
	o.Depth = 10
	marked(t, store, o, "a", "b")
	for _, fork := range []string{"one", "two"} {
		if _, err := store.Fork(t.Context(), "lab", fork, "x", ""); err != nil {
			t.Fatal(err)
		}
		s := open(t, store, fork, o)
		execute(t, s, fork)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	info, err := store.Take(t.Context(), "lab", "two", "x", "tried", 3)
	if err != nil || ran(t, store, "lab") != "a b two" || info.Executions != 3 || len(info.Undo) != 3 {
		t.Fatalf("it has %q, %+v, %v", ran(t, store, "lab"), info, err)
	}
	if err := store.Remove(t.Context(), "two", "x"); err != nil {
		t.Fatal(err)
	}
	marked(t, store, o, "c")
	if got := ran(t, store, "lab"); got != "a b two c" {
		t.Errorf("it goes on with %q", got)
	}
	if _, err := store.Return(t.Context(), "lab", "x", "tried"); err != nil || ran(t, store, "lab") != "a b" {
		t.Errorf("back, it has %q, %v", ran(t, store, "lab"), err)
	}
	if info, err = store.Take(t.Context(), "lab", "one", "x", "", 0); err != nil || ran(t, store, "lab") != "a b one" || len(info.Undo) != 2 {
		t.Errorf("it has %q, %+v, %v", ran(t, store, "lab"), info.Undo, err)
	}
	if got := ran(t, store, "one"); got != "a b one" {
		t.Errorf("what it was taken from has %q", got)
	}
	_, err = store.Take(t.Context(), "lab", "lab", "x", "", 0)
	fails(t, err, "session_exists", "")
	_, err = store.Take(t.Context(), "lab", "none", "x", "", 0)
	fails(t, err, "session_unknown", "")
	held := open(t, store, "one", o)
	defer func() { _ = held.Close(t.Context()) }()
	_, err = store.Take(t.Context(), "lab", "one", "x", "", 0)
	fails(t, err, "session_in_use", "")
	if got := ran(t, store, "lab"); got != "a b one" {
		t.Errorf("after refusals it has %q", got)
	}
}
