package layer_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"cove/internal/python/deps/layer"
	"cove/internal/testkit/testneeds"
)

// age makes everything in the store look as if it was last used long ago.
func age(t *testing.T, s *layer.Store, by time.Duration, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(s.Folder()), pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("nothing is called %s (%v)", pattern, err)
		}
		for _, path := range found {
			when := time.Now().Add(-by)
			if err := os.Chtimes(path, when, when); err != nil {
				t.Fatal(err)
			}
		}
	}
}

const day = 24 * time.Hour

func TestSweep(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	common := x.add(t, dist("common", "common.py", ""))
	old := closure(t, common, x.add(t, dist("old", "old.py", "")))
	needed := closure(t, common, x.add(t, dist("needed", "needed.py", "")))
	fresh := closure(t, x.add(t, dist("fresh", "fresh.py", "")))
	oldLayer, neededLayer, freshLayer := ensure(t, s, old, x), ensure(t, s, needed, x), ensure(t, s, fresh, x)
	age(t, s, 10*day, "manifests/"+oldLayer.Name+".json", "manifests/"+neededLayer.Name+".json", "wheels/*/wheel.json")
	if err := s.Sweep([]string{neededLayer.Name}, 30*day); err != nil {
		t.Fatal(err)
	}
	if got := names(t, s.Folder()); len(got) != 3 {
		t.Errorf("a sweep of what is older took some: %q", got)
	}
	if err := s.Sweep([]string{neededLayer.Name}, 5*day); err != nil {
		t.Fatal(err)
	}
	want := []string{neededLayer.Name, freshLayer.Name}
	slices.Sort(want)
	if got := names(t, s.Folder()); !slices.Equal(got, want) {
		t.Errorf("layers %q, want %q", got, want)
	}
	root := filepath.Dir(s.Folder())
	if got := names(t, filepath.Join(root, "wheels")); len(got) != 3 {
		t.Errorf("wheels %q, want three", got)
	}
	for _, folder := range []string{"work", "locks"} {
		if got := names(t, filepath.Join(root, folder)); len(got) != 0 {
			t.Errorf("left in %s: %q", folder, got)
		}
	}
	if _, ok := s.Find(old); ok {
		t.Error("what was swept is found")
	}
	ensure(t, s, old, x)
	if x.fetched[common.SHA256] != 1 || x.fetched[old.Wheels[1].SHA256] != 2 {
		t.Errorf("fetched %v", x.fetched)
	}
}

func TestUseIsNoted(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	a, b := closure(t, x.add(t, dist("aa", "aa.py", ""))), closure(t, x.add(t, dist("bb", "bb.py", "")))
	first, second := ensure(t, s, a, x), ensure(t, s, b, x)
	order := func() []string {
		all, err := s.Layers()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range all {
			got = append(got, l.Name)
		}
		return got
	}
	age(t, s, 10*day, "manifests/"+first.Name+".json")
	age(t, s, 5*day, "manifests/"+second.Name+".json")
	if got := order(); !slices.Equal(got, []string{second.Name, first.Name}) {
		t.Errorf("got %q", got)
	}
	if _, ok := s.Find(a); !ok {
		t.Fatal("not found")
	}
	if got := order(); !slices.Equal(got, []string{first.Name, second.Name}) {
		t.Errorf("after finding one: %q", got)
	}
	if _, err := s.Get(second.Name); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(nil, day); err != nil {
		t.Fatal(err)
	}
	if got := order(); len(got) != 2 {
		t.Errorf("after a sweep: %q", got)
	}
}

