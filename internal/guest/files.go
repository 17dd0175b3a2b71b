package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"cove/internal/wire"
)

// maxListed bounds a listing; code can make millions of files.
const maxListed = 10000

// openWorkspace opens the workspace so that no symlink that code made can lead out of it. Code may have removed
// the folder where it is not a mount point; then it is made again.
func (g *guest) openWorkspace() (*os.Root, error) {
	root, err := os.OpenRoot(g.workspace)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(g.workspace, 0o755); err != nil {
			return nil, err
		}
		root, err = os.OpenRoot(g.workspace)
	}
	return root, err
}

func checkPath(p string) error {
	if !fs.ValidPath(p) || p == "." || strings.ContainsRune(p, 0) {
		return fault{wire.FaultInvalid, fmt.Sprintf("%q is not a path inside the workspace", p)}
	}
	return nil
}

func (g *guest) writeFile(ch *wire.Channel, req wire.Request) error {
	if err := checkPath(req.Path); err != nil {
		return err
	}
	root, err := g.openWorkspace()
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := g.makeFolders(root, path.Dir(req.Path)); err != nil {
		return err
	}
	// Written under another name first: code never sees half a file, and a symlink at the target is replaced, not followed.
	part := path.Join(path.Dir(req.Path), ".part-"+path.Base(req.Path))
	f, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, fs.FileMode(req.Mode)&0o777|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, ch)
	if err == nil {
		err = g.own(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(part, req.Path)
	}
	if err != nil {
		_ = root.Remove(part)
		return err
	}
	return errors.Join(wire.WriteMessage(ch, wire.Response{}, nil), ch.CloseWrite())
}

func (g *guest) own(f *os.File) error {
	if g.user == 0 {
		return nil
	}
	return f.Chown(g.user, g.user)
}

func (g *guest) makeFolders(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	if err := g.makeFolders(root, path.Dir(dir)); err != nil {
		return err
	}
	err := root.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil && g.user != 0 {
		err = root.Lchown(dir, g.user, g.user)
	}
	return err
}

func (g *guest) readFile(ch *wire.Channel, req wire.Request) error {
	if err := checkPath(req.Path); err != nil {
		return err
	}
	root, err := g.openWorkspace()
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	// O_NONBLOCK: a FIFO that code put there must not hang the guest.
	f, err := root.OpenFile(req.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return fault{wire.FaultInvalid, fmt.Sprintf("%q is not a regular file", req.Path)}
	}
	if err := wire.WriteMessage(ch, wire.Response{Size: fi.Size()}, nil); err != nil {
		return nil
	}
	// Never more than the size announced: code may be appending.
	n := fi.Size()
	if req.Limit > 0 {
		n = min(n, req.Limit)
	}
	if _, err := io.CopyN(ch, f, n); err != nil {
		_ = ch.Reset(err.Error())
		return nil
	}
	return ignore(ch.CloseWrite())
}

// ignore drops an error of answering: then the host is gone and nobody is left to tell.
func ignore(error) error { return nil }

func (g *guest) listFiles(ch *wire.Channel) error {
	root, err := g.openWorkspace()
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	files := []wire.FileInfo{}
	more := false
	err = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // unreadable, gone meanwhile, or not a file
		}
		if len(files) == maxListed {
			more = true
			return fs.SkipAll
		}
		if fi, err := d.Info(); err == nil {
			files = append(files, wire.FileInfo{Path: p, Size: fi.Size(), Stamp: stamp(fi)})
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
	return ignore(errors.Join(wire.WriteMessage(ch, wire.Response{More: more}, body), ch.CloseWrite()))
}

// stamp uses the change time, which code cannot set.
func stamp(fi fs.FileInfo) string {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d.%d.%d", st.Ino, st.Ctim.Nano(), st.Size)
	}
	return fmt.Sprintf("%d.%d", fi.ModTime().UnixNano(), fi.Size())
}
