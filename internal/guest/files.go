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
	"unicode/utf8"

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
	// Written under another name first: code never sees half a file, and a symlink at the target is replaced, not followed.
	part := path.Join(path.Dir(req.Path), ".part-"+path.Base(req.Path))
	var f *os.File
	err := g.inWorkspace(func(root *os.Root) (err error) {
		if err := makeFolders(root, path.Dir(req.Path)); err != nil {
			return err
		}
		f, err = root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, fs.FileMode(req.Mode)&0o777|0o600)
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(f, ch)
	err = errors.Join(err, f.Close())
	var written fs.FileInfo
	err = errors.Join(err, g.inWorkspace(func(root *os.Root) (failure error) {
		if err != nil {
			return root.Remove(part)
		}
		if failure = root.Rename(part, req.Path); failure == nil {
			written, failure = root.Lstat(req.Path)
		}
		return failure
	}))
	if err != nil {
		return err
	}
	answer(ch, wire.Response{Size: written.Size(), Stamp: stamp(written)}, nil)
	return nil
}

func makeFolders(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	if err := makeFolders(root, path.Dir(dir)); err != nil {
		return err
	}
	if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return refuseSymlinks(root, dir)
}

// refuseSymlinks makes sure that no folder on the way to path is a symlink. os.Root does that by itself on Linux; in gVisor,
// opening with O_NOFOLLOW|O_DIRECTORY follows symlinks nevertheless. A program that wins the race against this check
// gains nothing, because the workspace is used with its own rights.
func refuseSymlinks(root *os.Root, dir string) error {
	for ; dir != "."; dir = path.Dir(dir) {
		fi, err := root.Lstat(dir)
		if err != nil {
			return err
		}
		if !fi.IsDir() {
			return fault{wire.FaultDenied, fmt.Sprintf("%q is not a folder", dir)}
		}
	}
	return nil
}

// inWorkspace calls f with the rights of sandboxed code, so that a path that leads elsewhere leads nowhere that code could not go.
func (g *guest) inWorkspace(f func(*os.Root) error) error {
	return g.asUser(func() error {
		root, err := g.openWorkspace()
		if err != nil {
			return err
		}
		defer func() { _ = root.Close() }()
		return f(root)
	})
}

func (g *guest) readFile(ch *wire.Channel, req wire.Request) error {
	if err := checkPath(req.Path); err != nil {
		return err
	}
	var f *os.File
	err := g.inWorkspace(func(root *os.Root) (err error) {
		if err := refuseSymlinks(root, path.Dir(req.Path)); err != nil {
			return err
		}
		// O_NONBLOCK: a FIFO that code put there must not hang the guest.
		f, err = root.OpenFile(req.Path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
		return err
	})
	if errors.Is(err, syscall.ELOOP) {
		return fault{wire.FaultDenied, fmt.Sprintf("%q is a symlink", req.Path)}
	}
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
	_ = ch.CloseWrite()
	return nil
}

func (g *guest) listFiles(ch *wire.Channel) error {
	files := []wire.FileInfo{}
	more := false
	err := g.inWorkspace(func(root *os.Root) error {
		return fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || !utf8.ValidString(p) {
				return nil // unreadable, gone meanwhile, or nothing that the host could name
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

// stamp uses the change time, which code cannot set.
func stamp(fi fs.FileInfo) string {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d.%d.%d", st.Ino, st.Ctim.Nano(), st.Size)
	}
	return fmt.Sprintf("%d.%d", fi.ModTime().UnixNano(), fi.Size())
}
