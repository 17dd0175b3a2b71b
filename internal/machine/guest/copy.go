package guest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"cove/internal/machine/wire"
)

// copyTo copies a file, a symlink, or a folder with what is in it, which is at its place when it is whole. Modes, times of change and attributes go along; owners do not.
func (g *guest) copyTo(from, to place, replace bool) error {
	name, end := g.parts.begin(to.folder())
	defer end()
	part := path.Join(to.folder(), name)
	c := copier{avoid: part}
	err := c.copy(from.full, part)
	if err == nil {
		err = rename(part, to.full, replace)
	}
	if err != nil {
		_ = removePath(part, true)
	}
	return err
}

type copier struct {
	avoid string // the copy itself, where it is within what is copied
}

func (c copier) copy(from, to string) error {
	if from == c.avoid {
		return nil
	}
	fi, err := os.Lstat(from)
	if err != nil {
		return err
	}
	switch {
	case strings.Count(from, "/") > deepestPath:
		return fault{wire.FaultPath, fmt.Sprintf("%.300q is too deep", from)}
	case fi.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case fi.Mode()&fs.ModeNamedPipe != 0:
		return syscall.Mkfifo(to, uint32(fi.Mode().Perm()))
	case fi.IsDir():
		return c.folder(from, to, fi)
	case fi.Mode().IsRegular():
		return copyFile(from, to, fi)
	}
	return fault{wire.FaultPath, fmt.Sprintf("%.300q is neither a file nor a folder", from)}
}

func (c copier) folder(from, to string, fi fs.FileInfo) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(from, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for {
		entries, err := f.ReadDir(batch)
		for _, e := range entries {
			if err := c.copy(path.Join(from, e.Name()), path.Join(to, e.Name())); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return likeBefore(from, to, fi)
		}
		if err != nil {
			return err
		}
	}
}

func copyFile(from, to string, fi fs.FileInfo) error {
	source, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	// No more than there was: code may be appending.
	_, err = io.Copy(target, io.LimitReader(source, max(fi.Size(), wire.UnsizedLimit)))
	if err = errors.Join(err, target.Close()); err != nil {
		return err
	}
	return likeBefore(from, to, fi)
}

// likeBefore gives a copy the attributes, the time and the mode of what it is a copy of.
func likeBefore(from, to string, fi fs.FileInfo) error {
	modified, mode := fi.ModTime().UnixMicro(), uint32(fi.Mode().Perm())
	set, err := newSetter(wire.EntrySet{Mode: &mode, Modified: &modified, Attributes: keep(attributes(from))})
	if err != nil {
		return err
	}
	return set.apply(to, false)
}
