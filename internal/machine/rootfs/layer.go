package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
)

// A layer of system packages is a folder of the host with the files that packages of the host's own distribution brought (see package debs), at their paths. Where the host has a folder of the layer
// as well, sandboxes see the layer's, in which a link stands for each entry that only the host's has.

// systemPlace is where sandboxes with a layer find the host's folders that those of the layer stand for.
const systemPlace = "/opt/cove/system"

// dpkgTable is where Debian's packages are listed. Nothing but dpkg reads it, so that it is for sandboxes whose system can be changed.
const dpkgTable = "/var/lib/dpkg"

// ownTables are each sandbox's own, whatever the scripts of packages have made of those of the sandbox that they were installed in.
var ownTables = []string{"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/hostname"}

// layered are the folders of the host that sandboxes see, if the layer has them.
func layered() []string {
	return slices.Concat(Tree{}.Programs(), Tables(), []string{dpkgTable})
}

// SystemPlace returns where sandboxes with that layer ("": none) see a folder of the host: at its own path, unless the layer's stands there.
func SystemPlace(layer, p string) string {
	if layer == "" {
		return p
	}
	if info, err := os.Lstat(filepath.Join(layer, p)); err != nil || !info.IsDir() {
		return p
	}
	return systemPlace + p
}

// Layer adds a layer of system packages around the places of mounts and what was added before, and returns the parts of it that are to be shown read-only. Where the system can be changed, what is
// small of its /etc is copied, since each mount has changes of its own.
func (t Tree) Layer(layer string, changeable bool, left int64) (shown []Shown, err error) {
	if changeable {
		own := Tree{}
		for _, p := range ownTables {
			if e, has := t[p]; has {
				own[p] = e
			}
		}
		t.CopyIn(layer, "/etc", left)
		maps.Copy(t, own)
	}
	places := slices.DeleteFunc(slices.Collect(maps.Keys(t)), func(p string) bool { return p == "/opt" })
	if !changeable {
		places = append(places, dpkgTable)
	}
	opt, has := t["/opt"]
	if shown, err = t.Image(layer, places); has {
		t["/opt"] = opt
	}
	return shown, err
}

// CompleteLayer adds the links to what the host, whose root is that folder, has in the folders of a layer. What is in the layer leads nowhere on the host: links in it are not followed.
func CompleteLayer(layer, host string) error {
	root, err := os.OpenRoot(layer)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, p := range layered() {
		if SystemPlace(layer, p) == p {
			continue
		}
		if err := completeFolder(root, host, p); err != nil {
			return fmt.Errorf("link %s of the host: %w", p, err)
		}
	}
	return nil
}

func completeFolder(layer *os.Root, host, folder string) error {
	entries, err := os.ReadDir(filepath.Join(host, folder))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		at := path.Join(folder, e.Name())
		was, err := layer.Lstat(at[1:])
		switch {
		case err == nil && was.IsDir() && e.IsDir():
			err = completeFolder(layer, host, at)
		case errors.Is(err, fs.ErrNotExist):
			err = completeEntry(layer, host, at, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// interpreter finds Python's, which looks for its library beside the file that it is, links resolved. So it is copied, and has the modules that packages of the layer bring.
var interpreter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/usr/bin/python3\.[0-9]+$`) })

// completeEntry adds what stands for an entry of the host.
func completeEntry(layer *os.Root, host, at string, e fs.DirEntry) error {
	from := filepath.Join(host, at)
	switch {
	case e.Type()&fs.ModeSymlink != 0: // it may lead to something that the layer has another version of
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return layer.Symlink(target, at[1:])
	case e.Type().IsRegular() && interpreter().MatchString(at):
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := layer.WriteFile(at[1:], text, 0o755); err != nil {
			return err
		}
		return layer.Chmod(at[1:], 0o755)
	}
	return layer.Symlink(systemPlace+at, at[1:])
}
