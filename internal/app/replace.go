package app

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// replace puts a file into place, whole and on the disk.
func replace(path string, mode os.FileMode, from io.Reader) error {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, ".new-*")
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
