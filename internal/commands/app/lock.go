package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"cove/internal/core/config"
	"cove/internal/core/problem"
)

// holder says in the lock file who holds it, for messages alone.
type holder struct {
	PID     int    `json:"pid"`
	Address string `json:"address,omitempty"`
}

// folderLock keeps a second server away from a folder. The system gives it up when the process ends, however that comes about.
type folderLock struct{ file *os.File }

// lockServer takes the server's folder, which is made when it is missing. A problem with code "server_running" says who has it.
func lockServer(dir string) (*folderLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unwritableFolder(dir, err)
	}
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unwritableFolder(dir, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer func() { _ = f.Close() }()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, alreadyServed(dir, f)
	}
	l := &folderLock{f}
	l.sign("")
	return l, nil
}

func alreadyServed(dir string, f *os.File) error {
	who := "another cove serve"
	var h holder
	if json.NewDecoder(f).Decode(&h) == nil && h.PID > 0 {
		who += fmt.Sprintf(" (process %d", h.PID)
		if h.Address != "" {
			who += ", " + h.Address
		}
		who += ")"
	}
	return problem.New(problem.ServerRunning, who+" uses the folder "+dir).
		WithHint("use that one, or end it; a second server needs a folder of its own: COVE_HOME=... cove serve --listen 127.0.0.1:8701")
}

// served returns the address of the server that holds the folder's lock, "" where none does.
func served(c config.Config) string {
	f, err := os.Open(filepath.Join(c.Folders.Server, "lock"))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	var h holder
	if json.NewDecoder(f).Decode(&h) != nil {
		return ""
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return "" // it was killed
	}
	return h.Address
}

// sign says who holds the lock and where it listens.
func (l *folderLock) sign(address string) {
	text, err := json.Marshal(holder{PID: os.Getpid(), Address: address})
	if err == nil && l.file.Truncate(0) == nil {
		_, _ = l.file.WriteAt(text, 0)
	}
}

func (l *folderLock) release() {
	_ = l.file.Truncate(0)
	_ = l.file.Close()
}

func unwritableFolder(dir string, err error) error {
	what := "cove cannot use the folder " + dir
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		what = "cove may not write to the folder " + dir
	}
	return problem.New(problem.DataFolderUnusable, what).WithCause(err).
		WithHint("make it writable and see that there is room on the disk, or set COVE_HOME to another folder")
}
