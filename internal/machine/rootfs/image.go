package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Shown is a folder or a file of the host that is shown in a sandbox.
type Shown struct{ From, At string }

// mostShown bounds how many parts an image is shown in: each costs a sandbox time and memory.
const mostShown = 400

// Image adds the file system of an image, which is the folder root of the host, and returns the parts of it that are to be shown read-only. Places are where the caller mounts something, or has
// added something: there, and on the way to them, nothing of the image's is shown, so that no link of its maker's leads a mount elsewhere. The folder never changes meanwhile.
func (t Tree) Image(root string, places []string) (shown []Shown, err error) {
	if shown, err = t.imageFolder(root, "/", places); err != nil {
		return nil, fmt.Errorf("show the image: %w", err)
	}
	if len(shown) > mostShown {
		return nil, errors.New("show the image: what is mounted in it lies between too many of its files")
	}
	return shown, nil
}

func (t Tree) imageFolder(root, folder string, places []string) (shown []Shown, err error) {
	entries, err := os.ReadDir(filepath.Join(root, folder))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		at := path.Join(folder, e.Name())
		from := filepath.Join(root, at)
		on := slices.ContainsFunc(places, func(p string) bool { return strings.HasPrefix(p, at+"/") })
		switch {
		case slices.Contains(places, at):
		case on && e.IsDir():
			t.Dir(at)
			below, err := t.imageFolder(root, at, places)
			if err != nil {
				return nil, err
			}
			shown = append(shown, below...)
		case on: // a file or a link where a folder has to be
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(from)
			if err != nil {
				return nil, err
			}
			t.Link(target, at)
		case e.IsDir():
			t.Dir(at)
			if below, err := os.ReadDir(from); err == nil && len(below) == 0 {
				continue
			}
			shown = append(shown, Shown{from, at})
		default:
			t.File(at, "")
			shown = append(shown, Shown{from, at})
		}
	}
	return shown, nil
}
