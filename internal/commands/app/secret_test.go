package app_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"cove/internal/commands/app"
)

func TestServerSecret(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret.key")
	first, err := app.ServerSecret(path)
	if err != nil || len(first) != 32 {
		t.Fatalf("%d bytes, %v", len(first), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if again, err := app.ServerSecret(path); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the secret is another one, %v", err)
	}
	if err := os.WriteFile(path, first[:5], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := app.ServerSecret(path); err == nil {
		t.Error("a damaged secret is used")
	}
}
