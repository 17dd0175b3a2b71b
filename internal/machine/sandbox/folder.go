package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Folder is an engine's directory for one sandbox. An exclusive lock on a file in it says that the owner lives; the kernel gives the
// lock up when the owner dies, however it dies.
type Folder struct {
	ID   string
	Path string
	lock *os.File
}

const (
	lockName = "owner"
	// unborn marks a folder whose owner has not locked it yet. Only a folder that stays so for long is a dead one's.
	unborn      = ".new-"
	unbornGrace = 10 * time.Second
)

// CreateFolder makes the folder of sandbox id in state and owns it. It appears under its name only when it is locked,
// so that a sweep in another process can never take it for dead.
func CreateFolder(state, id string) (*Folder, error) {
	if !validID(id) {
		return nil, fmt.Errorf("bad sandbox id %q", id)
	}
	born, path := filepath.Join(state, unborn+id), filepath.Join(state, id)
	if err := os.Mkdir(born, 0o700); err != nil {
		return nil, err
	}
	f := &Folder{ID: id, Path: born}
	var err error
	if f.lock, err = lock(born, os.O_CREATE); err == nil {
		err = os.Rename(born, path) // fails when the id is taken: that folder is not empty
	}
	if err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	f.Path = path
	return f, nil
}

func lock(dir string, flags int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// NewID returns an id that no other sandbox has, for Spec.ID.
func NewID(prefix string) string {
	b := make([]byte, 10)
	_, _ = rand.Read(b)
	return prefix + "-" + hex.EncodeToString(b)
}

func validID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) < 0
}

// DeadFolders takes over the folders in state whose owner is gone. The caller removes them.
func DeadFolders(state string) ([]*Folder, error) {
	entries, err := os.ReadDir(state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var dead []*Folder
	for _, e := range entries {
		id, isUnborn := strings.CutPrefix(e.Name(), unborn)
		if !e.IsDir() || !validID(id) {
			continue
		}
		f := &Folder{ID: id, Path: filepath.Join(state, e.Name())}
		if info, err := e.Info(); isUnborn && (err != nil || time.Since(info.ModTime()) < unbornGrace) {
			continue
		}
		f.lock, err = lock(f.Path, 0)
		// Without a lock file it is what a sweep left that was killed itself.
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			dead = append(dead, f)
		}
	}
	return dead, nil
}

// Join returns a path inside the folder.
func (f *Folder) Join(elem ...string) string {
	return filepath.Join(append([]string{f.Path}, elem...)...)
}

// Remove deletes the folder and gives up its lock.
func (f *Folder) Remove() error {
	err := os.RemoveAll(f.Path)
	if f.lock != nil {
		_ = f.lock.Close()
	}
	if err != nil {
		return fmt.Errorf("remove sandbox %s: %w", f.ID, err)
	}
	return nil
}
