package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"cove/internal/machine/sandbox"
)

// A sandbox with Limits.System has a root, who may list every folder inside. So it is not shown the folders that all sandboxes share and in which names are secrets, but folders of its own
// with links to what it may use.

// Folders of an instance.
const (
	ownShared   = "shared" // with the guest alone
	ownShown    = "shown"  // with one folder for each sandbox.SecretFolder, by number
	ownUnborn   = "unborn" // what is about to be shown
	systemStore = "system" // where gVisor has the files with what the sandbox has changed of the system
)

// openView makes the folders of a sandbox with Limits.System and links the guest.
func (in *instance) openView(guest string) error {
	for _, d := range []string{ownShared, ownShown, ownUnborn, systemStore} {
		if err := os.Mkdir(in.Join(d), 0o700); err != nil {
			return err
		}
	}
	if err := os.Chmod(in.Join(ownShared), 0o711); err != nil { //nolint:gosec // sandboxed code passes through it
		return err
	}
	return linkOrCopy(guest, filepath.Join(in.Join(ownShared), filepath.Base(guest)))
}

// openShown makes the folder in which a sandbox sees what it may use of a secret folder.
func (in *instance) openShown(number int) (string, error) {
	dir := filepath.Join(in.Join(ownShown), strconv.Itoa(number))
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // sandboxed code reads there
		return "", err
	}
	return dir, os.Chmod(dir, 0o755) //nolint:gosec // whatever the umask
}

// show links the folder name of source below the folder with that number. What is not there is left out.
func (in *instance) show(number int, source, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsRune(name, filepath.Separator) {
		return fmt.Errorf("no name of a folder: %q", name)
	}
	to := filepath.Join(in.Join(ownShown), strconv.Itoa(number), name)
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	unborn, err := os.MkdirTemp(in.Join(ownUnborn), "")
	if err != nil {
		return err
	}
	err = linkTree(filepath.Join(source, name), filepath.Join(unborn, name))
	if err == nil {
		err = os.Rename(filepath.Join(unborn, name), to)
	}
	if _, there := os.Lstat(to); errors.Is(err, fs.ErrNotExist) || there == nil {
		err = nil // it is not there, or somebody else has just shown it
	}
	return errors.Join(err, os.RemoveAll(unborn))
}

// conceal puts folders of the sandbox's own in the place of secret ones, with what it may use of them.
func (in *instance) conceal(mounts []sandbox.HostMount, shown []string) ([]sandbox.HostMount, error) {
	out := slices.Clone(mounts)
	for i, m := range mounts {
		if !m.Secret {
			continue
		}
		own, err := in.openShown(i)
		if err != nil {
			return nil, err
		}
		for _, name := range shown {
			if err := in.show(i, m.Folder, name); err != nil {
				return nil, err
			}
		}
		out[i].Folder = own
	}
	return out, nil
}

// Show implements sandbox.Shower.
func (s *running) Show(_ context.Context, name string) error {
	if s.spec.Limits.System == 0 {
		return nil
	}
	mounts, err := sandbox.HostMounts(s.spec.Mounts)
	if err != nil {
		return err
	}
	for i, m := range mounts {
		if !m.Secret {
			continue
		}
		if err := s.instance.show(i, m.Folder, name); err != nil {
			return fmt.Errorf("show %s in sandbox %s: %w", name, s.ID(), err)
		}
	}
	return nil
}

// linkTree makes a folder with links to the files of another one, which never change.
func linkTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, below)
		switch {
		case e.IsDir():
			return os.Mkdir(target, 0o755) //nolint:gosec // sandboxed code reads there
		case e.Type()&fs.ModeSymlink != 0:
			leads, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(leads, target)
		}
		return linkOrCopy(path, target)
	})
}

// linkOrCopy makes a link to a file, or a copy where the file system has none to it.
func linkOrCopy(from, to string) error {
	err := os.Link(from, to)
	if !errors.Is(err, unix.EXDEV) && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EMLINK) && !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
