// Package program holds the guest as a program: the file that is mounted in every sandbox and runs there as PID 1.
//
// It is a small static file of its own, one per processor architecture, compressed and part of cove. It is committed, not built along with cove,
// because a saved sandbox has the guest's pages in it by reference: it can only go on with the very same bytes. So every build of cove, by anybody
// and with any Go, brings the same guest as the one before unless the guest's sources have changed; a test makes sure that the files are what
// these sources give. After a change of them, `make guest` writes the files anew.
//
// On a host, guests are files in a folder of their own, named for their content. Older ones stay there (3 MB each) for the sandboxes that were saved
// with them, whose checkpoints name them.
package program

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

//go:generate go test -run ^TestProgramsAreCurrent$ . -update

const (
	// limit bounds a guest, in bytes.
	limit = 16 << 20
	// birth is the time of every guest, in seconds since 1970: a saved sandbox remembers it of the files that it has open.
	birth = 1_700_000_000

	idBytes  = 16
	prefix   = "cove-guest-"
	noteName = "guest"
)

// ID is the id of the guest that this cove brings along.
func ID() string { return strings.TrimSpace(id) }

// IDOf returns the id of the guest in r: the beginning of its SHA-256, in hexadecimal digits.
func IDOf(r io.Reader) (string, error) {
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(r, limit+1)); err != nil {
		return "", err
	} else if n > limit {
		return "", errors.New("too large for a guest")
	}
	return hex.EncodeToString(h.Sum(nil)[:idBytes]), nil
}

// Install makes sure that the folder dir has the guest of this cove, and returns its path. The file never changes; nothing removes it.
func Install(dir string) (path string, err error) {
	path = filepath.Join(dir, prefix+ID())
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return path, nil
	}
	if err := makeFolder(dir); err != nil {
		return "", fmt.Errorf("install the guest: %w", err)
	}
	// A process that is being started has all files of this one for a moment. Were this file among them, open for writing, the guest could not be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	tmp, err := os.CreateTemp(dir, ".guest-*")
	if err != nil {
		return "", fmt.Errorf("install the guest: %w", err)
	}
	if err = fill(tmp); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return "", fmt.Errorf("install the guest: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	return path, nil
}

// makeFolder makes the folder of guests, which sandboxed code of another user may pass through, whatever the umask is, and cannot list.
func makeFolder(dir string) error {
	const mode = 0o711
	if info, err := os.Stat(dir); err == nil && info.Mode().Perm() == mode {
		return nil
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	return os.Chmod(dir, mode)
}

// fill writes our guest to f, as one that can be run, and closes it.
func fill(f *os.File) error {
	z, err := gzip.NewReader(strings.NewReader(compressed))
	if err != nil {
		return errors.Join(err, f.Close())
	}
	got, err := IDOf(io.TeeReader(z, f))
	if err == nil && got != ID() {
		err = fmt.Errorf("it is not what it was: %s instead of %s", got, ID())
	}
	if err == nil {
		err = f.Chmod(0o755)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	born := time.Unix(birth, 0)
	return os.Chtimes(f.Name(), born, born)
}

// Note writes into the folder of a checkpoint with which guest it was made: the one at path, as Install returned it.
func Note(path, dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, noteName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.TrimPrefix(filepath.Base(path), prefix) + "\n")
	return errors.Join(err, f.Close())
}

// Noted returns the path in the folder guests of the guest with which the checkpoint in dir was made. fs.ErrNotExist means that nothing was noted,
// or that the guest is not there.
func Noted(dir, guests string) (path string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, noteName))
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(text))
	if b, err := hex.DecodeString(id); err != nil || len(b) != idBytes {
		return "", fmt.Errorf("%s names no guest", filepath.Join(dir, noteName))
	}
	path = filepath.Join(guests, prefix+id)
	_, err = os.Stat(path)
	return path, err
}
