package guest

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"unsafe"

	"cove/internal/machine/wire"
)

// checkFolder is checkPath for what may be the workspace itself, which it returns as os.Root calls it.
func checkFolder(p string) (string, error) {
	if p == "" {
		return ".", nil
	}
	return p, checkPath(p)
}

func (g *guest) statFile(ch *wire.Channel, req wire.Request) error {
	p, err := checkFolder(req.Path)
	if err != nil {
		return err
	}
	var found fs.FileInfo
	err = g.inWorkspace(func(root *os.Root) (err error) {
		p = g.followed(p)
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
	err = renameat2(int(source.Fd()), path.Base(from), int(target.Fd()), path.Base(to), renameNoReplace)
	if errors.Is(err, syscall.EEXIST) {
		return fault{wire.FaultExists, fmt.Sprintf("there is something at %q already", to)}
	}
	if err != nil {
		return &os.LinkError{Op: "move", Old: from, New: to, Err: err}
	}
	return nil
}

// atWorkingFolder has a path be one from the working folder, unless it is absolute.
const atWorkingFolder = -0x64

// renameat2 is renameat2(2).
func renameat2(source int, from string, target int, to string, flags uintptr) error {
	oldName, err := syscall.BytePtrFromString(from)
	if err != nil {
		return err
	}
	newName, err := syscall.BytePtrFromString(to)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall6(sysRenameat2, uintptr(source), uintptr(unsafe.Pointer(oldName)), uintptr(target), uintptr(unsafe.Pointer(newName)), flags, 0)
	if errno != 0 {
		return errno
	}
	return nil
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
			return removeAll(root, req.Path)
		}
		return root.Remove(req.Path)
	})
	if err != nil {
		return err
	}
	answer(ch, wire.Response{}, nil)
	return nil
}

// deepestRemoval is how many folders within each other are removed from the inside out, each of which is kept open meanwhile.
const deepestRemoval = 100

// removeAll removes a folder with what is in it.
func removeAll(root *os.Root, dir string) error {
	top, err := root.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = top.Close() }()
	if err := empty(top, top, 0); err != nil {
		return err
	}
	return root.Remove(dir)
}

// empty removes what is in a folder, symlinks themselves. A folder that is too deep is moved up into top first, which is emptied last.
func empty(top, dir *os.Root, depth int) error {
	for {
		f, err := dir.Open(".")
		if err != nil {
			return err
		}
		entries, err := f.ReadDir(batch)
		if depth == deepestRemoval && err == nil {
			err = moveUp(top, f, entries)
		}
		_ = f.Close()
		if errors.Is(err, io.EOF) {
			return nil
		}
		for _, e := range entries {
			if err == nil {
				err = removeEntry(top, dir, e, depth)
			}
		}
		if err != nil {
			return err
		}
	}
}

func removeEntry(top, dir *os.Root, e fs.DirEntry, depth int) error {
	err := dir.Remove(e.Name())
	if e.IsDir() && errors.Is(err, syscall.ENOTEMPTY) {
		var sub *os.Root
		if sub, err = dir.OpenRoot(e.Name()); err == nil {
			err = errors.Join(empty(top, sub, depth+1), sub.Close())
		}
		if err == nil {
			err = dir.Remove(e.Name())
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // somebody was quicker
		return nil
	}
	return err
}

// moveUp moves the folders among the entries of dir into top.
func moveUp(top *os.Root, dir *os.File, entries []fs.DirEntry) error {
	to, err := top.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		err := syscall.Renameat(int(dir.Fd()), e.Name(), int(to.Fd()), partPrefix+rand.Text())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &os.PathError{Op: "remove", Path: e.Name(), Err: err}
		}
	}
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
