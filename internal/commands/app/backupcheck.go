package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/core/problem"
)

// verifyBackup restores an archive into a temporary folder and removes that again.
func verifyBackup(ctx context.Context, c config.Config, r io.Reader) (found cli.Verified, err error) {
	dir, err := os.MkdirTemp("", "cove-verify-")
	if err != nil {
		return found, problem.New(problem.TempUnusable, "there is no room for a temporary folder").WithCause(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return verify(ctx, c, dir, r)
}

// verify restores an archive into an empty folder, whose disk has room for the archive's database and its largest file: what it finds, `cove restore` would find. The keys
// that the archive's files were encrypted with are the settings'.
func verify(ctx context.Context, c config.Config, dir string, r io.Reader) (found cli.Verified, err error) {
	c.Folders = config.Folders{Data: dir, Runtime: dir, Out: dir, Sessions: filepath.Join(dir, "sessions"), Server: filepath.Join(dir, "server")}
	c.Store.Database = filepath.Join(dir, "cove.db")
	if err := os.MkdirAll(serverFiles(c), 0o700); err != nil {
		return found, unwritableFolder(dir, err)
	}
	s, err := openStore(ctx, c, nil)
	if err != nil {
		return found, err
	}
	u := &unpacking{c: c, looked: map[string]bool{}}
	err = restoreInto(ctx, s, u, r)
	var named []string
	if err == nil {
		named, err = s.Contents(ctx)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return found, err
	}
	found = cli.Verified{Made: u.made, Files: len(u.looked), Bytes: u.size}
	for _, content := range named {
		if !u.looked[content] {
			found.Elsewhere++
		}
	}
	return found, nil
}
