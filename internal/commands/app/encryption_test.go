package app_test

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"cove/internal/commands/app"
	"cove/internal/core/config"
	"cove/internal/core/seal"
)

// TestDataKeysAreMadeOnce has many callers of one process make the data keys of a folder: all hold the same, and nothing else is left.
func TestDataKeysAreMadeOnce(t *testing.T) {
	t.Parallel()
	key := seal.NewKey()
	for range 20 {
		folder := filepath.Join(t.TempDir(), "server")
		c := config.Config{Folders: config.Folders{Data: folder, Server: folder, Sessions: filepath.Join(folder, "sessions")}}
		c.Encryption.Key = key
		sealers := make([]*seal.Sealer, 16)
		var all sync.WaitGroup
		for i := range sealers {
			all.Go(func() {
				var err error
				if sealers[i], err = app.DiskSealer(c); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := sealers[0].SealFile(path); err != nil {
			t.Fatal(err)
		}
		for _, s := range sealers {
			f, err := s.OpenFile(path, false)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(f); err != nil || string(text) != "content" {
				t.Errorf("%q, %v", text, err)
			}
			_ = f.Close()
		}
		left, err := os.ReadDir(folder)
		if err != nil || len(left) != 1 || left[0].Name() != "encryption.json" {
			t.Fatalf("%v, %v", left, err)
		}
	}
}
