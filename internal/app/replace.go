package app

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	newPattern = ".new-*"
	// newLife is after which time without a write a new file is one that a crash has left.
	newLife = time.Hour
)

// sweepNew removes what a crash has left in a folder.
func sweepNew(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, newPattern))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > newLife {
			_ = os.Remove(path)
		}
	}
}

// replace puts a file into place, whole and on the disk.
func replace(path string, mode os.FileMode, from io.Reader) error {
	dir := filepath.Dir(path)
	sweepNew(dir)
	tmp, err := os.CreateTemp(dir, newPattern)
	if err != nil {
		return err
	}
	_, err = io.Copy(tmp, from)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
