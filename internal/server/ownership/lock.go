package ownership

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
)

const (
	homeFile   = "home.id"
	lockFolder = "owners"
)

// HomeOf returns the id of the home in a folder. It is made once; folder is made when it is missing. A copy of the folder is the same home.
func HomeOf(folder string) (string, error) {
	path := filepath.Join(folder, homeFile)
	for range 2 {
		text, err := os.ReadFile(path)
		if id := strings.TrimSpace(string(text)); err == nil && ident.Valid(ident.Home, id) {
			return id, nil
		}
		if err == nil {
			return "", unusable(folder, fmt.Errorf("%s does not hold the id of a home", path))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", unusable(folder, err)
		}
		if err := makeHome(folder, path); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", unusable(folder, err)
		}
	}
	return "", unusable(folder, fmt.Errorf("%s comes and goes", path))
}

// makeHome writes the id whole: of several processes that do so at once one succeeds, and the others get fs.ErrExist.
func makeHome(folder, path string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	born := path + "." + rand.Text()
	f, err := os.OpenFile(born, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(born) }()
	_, err = f.WriteString(ident.New(ident.Home) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(born, path)
}

func unusable(folder string, err error) error {
	return problem.New(problem.DataFolderUnusable, "cove cannot use the folder "+folder).WithCause(err).
		WithHint("make it writable and see that there is room on the disk, or set COVE_HOME to another folder")
}

// lock is a file that is locked for as long as a process lives. It has its name from the moment on when it is locked.
type lock struct {
	path string
	file *os.File
}

func lockPath(folder, id string) string { return filepath.Join(folder, lockFolder, id) }

// newLock returns nil where the file system has no locks: then there is nothing that could prove anything.
func newLock(folder, id string) (*lock, error) {
	l := &lock{path: lockPath(folder, id)}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return nil, unusable(folder, err)
	}
	born := filepath.Join(filepath.Dir(l.path), "."+id)
	var err error
	if l.file, err = os.OpenFile(born, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, unusable(folder, err)
	}
	if err := unix.FcntlFlock(l.file.Fd(), unix.F_OFD_SETLK, whole()); err != nil {
		return nil, errors.Join(l.file.Close(), os.Remove(born))
	}
	if err := os.Rename(born, l.path); err != nil {
		return nil, unusable(folder, errors.Join(err, l.file.Close(), os.Remove(born)))
	}
	return l, nil
}

func whole() *unix.Flock_t { return &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart} }

// release releases the lock of an owner whose record is removed.
func (l *lock) release() {
	if l != nil {
		_ = os.Remove(l.path)
		_ = l.file.Close()
	}
}

// unlocked says whether a lock file is there and its process is gone. It does not take the lock.
func unlocked(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	asked := whole()
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, asked) == nil && asked.Type == unix.F_UNLCK
}

// gone says whether this machine proves that an owner of the home in folder is dead.
func gone(folder string, r Record, me About) bool {
	switch {
	case r.Boot == "" || me.Boot == "":
		return false
	case r.Boot != me.Boot:
		return r.Host == me.Host // the machine was started anew
	}
	return unlocked(lockPath(folder, r.ID))
}

// clean removes the lock files of processes that are gone and have no record.
func clean(folder string, recorded map[string]bool) {
	entries, err := os.ReadDir(filepath.Join(folder, lockFolder))
	if err != nil {
		return
	}
	for _, e := range entries {
		path := lockPath(folder, e.Name())
		if ident.Valid(ident.Owner, e.Name()) && !recorded[e.Name()] && unlocked(path) {
			_ = os.Remove(path) // the next one tries again
		}
	}
}

// self says what this process is.
func self(command string) About {
	host, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return About{Command: command, PID: os.Getpid(), Host: host, Boot: strings.TrimSpace(string(boot))}
}
