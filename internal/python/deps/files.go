package deps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

// writeWhole gives a file its text such that nobody ever sees a part of it.
func writeWhole(path string, text []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return unwritable(dir, err)
	}
	f, err := os.CreateTemp(dir, ".tmp-")
	if err != nil {
		return unwritable(dir, err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone after the rename
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return unwritable(dir, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return unwritable(dir, err)
	}
	return nil
}

func unwritable(dir string, err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return problem.New(problem.DiskFull, "there is not enough free disk space at "+dir).
			WithHint("free some space there, or set COVE_HOME to a folder on a larger disk").WithCause(err)
	}
	return problem.New(problem.DataFolderUnusable, "cove cannot write to "+dir).
		WithHint("make it writable, or set COVE_HOME to a folder that is").WithCause(err)
}

// locked waits until nobody else, in this process or another, holds the lock at path. The lock ends with the returned function, and with the process.
func locked(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, unwritable(filepath.Dir(path), err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unwritable(filepath.Dir(path), err)
	}
	wait := time.NewTicker(10 * time.Millisecond)
	defer wait.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, ended(ctx, "resolving packages")
		case <-wait.C:
		}
	}
}

func tooLong(what string) *problem.Error {
	return problem.New(problem.ResolveTimeout, what+" took too long").
		WithHint("try again: what was downloaded is kept; or raise packages.timeout (COVE_PACKAGES_TIMEOUT)")
}

// ended says why a context that is done ended what was going on.
func ended(ctx context.Context, what string) error {
	if p, ok := errors.AsType[*problem.Error](context.Cause(ctx)); ok {
		return p
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return tooLong(what).WithCause(ctx.Err())
	}
	return problem.New(problem.GivenUp, what+" was cancelled").WithHint("no incomplete files were kept").WithCause(ctx.Err())
}
