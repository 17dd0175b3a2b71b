package guest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"

	"cove/internal/machine/wire"
)

// openWorkspace opens the workspace so that no symlink that code made can lead out of it.
func (g *guest) openWorkspace() (*os.Root, error) {
	root, err := os.OpenRoot(g.workspace)
	if err == nil {
		return root, nil
	}
	if err := g.mendWorkspace(); err != nil {
		return nil, err
	}
	return os.OpenRoot(g.workspace)
}

// mendWorkspace has the workspace be there, and its owner get in: code may have removed it where it is not a mount point, or locked itself out.
func (g *guest) mendWorkspace() error {
	if err := os.MkdirAll(g.workspace, 0o755); err != nil {
		return err
	}
	const all = 0o700
	fi, err := os.Stat(g.workspace)
	if err == nil && fi.Mode()&all != all {
		err = os.Chmod(g.workspace, fi.Mode().Perm()|all)
	}
	return err
}

// Bounds of a path, as of the file systems that it is for; a longer one is no file's.
const (
	longestPath = 4096
	deepestPath = 128 // folders in folders: each step into one goes all the way from the workspace
	longestName = 255
)

func checkPath(p string) error {
	ok := fs.ValidPath(spell(p)) && p != "." && len(p) <= longestPath && strings.Count(p, "/") < deepestPath && !strings.ContainsRune(p, 0)
	for name := range strings.SplitSeq(p, "/") {
		ok = ok && len(name) <= longestName
	}
	if !ok {
		return fault{wire.FaultPath, fmt.Sprintf("%.300q is not a path inside the workspace", p)}
	}
	return nil
}

// partPrefix begins the name of a file that the host is still sending.
const partPrefix = ".part-"

// isPart says whether a name has the form of a part's. Who tells of names only later, when the host may have sent the rest, goes by that.
func isPart(name string) bool {
	const random = 26 // characters of rand.Text
	return strings.HasPrefix(name, partPrefix) && len(name) == len(partPrefix)+random
}

// parts are the files that the host is still sending, which no listing has.
type parts struct {
	mu    sync.Mutex
	paths map[string]bool
}

// begin returns the name for a new part in a folder, an absolute path.
func (p *parts) begin(folder string) (name string, end func()) {
	name = partPrefix + rand.Text()
	part := path.Join(folder, name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paths == nil {
		p.paths = map[string]bool{}
	}
	p.paths[part] = true
	return name, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.paths, part)
	}
}

// has says whether the host is still sending the file with an absolute path.
func (p *parts) has(full string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paths[full]
}

func (g *guest) writeFile(ch *wire.Channel, req wire.Request) error {
	if err := checkPath(req.Path); err != nil {
		return err
	}
	// Written under another name first: code never sees half a file, and a symlink at the target is replaced, not followed.
	name, end := g.parts.begin(path.Join(g.workspace, path.Dir(req.Path)))
	defer end()
	part := path.Join(path.Dir(req.Path), name)
	var f *os.File
	err := g.inWorkspace(func(root *os.Root) (err error) {
		if err := makeFolders(root, path.Dir(req.Path)); err != nil {
			return err
		}
		if fi, err := root.Lstat(req.Path); err == nil && fi.IsDir() {
			return fault{wire.FaultExists, fmt.Sprintf("%q is a folder", req.Path)}
		}
		f, err = root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, fs.FileMode(req.Mode)&0o777|0o600)
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(f, ch)
	err = errors.Join(err, f.Close())
	var written fs.FileInfo
	err = errors.Join(err, g.inWorkspace(func(root *os.Root) (failure error) {
		if err == nil {
			failure = root.Rename(part, req.Path)
		}
		if err != nil || failure != nil {
			return errors.Join(failure, root.Remove(part))
		}
		written, failure = root.Lstat(req.Path)
		return failure
	}))
	if err != nil {
		return err
	}
	answer(ch, wire.Response{Size: written.Size(), Stamp: stamp(written), Modified: written.ModTime().UnixMicro()}, nil)
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
	return refuseSymlink(root, dir) // those above it were looked at above
}

// refuseSymlinks makes sure that no folder on the way to path is a symlink. os.Root does that by itself on Linux; in gVisor,
// opening with O_NOFOLLOW|O_DIRECTORY follows symlinks nevertheless. A program that wins the race against this check
// gains nothing, because the workspace is used with its own rights.
func refuseSymlinks(root *os.Root, dir string) error {
	for ; dir != "."; dir = path.Dir(dir) {
		if err := refuseSymlink(root, dir); err != nil {
			return err
		}
	}
	return nil
}

// refuseSymlink is refuseSymlinks for one folder.
func refuseSymlink(root *os.Root, dir string) error {
	fi, err := root.Lstat(dir)
	if err != nil {
		return err
	}
	if fi.Mode()&fs.ModeSymlink != 0 {
		return fault{wire.FaultDenied, fmt.Sprintf("%q is a symlink", dir)}
	}
	if !fi.IsDir() {
		return fault{wire.FaultPath, fmt.Sprintf("%q is not a folder", dir)}
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
		req.Path = g.followed(req.Path)
		if err := refuseSymlinks(root, path.Dir(req.Path)); err != nil {
			return err
		}
		if fi, err := root.Lstat(req.Path); err != nil {
			return err
		} else if fi.Mode()&fs.ModeSymlink != 0 {
			return fault{wire.FaultDenied, fmt.Sprintf("%q is a symlink that leads out of the workspace, or to nothing", req.Path)}
		}
		// O_NONBLOCK: a FIFO that code put there must not hang the guest.
		f, err = root.OpenFile(req.Path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	size, err := regularSize(f, req.Path)
	if err != nil {
		return err
	}
	if req.Offset < 0 || req.Limit < 0 {
		return fault{wire.FaultInvalid, "a negative offset or limit"}
	}
	return sendContent(ch, f, size, req.Offset, req.Limit)
}
