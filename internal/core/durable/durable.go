// Package durable puts files into place so that a crash, of the program or of the machine, leaves the old one or the new one whole.
package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	partPattern = ".new-*"
	// partLife is after which time without a write a part is one that a crash has left.
	partLife = time.Hour
)

// Replace puts what from has into place as the file path with that mode, whatever the umask is, and returns when the file and its name are on the
// disk. Several may do so at once: the last one's file stays. After an error path is what it was, or already the new file. What a crash left
// of an earlier call in the same folder, files that begin with ".new-", is removed an hour later.
func Replace(path string, mode os.FileMode, from io.Reader) error {
	dir := filepath.Dir(path)
	sweep(dir)
	part, err := os.CreateTemp(dir, partPattern)
	if err != nil {
		return err
	}
	_, err = io.Copy(part, from)
	if err == nil {
		err = part.Chmod(mode)
	}
	if err == nil {
		err = part.Sync()
	}
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return SyncFolder(dir)
}

// SyncFolder returns when the names in a folder are on the disk.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// sweep removes what a crash has left in a folder.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, partPattern))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > partLife {
			_ = os.Remove(path)
		}
	}
}
