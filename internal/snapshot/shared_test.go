package snapshot_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"cove/internal/heap"
	"cove/internal/problem"
	"cove/internal/sandbox"
	"cove/internal/snapshot"
)

// TestSharedFiles: what snapshots have in common does not count as theirs, is not read again for each that links to it, goes along with clones, and damage of it is theirs.
func TestSharedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, err := heap.Add(dir, func(w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<20))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	create := func() *snapshot.Snapshot {
		s, err := snapshot.Create(t.Context(), filepath.Join(t.TempDir(), "snp"), snapshot.Manifest{}, func(_ context.Context, folder string) (sandbox.Checkpoint, error) {
			return sandbox.CheckpointIn(folder), errors.Join(os.WriteFile(filepath.Join(folder, "pages"), []byte("pages"), 0o600), h.Attach(folder))
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second := create(), create()
	if n := snapshot.Occupied(first.Dir); first.Size() != 5 || n > 1<<19 {
		t.Errorf("the snapshot counts %d bytes, and takes %d", first.Size(), n)
	}
	clone, err := second.Clone(t.Context(), filepath.Join(t.TempDir(), "clone"), "clone")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*snapshot.Snapshot{first, second, clone} {
		again, err := snapshot.Open(t.Context(), s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if again.Read > 5 {
			t.Errorf("%d bytes were read", again.Read)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, h.Name)); err != nil {
		t.Fatal(err)
	}
	alone := create() // there is nothing left to link to
	if alone.Size() != 1<<20+5 {
		t.Errorf("a snapshot with the only copy counts %d bytes", alone.Size())
	}
	if again, err := snapshot.Open(t.Context(), alone.Dir); err != nil || again.Size() != 1<<20+5 {
		t.Errorf("it is not found again: %v", err)
	}
	image, _ := clone.Checkpoint().HostFolder()
	path := filepath.Join(image, heap.Folder, h.Name)
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, append(make([]byte, 1<<20-1), 1), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*snapshot.Snapshot{first, second, clone} {
		if _, err := snapshot.Open(t.Context(), s.Dir); !problem.Has(problem.Of(err), problem.SnapshotDamaged) {
			t.Errorf("got %v", err)
		}
	}
}
