package layer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// acquire locks the file at path, which is made when missing, and calls waiting once if somebody else has it. Closing the file frees it,
// and so does the end of the process.
func acquire(ctx context.Context, path string, how int, waiting func()) (*os.File, error) {
	pause := time.Millisecond
	for {
		f, err := tryLock(path, how)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
			pause = min(2*pause, 20*time.Millisecond)
		}
	}
}

// tryLock is acquire without waiting; its error is EWOULDBLOCK when somebody else has it, or has just removed it.
func tryLock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f, how); err != nil {
		f.Close()
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Nlink == 0 {
		f.Close()
		return nil, errors.Join(err, unix.EWOULDBLOCK)
	}
	return f, nil
}

func lockFile(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// free gives up a lock at once, also while a process that is being started still has a copy of the descriptor.
func free(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	_ = f.Close()
}

// guard keeps sweeps away until it is closed.
func (s *Store) guard(ctx context.Context) (*os.File, error) {
	return acquire(ctx, filepath.Join(s.dir, "lock"), unix.LOCK_SH, nil)
}

// alone waits until this process alone makes the layer or wheel of that name.
func (s *Store) alone(ctx context.Context, name string, waiting func()) (*os.File, error) {
	return acquire(ctx, s.lockPath(name), unix.LOCK_EX, waiting)
}

func (s *Store) lockPath(name string) string { return filepath.Join(s.dir, "locks", name) }

// workspace is a folder for things that are not whole yet. Its lock tells sweeps that its owner lives.
type workspace struct {
	dir  string
	lock *os.File
}

// workspace makes a folder in work/. No sweep may come between its making and its locking, thus the guard.
func (s *Store) workspace(ctx context.Context) (*workspace, error) {
	guard, err := s.guard(ctx)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	return s.newWorkspace()
}

func (s *Store) newWorkspace() (*workspace, error) {
	dir := filepath.Join(s.dir, "work", strings.ToLower(rand.Text()[:16]))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	if err := lockFile(f, unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(dir))
	}
	return &workspace{dir: dir, lock: f}, nil
}

func (w *workspace) path(name string) string { return filepath.Join(w.dir, name) }

// remove removes the folder with all that is still in it.
func (w *workspace) remove() error {
	err := os.RemoveAll(w.dir)
	return errors.Join(err, w.lock.Close())
}
