package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"cove/internal/machine/pagestore"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sharedmem"
	"cove/internal/machine/snapshot"
)

// TestPacked has a packed snapshot be unpacked as it was, with what it has in common with others, and be refused where a whole one is needed.
func TestPacked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := pagestore.Open(filepath.Join(dir, "pages"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	h, err := sharedmem.Add(dir, func(w io.Writer) error { _, err := w.Write(make([]byte, 1<<20)); return err })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	contents := map[string][]byte{"pages.img": bytes.Repeat([]byte("0123456789abcdef"), 40<<10), "state": []byte("small"), "odd": make([]byte, 300<<10+1), "empty": {}}
	s, err := snapshot.Create(t.Context(), filepath.Join(dir, "whole"), snapshot.Manifest{ID: "a"}, func(_ context.Context, folder string) (sandbox.Checkpoint, error) {
		errs := []error{h.Attach(folder)}
		for name, content := range contents {
			errs = append(errs, os.WriteFile(filepath.Join(folder, name), content, 0o600))
		}
		return sandbox.CheckpointIn(folder), errors.Join(errs...)
	})
	if err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(dir, "packed")
	if err := s.Pack(t.Context(), packed, store); err != nil {
		t.Fatal(err)
	}
	if room := snapshot.Occupied(packed) + store.Room(); room > 64<<10 {
		t.Errorf("packed it takes %d bytes", room)
	}
	if _, err := snapshot.Open(t.Context(), packed); err == nil {
		t.Error("a packed snapshot can be opened")
	}
	if err := snapshot.Remove(s.Dir); err != nil {
		t.Fatal(err)
	}
	again, err := snapshot.Unpack(t.Context(), packed, filepath.Join(dir, "again"), "b", store)
	if err != nil {
		t.Fatal(err)
	}
	if again, err = snapshot.Open(t.Context(), again.Dir); err != nil || again.Manifest.ID != "b" || len(again.Manifest.Shared) != 1 {
		t.Fatalf("%v %+v", err, again)
	}
	for name, content := range contents {
		if got, err := os.ReadFile(filepath.Join(again.Dir, "image", name)); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %v, %d bytes", name, err, len(got))
		}
	}
	if _, err := snapshot.Unpack(t.Context(), again.Dir, filepath.Join(dir, "third"), "c", store); err == nil {
		t.Error("a whole snapshot can be unpacked")
	}
}