// TestSweepSparesTheLiving sweeps everything that it may while a layer is being made.
func TestSweepSparesTheLiving(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	ready := x.add(t, dist("ready", "ready.py", ""))
	ensure(t, s, closure(t, ready), x)
	age(t, s, 10*day, "manifests/*", "wheels/*/wheel.json")
	c := closure(t, ready, x.add(t, dist("spam", "spam.py", "")))
	var swept int
	fetch := func(ctx context.Context, w layer.Wheel, out io.Writer, told func(int64, int64)) error {
		if err := x.fetch(ctx, w, out, told); err != nil {
			return err
		}
		swept++
		return s.Sweep(nil, time.Hour)
	}
	l, _, err := s.Ensure(t.Context(), c, fetch, func(layer.Progress) {
		if err := s.Sweep(nil, time.Hour); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if swept != 1 || x.fetched[ready.SHA256] != 1 {
		t.Errorf("%d downloads, of what was there %d", swept, x.fetched[ready.SHA256])
	}
	if got := contents(t, filepath.Join(s.Folder(), l.Name)); len(got) != 2+2*3 {
		t.Errorf("got %v", got)
	}
	if got := names(t, s.Folder()); !slices.Equal(got, []string{l.Name}) {
		t.Errorf("layers %q", got)
	}
}

// TestSweptWheels has the wheels of a layer taken away just before it is put together.
func TestSweptWheels(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	ready := x.add(t, dist("ready", "ready.py", ""))
	ensure(t, s, closure(t, ready), x)
	c := closure(t, ready, x.add(t, dist("spam", "spam.py", "")))
	done := false
	l, _, err := s.Ensure(t.Context(), c, x.fetch, func(p layer.Progress) {
		if p.Phase == layer.PhaseUnpack && !done {
			done = true
			age(t, s, 10*day, "manifests/*", "wheels/*/wheel.json")
			if err := s.Sweep(nil, time.Hour); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if x.fetched[ready.SHA256] != 2 {
		t.Errorf("fetched %d times, want twice", x.fetched[ready.SHA256])
	}
	if got := contents(t, filepath.Join(s.Folder(), l.Name)); len(got) != 2+2*3 {
		t.Errorf("got %v", got)
	}
}

func TestDamagedManifest(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	c := closure(t, x.add(t, dist("spam", "spam.py", "")))
	l := ensure(t, s, c, x)
	manifest := filepath.Join(filepath.Dir(s.Folder()), "manifests", l.Name+".json")
	for name, damage := range map[string]func() error{
		"lost":     func() error { return os.Remove(manifest) },
		"empty":    func() error { return os.WriteFile(manifest, nil, 0o600) },
		"no layer": func() error { return os.RemoveAll(filepath.Join(s.Folder(), l.Name)) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Find(c); ok {
			t.Errorf("%s: found", name)
		}
		if again := ensure(t, s, c, x); again.Name != l.Name {
			t.Errorf("%s: made again as %s", name, again.Name)
		}
		if _, ok := s.Find(c); !ok {
			t.Errorf("%s: not found afterwards", name)
		}
	}
	if x.fetched[c.Wheels[0].SHA256] != 1 {
		t.Errorf("fetched %d times", x.fetched[c.Wheels[0].SHA256])
	}
}

// TestSweepOfWhatCannotBeRead has the manifest of a layer that is in use not be readable for a while: nothing is removed, what it is made of included.
func TestSweepOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	used := ensure(t, s, closure(t, x.add(t, dist("used", "used.py", ""))), x)
	age(t, s, 10*day, "wheels/*/wheel.json")
	root := filepath.Dir(s.Folder())
	manifest := filepath.Join(root, "manifests", used.Name+".json")
	aside := filepath.Join(root, "aside")
	if err := os.Rename(manifest, aside); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(manifest, manifest); err != nil { // which no one can follow
		t.Fatal(err)
	}
	for _, needed := range [][]string{nil, {used.Name}} {
		if err := s.Sweep(needed, 5*day); !errors.Is(err, syscall.ELOOP) {
			t.Errorf("the sweep says %v", err)
		}
	}
	if err := os.Rename(aside, manifest); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(nil, 5*day); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(used.Name); err != nil {
		t.Errorf("the layer is gone: %v", err)
	}
	if got := names(t, filepath.Join(root, "wheels")); len(got) != 1 {
		t.Errorf("wheels %q, want one", got)
	}
}
