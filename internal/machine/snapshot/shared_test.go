package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sharedmem"
	"cove/internal/machine/snapshot"
)

// TestSharedFiles: what snapshots have in common does not count as theirs, is not read again for each that links to it, goes along with clones, and damage of it is theirs.
func TestSharedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, err := sharedmem.Add(dir, func(w io.Writer) error {
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
	path := filepath.Join(image, sharedmem.Folder, h.Name)
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, append(make([]byte, 1<<20-1), 1), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*snapshot.Snapshot{first, second, clone} {
		if _, err := snapshot.Open(t.Context(), s.Dir); !problem.Has(problem.Of(err), problem.SnapshotDamaged) {
			t.Errorf("got %v", err)
		}
	}
}

// TestImport: a snapshot of another disk is copied and each file is read once, one of the same disk is linked to and read; of one that is not whole nothing stays.
func TestImport(t *testing.T) {
	t.Parallel()
	elsewhere, err := os.MkdirTemp("/dev/shm", "cove-import-") // memory is another disk than that of temporary files, or the same
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(elsewhere) })
	var one, other syscall.Stat_t
	if err := errors.Join(syscall.Stat(elsewhere, &one), syscall.Stat(t.TempDir(), &other)); err != nil {
		t.Fatal(err)
	}
	heaps := t.TempDir()
	from, err := snapshot.Create(t.Context(), filepath.Join(t.TempDir(), "snp"), snapshot.Manifest{ID: "snp"}, func(_ context.Context, folder string) (sandbox.Checkpoint, error) {
		err := os.WriteFile(filepath.Join(folder, "pages"), []byte("pages"), 0o600)
		for i := range 20 {
			h, add := sharedmem.Add(heaps, func(w io.Writer) error { _, err := w.Write(bytes.Repeat([]byte{byte(i)}, 1<<12)); return err })
			if add == nil {
				add = errors.Join(h.Attach(folder), h.Close())
			}
			err = errors.Join(err, add)
		}
		return sandbox.CheckpointIn(folder), err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(from.Dir, "verified.json")); err != nil { // as in a container image
		t.Fatal(err)
	}
	for name, to := range map[string]string{"linked": t.TempDir(), "copied": elsewhere} {
		got, err := snapshot.Import(t.Context(), from.Dir, filepath.Join(to, "snp"))
		if err != nil || len(got.Manifest.Shared) != 20 || got.Manifest.ID != "snp" {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		if name == "copied" && one.Dev != other.Dev && got.Read > 5 {
			t.Errorf("%d bytes were read again after they were copied", got.Read)
		}
		if name == "linked" && got.Read != 20<<12+5 {
			t.Errorf("%d bytes of what was linked to were read", got.Read)
		}
		if err := snapshot.Remove(got.Dir); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(from.Dir, "image", from.Manifest.Shared[7].Name)
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, make([]byte, 1<<12-1), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{t.TempDir(), elsewhere} {
		if _, err := snapshot.Import(t.Context(), from.Dir, filepath.Join(to, "snp")); err == nil {
			t.Error("a damaged one was taken")
		}
		if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
			t.Errorf("%v stayed, %v", left, err)
		}
	}
}
