package app_test

import (
	"os"
	"path/filepath"
	"testing"

	"cove/internal/commands/app"
	"cove/internal/core/config"
)

func TestServedIsTheRunningServersAddress(t *testing.T) {
	t.Parallel()
	var c config.Config
	c.Folders.Server = filepath.Join(t.TempDir(), "server")
	if got := app.Served(c); got != "" {
		t.Errorf("without a folder it is %q", got)
	}
	release, err := app.LockServer(c.Folders.Server, "http://127.0.0.1:8700")
	if err != nil {
		t.Fatal(err)
	}
	if got := app.Served(c); got != "http://127.0.0.1:8700" {
		t.Errorf("while the server runs it is %q", got)
	}
	release()
	if got := app.Served(c); got != "" {
		t.Errorf("after its end it is %q", got)
	}
	if err := os.WriteFile(filepath.Join(c.Folders.Server, "lock"), []byte(`{"pid":1,"address":"http://127.0.0.1:8700"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := app.Served(c); got != "" {
		t.Errorf("after it was killed it is %q", got)
	}
}
