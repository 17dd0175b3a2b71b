package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"
	"unsafe"

	"cove/internal/wire"
)

// checkFolder is checkPath for what may be the workspace itself, which it returns as os.Root calls it.
func checkFolder(p string) (string, error) {
	if p == "" {
		return ".", nil
	}
	return p, checkPath(p)
}

// listFolder lists the files and folders of one folder, the first of them by name. What is neither, as symlinks and FIFOs, is left out, and
// so is what has no name that the host could say.
func (g *guest) listFolder(ch *wire.Channel, req wire.Request) error {
	dir, err := checkFolder(req.Path)
	if err != nil {
		return err
	}
	files, more := []wire.FileInfo{}, false
	err = g.inWorkspace(func(root *os.Root) error {
		if err := refuseSymlinks(root, dir); err != nil {
			return err
		}
		f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		var names []string
		if names, more, err = g.firstNames(f, req.Path); err != nil {
			return err
		}
		size := 0
		for _, name := range names {
			p := path.Join(req.Path, name)
			if size += len(p); size > maxListedBytes {
				more = true
				break
			}
			if fi, err := root.Lstat(p); err == nil && (fi.IsDir() || fi.Mode().IsRegular()) {
				files = append(files, describe(p, fi))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	body, err := json.Marshal(files)
	if err != nil {
		return err
	}
	answer(ch, wire.Response{More: more}, body)
	return nil
}

// firstNames returns the first names of a folder in alphabetical order, and whether there are more. It never holds more than twice as many.
func (g *guest) firstNames(f *os.File, dir string) (names []string, more bool, err error) {
	shorten := func() {
		slices.Sort(names)
		if len(names) > maxListed {
			more, names = true, names[:maxListed]
		}
	}
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			p := path.Join(dir, e.Name())
			if (e.IsDir() || e.Type().IsRegular()) && utf8.ValidString(p) && len(p) <= longestPath && !g.parts.has(p) {
				names = append(names, e.Name())
			}
		}
		if len(names) > 2*maxListed || err != nil {
			shorten()
		}
		if errors.Is(err, io.EOF) {
			return names, more, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

func (g *guest) statFile(ch *wire.Channel, req wire.Request) error {
	p, err := checkFolder(req.Path)
	if err != nil {
		return err
	}
	var found fs.FileInfo
	err = g.inWorkspace(func(root *os.Root) (err error) {
		if err = refuseSymlinks(root, path.Dir(p)); err == nil {
			found, err = root.Lstat(p)
		}
		return err
	})
	if err != nil {
		return err
	}
	if !found.IsDir() && !found.Mode().IsRegular() {
		return fault{wire.FaultPath, fmt.Sprintf("%q is neither a file nor a folder", req.Path)}
	}
	body, err := json.Marshal(describe(req.Path, found))
	if err != nil {
		return err
	}
	answer(ch, wire.Response{}, body)
	return nil
}

func (g *guest) moveFile(ch *wire.Channel, req wire.Request) error {
	if err := errors.Join(checkPath(req.Path), checkPath(req.To)); err != nil {
		return err
	}
	var moved fs.FileInfo
	err := g.inWorkspace(func(root *os.Root) error {
		if err := refuseSymlinks(root, path.Dir(req.Path)); err != nil {
			return err
		}
		if _, err := root.Lstat(req.Path); err != nil {
			return err
		}
		if strings.HasPrefix(req.To, req.Path+"/") {
			return fault{wire.FaultPath, fmt.Sprintf("%q cannot be moved into itself", req.Path)}
		}
		if err := makeFolders(root, path.Dir(req.To)); err != nil {
			return err
		}
		err := renameNew(root, req.Path, req.To)
		if err == nil {
			moved, err = root.Lstat(req.To)
		}
		return err
	})
	if err != nil {
		return err
	}
	answer(ch, wire.Response{Stamp: stamp(moved)}, nil)
	return nil
}

const renameNoReplace = 1

// renameNew renames without replacing anything: two writers cannot take each other's place. Package os has no way to say that.
func renameNew(root *os.Root, from, to string) error {
	open := func(p string) (*os.File, error) {
		return root.OpenFile(path.Dir(p), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	}
	source, err := open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := open(to)
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }()
	oldName, err := syscall.BytePtrFromString(path.Base(from))
	if err != nil {
		return err
	}
	newName, err := syscall.BytePtrFromString(path.Base(to))
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall6(sysRenameat2, source.Fd(), uintptr(unsafe.Pointer(oldName)), target.Fd(), uintptr(unsafe.Pointer(newName)), renameNoReplace, 0)
	switch errno {
	case 0:
		return nil
	case syscall.EEXIST:
		return fault{wire.FaultExists, fmt.Sprintf("there is something at %q already", to)}
	}
	return &os.LinkError{Op: "move", Old: from, New: to, Err: errno}
}

func (g *guest) removeFile(ch *wire.Channel, req wire.Request) error {
	if err := checkPath(req.Path); err != nil {
		return err
	}
	err := g.inWorkspace(func(root *os.Root) error {
		if err := refuseSymlinks(root, path.Dir(req.Path)); err != nil {
			return err
		}
		fi, err := root.Lstat(req.Path)
		switch {
		case err != nil:
			return err
		case req.All && fi.IsDir():
			return root.RemoveAll(req.Path) // which removes symlinks instead of following them
		}
		return root.Remove(req.Path)
	})
	if err != nil {
		return err
	}
	answer(ch, wire.Response{}, nil)
	return nil
}

func (g *guest) makeFolder(ch *wire.Channel, req wire.Request) error {
	if err := checkPath(req.Path); err != nil {
		return err
	}
	err := g.inWorkspace(func(root *os.Root) error {
		if err := makeFolders(root, path.Dir(req.Path)); err != nil {
			return err
		}
		if fi, err := root.Lstat(req.Path); err == nil && !fi.IsDir() {
			return fault{wire.FaultExists, fmt.Sprintf("%q is not a folder", req.Path)}
		}
		return makeFolders(root, req.Path)
	})
	if err != nil {
		return err
	}
	answer(ch, wire.Response{}, nil)
	return nil
}
