package ondisk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

const leaseName = "lease"

// Keeping is the command of a process that keeps a session in memory. It holds the lease for moments only, to start and to save.
const Keeping = "cove session keep"

// How long a command waits for a keeper to release the lease, and how often it tries.
const (
	keeperPatience = 30 * time.Second
	keeperPoll     = 2 * time.Millisecond
	signPatience   = time.Second // for a new owner to sign the lease
)

// lease is the right to use a session. It is a lock on an open file (F_OFD_SETLK, see fcntl(2)): the kernel releases it when the last process that has the file
// open has ended, and a process can ask whether it is held without acquiring it.
type lease struct {
	dir  string
	file *os.File
}

// lockWhole describes a write lock on a whole file.
func lockWhole() *unix.Flock_t {
	return &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
}

// acquire acquires the lease of the session in dir, or returns a problem with code "session_in_use" that names the holder. While a keeper holds the lease,
// acquire waits until ctx ends; a lease that is free is acquired even when ctx has ended.
func acquire(ctx context.Context, dir, name, command string) (*lease, error) {
	var unsigned time.Time // since when a process has held it without having signed it
	poll := time.NewTicker(keeperPoll)
	defer poll.Stop()
	for begun := time.Now(); ; {
		l, err := tryAcquire(dir, name, command)
		if !problem.Has(err, problem.SessionInUse) {
			return l, err
		}
		who, held := owner(dir)
		switch {
		case held && who == nil && unsigned.IsZero():
			unsigned = time.Now()
		case held && who == nil && time.Since(unsigned) > signPatience:
			return nil, err
		case held && who != nil && who.Command != Keeping:
			return nil, err
		case !held || who != nil:
			unsigned = time.Time{}
		}
		if time.Since(begun) > keeperPatience {
			return nil, err
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, problem.Of(err).WithCause(context.Cause(ctx))
		}
	}
}

// tryAcquire is acquire without any waiting.
func tryAcquire(dir, name, command string) (*lease, error) {
	path := filepath.Join(dir, leaseName)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, unknown(name)
		case errors.Is(err, unix.ENOTDIR):
			return nil, broken(name, dir+" is not a folder").WithHint("remove that file")
		case err != nil:
			return nil, unwritable(dir, err)
		}
		if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, lockWhole()); err != nil {
			f.Close()
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
				return nil, inUse(name, dir)
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !isStill(f, path) {
			f.Close() // the session was removed, and perhaps made anew, before the lock was ours
			continue
		}
		l := &lease{dir: dir, file: f}
		l.sign(command)
		return l, nil
	}
}

func isStill(f *os.File, path string) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(ours, there)
}

// sign writes into the file which process holds the lease. Only messages depend on that, so a full disk does not matter.
func (l *lease) sign(command string) {
	text, err := json.Marshal(Owner{PID: os.Getpid(), Command: command, Since: time.Now()})
	if err == nil && l.file.Truncate(0) == nil {
		_, _ = l.file.WriteAt(text, 0)
	}
}

// release releases the lease. Closing the file alone would not, while a process that is just being started has it open.
func (l *lease) release() {
	_ = l.file.Truncate(0) // the next owner holds the lease for a moment before it has signed
	lock := lockWhole()
	lock.Type = unix.F_UNLCK
	_ = unix.FcntlFlock(l.file.Fd(), unix.F_OFD_SETLK, lock)
	l.file.Close()
}

// owner says whether a process holds the lease of the session in dir, and which, as far as that is known.
func owner(dir string) (who *Owner, held bool) {
	f, err := os.Open(filepath.Join(dir, leaseName))
	if err != nil {
		return nil, false
	}
	defer f.Close()
	lock := lockWhole()
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, lock); err != nil || lock.Type == unix.F_UNLCK {
		return nil, false
	}
	var o Owner
	if json.NewDecoder(f).Decode(&o) != nil {
		return nil, true
	}
	return &o, true
}

func inUse(name, dir string) error {
	by := "another process"
	who, _ := owner(dir)
	if who != nil {
		by = who.String()
	}
	return problem.New(problem.SessionInUse, "session "+name+" is in use by "+by).
		WithHint("wait until that command has ended or has paused the session; one command at a time can use a session")
}
