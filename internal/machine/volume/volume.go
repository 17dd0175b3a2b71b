// Package volume keeps the folders of volumes on the disk: DIR/PROJECT/VOLUME. Code in sandboxes decides what is in a volume: names, links and modes. So the host
// goes below a volume's folder through os.Root alone, and follows nothing out of it.
package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// gonePrefix begins the names of volumes that are being removed.
const gonePrefix = ".gone-"

// Folders are those of a server's volumes.
type Folders struct {
	Dir string // absolute
	// Own gives an empty folder to whom the content of the volumes in it shall belong.
	Own func(folder string) error
}

// Path is a volume's folder below Dir.
func Path(project, id string) string { return filepath.Join(project, id) }

// Make makes the folder of a new volume.
func (f Folders) Make(project, id string) error {
	above := filepath.Join(f.Dir, project)
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of volumes: %w", err)
	}
	err := os.Mkdir(above, 0o755) //nolint:gosec // users of sandboxes pass through it
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the folder of volumes: %w", err)
	}
	if owner, err := ownerOf(above); err != nil || owner == os.Getuid() {
		if err := errors.Join(err, f.Own(above)); err != nil {
			return fmt.Errorf("give away the folder of volumes: %w", err)
		}
	}
	owner, err := ownerOf(above)
	if err != nil {
		return fmt.Errorf("make a volume: %w", err)
	}
	dir := filepath.Join(above, id)
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // the users of sandboxes do
		return fmt.Errorf("make a volume: %w", err)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Lchown(dir, owner, owner)); err != nil { //nolint:gosec // whatever the umask
		return fmt.Errorf("make a volume: %w", errors.Join(err, os.Remove(dir)))
	}
	return nil
}

func ownerOf(folder string) (int, error) {
	info, err := os.Lstat(folder)
	if err != nil {
		return 0, err
	}
	return int(info.Sys().(*syscall.Stat_t).Uid), nil
}

// MakeSub makes a folder in a volume, and those that it is in.
func (f Folders) MakeSub(project, id, sub string) error {
	root, err := os.OpenRoot(filepath.Join(f.Dir, Path(project, id)))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	owner, err := ownerOf(root.Name())
	if err != nil {
		return err
	}
	for i, c := range sub + "/" {
		if c != '/' {
			continue
		}
		err := root.Mkdir(sub[:i], 0o755) //nolint:gosec // the users of sandboxes do
		if err == nil {
			err = root.Lchown(sub[:i], owner, owner)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// Remove removes a volume with all that is in it. One that is not there is removed already.
func (f Folders) Remove(project, id string) error {
	gone := filepath.Join(f.Dir, project, gonePrefix+id)
	if err := os.Rename(filepath.Join(f.Dir, Path(project, id)), gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a volume: %w", err)
	}
	root, err := os.OpenRoot(filepath.Join(f.Dir, project))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(removeAll(root, gonePrefix+id), root.Close())
	}
	if err != nil {
		return fmt.Errorf("remove a volume: %w", err)
	}
	return nil
}

// atATime is how many folders within each other are open at the same time while they are removed: code can put so many within each other that all together are more than a process may open.
const atATime = 50

// removeAll removes what has a name in root, which may be nothing.
func removeAll(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !info.IsDir() {
		return errors.Join(err, root.Remove(name))
	}
	dir, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	for again := true; again && err == nil; {
		again, err = empty(dir, ".", 0)
	}
	return errors.Join(err, dir.Close(), root.Remove(name))
}

// empty removes what is in a folder. Folders too deep in it it moves to the top, from where they are removed when it is called again.
func empty(root *os.Root, name string, depth int) (again bool, err error) {
	dir, err := root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = dir.Close() }()
	for {
		entries, rerr := dir.ReadDir(batch)
		for _, e := range entries {
			child := path.Join(name, e.Name())
			if e.IsDir() && depth >= atATime {
				if err := root.Rename(child, fmt.Sprintf(".deep-%d", time.Now().UnixNano())); err != nil {
					return false, err
				}
				again = true
				continue
			}
			if e.IsDir() {
				more, err := empty(root, child, depth+1)
				if err != nil {
					return false, err
				}
				again = again || more
			}
			if err := root.Remove(child); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false, err
			}
		}
		if rerr != nil || len(entries) == 0 {
			if errors.Is(rerr, io.EOF) {
				rerr = nil
			}
			return again, rerr
		}
	}
}

// Sweep removes the folders of volumes for which keep is false, and those whose removal was interrupted.
func (f Folders) Sweep(keep func(project, id string) (bool, error)) error {
	projects, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, project := range projects {
		volumes, rerr := os.ReadDir(filepath.Join(f.Dir, project.Name()))
		err = errors.Join(err, rerr)
		for _, v := range volumes {
			id, gone := strings.CutPrefix(v.Name(), gonePrefix)
			if !gone {
				kept, kerr := keep(project.Name(), id)
				if kept || kerr != nil {
					err = errors.Join(err, kerr)
					continue
				}
			}
			err = errors.Join(err, f.Remove(project.Name(), id))
		}
	}
	return err
}

// Measure returns what a volume takes on the disk.
func (f Folders) Measure(project, id string) (Taken, error) {
	return Measure(filepath.Join(f.Dir, Path(project, id)))
}

// Bounds of what a volume has besides bytes. Counting it is work for the server.
const (
	MostEntries = 1_000_000
	deepest     = 200 // folders within each other
	batch       = 1024
)

// Taken is what a volume takes: bytes on the disk, and files, folders and links. TooDeep says that its folders are too many within each other to be counted.
type Taken struct {
	Bytes   int64
	Entries int
	TooDeep bool
}

// Above says whether that is more than a volume may have, of which bytes has a bound where most is above 0.
func (t Taken) Above(most int64) bool {
	return t.TooDeep || t.Entries > MostEntries || most > 0 && t.Bytes > most
}

// Measure counts a folder. It stops where there is too much in it.
func Measure(folder string) (t Taken, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return t, err
	}
	defer func() { _ = root.Close() }()
	t.count(root, ".", 0)
	return t, nil
}

// count adds what a folder has. What vanishes meanwhile does not count.
func (t *Taken) count(root *os.Root, dir string, depth int) {
	if depth > deepest {
		t.TooDeep = true
		return
	}
	f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	for !t.TooDeep && t.Entries <= MostEntries {
		entries, err := f.ReadDir(batch)
		for _, e := range entries {
			t.Entries++
			name := path.Join(dir, e.Name())
			info, err := root.Lstat(name)
			if err != nil {
				continue
			}
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				t.Bytes += st.Blocks * 512 / max(int64(st.Nlink), 1) // of a folder, a little less than it takes
			}
			if info.IsDir() {
				t.count(root, name, depth+1)
			}
		}
		if err != nil || len(entries) == 0 {
			return
		}
	}
}
