package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

// tool returns a folder with nothing but uv in it, to be shown to sandboxes: the folder where it was found may be full of other things of the user's.
func (b *Builder) tool(ctx context.Context) (string, error) {
	path, err := b.options.UV(ctx)
	if err != nil {
		return "", fmt.Errorf("find uv: %w", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", fmt.Errorf("find uv: %w", err)
	}
	if err := program(path); err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("find uv: %w", err)
	}
	id := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", path, info.Size(), info.ModTime().UnixNano()))
	parent := filepath.Join(b.options.Data, "build")
	dir := filepath.Join(parent, fmt.Sprintf("uv-%x", id[:8]))
	if _, err := os.Stat(filepath.Join(dir, "uv")); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", unwritable(dir, err)
	}
	tmp, err := os.MkdirTemp(parent, ".tmp-uv-")
	if err != nil {
		return "", unwritable(dir, err)
	}
	defer func() { _ = os.RemoveAll(tmp) }() // gone after the rename
	if err := errors.Join(os.Chmod(tmp, 0o755), duplicate(path, filepath.Join(tmp, "uv"), info.Mode())); err != nil {
		return "", unwritable(dir, err)
	}
	prune(parent, dir)
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, os.ErrExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return "", unwritable(dir, err)
	}
	return dir, nil
}

// program makes sure that a file can be run by itself: what looks for uv elsewhere, as the scripts of version managers do, finds nothing in a sandbox.
func program(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("find uv: %w", err)
	}
	defer func() { _ = f.Close() }()
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err == nil && bytes.Equal(magic, []byte("\x7fELF")) {
		return nil
	}
	return problem.New(problem.UVUnusable, path+" is a script and not uv itself, and so it cannot be used in a sandbox").
		WithHint("put uv itself on the PATH, before the script")
}

// prune removes what earlier versions of uv and killed processes have left. Nothing is built for as long as a day.
func prune(parent, keep string) {
	entries, err := filepath.Glob(filepath.Join(parent, "*uv-*"))
	if err != nil {
		return
	}
	for _, path := range entries {
		if info, err := os.Stat(path); err == nil && path != keep && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(path) // what cannot be removed now is tried again with the next uv
		}
	}
}

func duplicate(from, to string, mode os.FileMode) error {
	const everyone = 0o005 // the sandboxed user is not the owner
	if mode.Perm()&everyone == everyone && os.Link(from, to) == nil {
		return nil
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Chmod(0o755), target.Close())
}
