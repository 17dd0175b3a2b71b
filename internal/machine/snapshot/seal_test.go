package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"cove/internal/core/seal"
	"cove/internal/machine/pagestore"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sharedmem"
	"cove/internal/machine/snapshot"
)

// TestSnapshotsAreSealedInTheirPlace seals a whole snapshot and packed ones, twice, and finds everything again and nothing as it was.
func TestSnapshotsAreSealedInTheirPlace(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	keys, err := seal.ParseKeys(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := seal.NewRing(keys).Open(keys, "here")
	if err != nil {
		t.Fatal(err)
	}
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
	secret := []byte("0123456789abcdef")
	contents := map[string][]byte{"pages.img": bytes.Repeat(secret, 40<<10), "checkpoint.img": append([]byte("state "), secret...), "guest": []byte("guest-1")}
	names := []string{"pages.img", "checkpoint.img"}
	at := filepath.Join(dir, "snapshots", "a")
	s, err := snapshot.Create(ctx, at, snapshot.Manifest{ID: "a", Key: key()}, func(_ context.Context, folder string) (sandbox.Checkpoint, error) {
		errs := []error{h.Attach(folder)}
		for name, content := range contents {
			errs = append(errs, os.WriteFile(filepath.Join(folder, name), content, 0o600))
		}
		return sandbox.CheckpointIn(folder), errors.Join(errs...)
	})
	if err != nil {
		t.Fatal(err)
	}
	packed := at + ".packed"
	if err := s.Pack(ctx, packed, store); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time nothing is to be done
		for _, one := range []string{at, packed} {
			if err := snapshot.Seal(ctx, one, names, sealer, store); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = filepath.WalkDir(filepath.Dir(at), func(path string, _ fs.DirEntry, err error) error {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, secret) {
			t.Errorf("%s has it", path)
		}
		return err
	})
	if entries, err := os.ReadDir(filepath.Dir(at)); err != nil || len(entries) != 2 {
		t.Errorf("left are %v, %v", entries, err)
	}
	again, err := snapshot.Unpack(ctx, packed, filepath.Join(dir, "again"), "b", store)
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{at, again.Dir} {
		whole, err := snapshot.Open(ctx, where)
		if err != nil || len(whole.Manifest.Shared) != 1 {
			t.Fatalf("%+v, %v", whole, err)
		}
		for name, content := range contents {
			r, err := sealer.OpenFile(filepath.Join(where, "image", name), true)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			_ = r.Close()
			if err != nil || !bytes.Equal(got, content) || r.Sealed() != (name != "guest") {
				t.Errorf("%s in %s: %d bytes, sealed %v, %v", name, where, len(got), r.Sealed(), err)
			}
		}
	}
}
