package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Content is what is in a volume, without a sandbox. Paths are relative and slash-separated; "." is the volume itself. Links that lead out of the volume are not followed. Errors are those of
// package os, and ErrTooMuch. What is made belongs to the user of sandboxed code.
type Content struct {
	root  *os.Root
	owner int
}

// ErrTooMuch says that there is more than can be told, or than the volume may hold.
var ErrTooMuch = errors.New("there is too much")

// MostListed is how many entries one listing has at most.
const MostListed = 10_000

// Entry is a file, a folder or a link. Own says that it is the user's of sandboxed code.
type Entry struct {
	Path                        string
	Info                        fs.FileInfo
	Target                      string // of a link
	Own                         bool
	Accessed, Modified, Changed time.Time
}

// Open opens a volume's folder.
func (f Folders) Open(project, id string) (*Content, error) {
	folder := filepath.Join(f.Dir, Path(project, id))
	owner, err := ownerOf(folder)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	return &Content{root, owner}, nil
}

// Close closes it.
func (c *Content) Close() error { return c.root.Close() }

// Stat looks at what has a path.
func (c *Content) Stat(name string) (Entry, error) {
	info, err := c.root.Lstat(name)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Path: name, Info: info, Modified: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		e.Own, e.Accessed, e.Changed = int(st.Uid) == c.owner, time.Unix(st.Atim.Unix()), time.Unix(st.Ctim.Unix())
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		e.Target, err = c.root.Readlink(name)
	}
	return e, err
}

// List lists what is in a folder, and in those in it to a depth, by their paths.
func (c *Content) List(name string, depth int) ([]Entry, error) {
	all, err := c.list(nil, name, depth)
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return all, err
}

func (c *Content) list(all []Entry, name string, depth int) ([]Entry, error) {
	dir, err := c.root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return all, err
	}
	defer func() { _ = dir.Close() }()
	for {
		names, err := dir.Readdirnames(batch)
		for _, n := range names {
			e, err := c.Stat(path.Join(name, n))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return all, err
			}
			if all = append(all, e); len(all) > MostListed {
				return all, ErrTooMuch
			}
			if depth > 1 && e.Info.IsDir() {
				if all, err = c.list(all, e.Path, depth-1); err != nil {
					return all, err
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// MakeFolder makes a folder; with all also those that it is in, and one that is there is none to be made.
func (c *Content) MakeFolder(name string, mode fs.FileMode, all bool) (Entry, error) {
	if all {
		if err := c.makeAbove(name); err != nil {
			return Entry{}, err
		}
	}
	err := c.root.Mkdir(name, 0o755)
	if err == nil {
		err = c.give(name, mode)
	} else if all && errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err != nil {
		return Entry{}, err
	}
	return c.Stat(name)
}

// makeAbove makes the folders that something is in.
func (c *Content) makeAbove(name string) error {
	above := path.Dir(name)
	if above == "." {
		return nil
	}
	if info, err := c.root.Stat(above); err == nil && info.IsDir() {
		return nil
	}
	_, err := c.MakeFolder(above, 0o755, true)
	return err
}

func (c *Content) give(name string, mode fs.FileMode) error {
	return errors.Join(c.root.Chmod(name, mode), c.root.Lchown(name, c.owner, c.owner))
}

// Read opens a file, and says how large it is.
func (c *Content) Read(name string) (io.ReadCloser, int64, error) {
	f, err := c.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// Write writes a file, whole or not at all; with all also the folders that it is in. It takes at most so many bytes.
func (c *Content) Write(name string, r io.Reader, mode fs.FileMode, all bool, most int64) (Entry, error) {
	if all {
		if err := c.makeAbove(name); err != nil {
			return Entry{}, err
		}
	}
	part := path.Join(path.Dir(name), fmt.Sprintf(".%x.part", time.Now().UnixNano()))
	f, err := c.root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Entry{}, err
	}
	n, err := io.Copy(f, io.LimitReader(r, most+1))
	if n > most {
		err = ErrTooMuch
	}
	if err == nil {
		err = errors.Join(f.Chmod(mode), f.Chown(c.owner, c.owner))
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = c.root.Rename(part, name)
	}
	if err != nil {
		return Entry{}, errors.Join(err, c.root.Remove(part))
	}
	return c.Stat(name)
}

// SetMode sets the permission bits of a file or a folder.
func (c *Content) SetMode(name string, mode fs.FileMode) (Entry, error) {
	if err := c.root.Chmod(name, mode); err != nil {
		return Entry{}, err
	}
	return c.Stat(name)
}

// Remove removes what has a path, a folder with what is in it.
func (c *Content) Remove(name string) error {
	if _, err := c.root.Lstat(name); err != nil {
		return err
	}
	gone := fmt.Sprintf("%s%x", gonePrefix, time.Now().UnixNano())
	if err := c.root.Rename(name, gone); err != nil {
		return err
	}
	return removeAll(c.root, gone)
}
