package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/core/durable"
	"cove/internal/core/problem"
	"cove/internal/core/seal"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/server/store"
)

// What is encrypted has its data keys beside it: the database in a table, the sessions and stored files of this machine in a file of the server's folder. The operator's key wraps both.

// ringFile is the file with the data keys of sessions and stored files.
func ringFile(c config.Config) string { return filepath.Join(c.Folders.Server, "encryption.json") }

// diskPlace is what those are called in problems of keys.
func diskPlace(c config.Config) string { return "the folder " + c.Folders.Server }

// diskSealer returns what sessions and stored files are sealed with; nil: they are not. Data keys are made where there are none and nothing is there yet. Problems:
// encryption_key_missing, encryption_unfinished, encryption_ring_damaged.
func diskSealer(c config.Config) (*seal.Sealer, error) {
	keys, err := seal.ParseKeys(c.Encryption.Key)
	if err != nil {
		return nil, err
	}
	ring, there, err := readRing(c)
	switch {
	case err != nil:
		return nil, err
	case there:
	case len(keys) == 0:
		return nil, nil
	case anyPlain(c):
		return nil, store.Unencrypted(diskPlace(c))
	default:
		if ring, err = foundRing(c, seal.NewRing(keys)); err != nil {
			return nil, err
		}
	}
	sealer, err := ring.Open(keys, diskPlace(c))
	if err == nil && ring.Unfinished {
		err = store.Unencrypted(diskPlace(c))
	}
	if err != nil {
		return nil, err
	}
	return sealer, nil
}

func readRing(c config.Config) (ring seal.Ring, there bool, err error) {
	text, err := os.ReadFile(ringFile(c))
	if errors.Is(err, fs.ErrNotExist) {
		return ring, false, nil
	}
	if err == nil {
		ring, err = seal.ParseRing(text, diskPlace(c))
	}
	return ring, true, err
}

// foundRing puts data keys in place, unless another caller has been faster, and returns those that hold. Callers may be of one process, and of processes with one
// number in containers that share the folder.
func foundRing(c config.Config, ring seal.Ring) (seal.Ring, error) {
	if err := os.MkdirAll(c.Folders.Server, 0o700); err != nil {
		return ring, unwritableFolder(c.Folders.Server, err)
	}
	part := ringFile(c) + "." + rand.Text()
	if err := durable.Replace(part, 0o600, bytes.NewReader(ring.Text())); err != nil {
		return ring, unwritableFolder(c.Folders.Server, err)
	}
	defer func() { _ = os.Remove(part) }()
	if err := os.Link(part, ringFile(c)); err != nil && !errors.Is(err, fs.ErrExist) {
		return ring, unwritableFolder(c.Folders.Server, err)
	}
	if err := durable.SyncFolder(c.Folders.Server); err != nil {
		return ring, unwritableFolder(c.Folders.Server, err)
	}
	held, _, err := readRing(c)
	return held, err
}

func writeRing(c config.Config, ring seal.Ring) error {
	if err := durable.Replace(ringFile(c), 0o600, bytes.NewReader(ring.Text())); err != nil {
		return unwritableFolder(c.Folders.Server, err)
	}
	return nil
}

// serverFiles is the folder of the server's stored files.
func serverFiles(c config.Config) string { return filepath.Join(c.Folders.Server, "files") }

// anyPlain says whether there are sessions or stored files.
func anyPlain(c config.Config) bool {
	for _, s := range sessionStores(c) {
		if s.Any() {
			return true
		}
	}
	entries, _ := os.ReadDir(serverFiles(c))
	return len(entries) > 0
}

// usualMemory is a folder in memory that Linux has.
const usualMemory = "/dev/shm"

// sealingOf returns how the gvisor engine seals checkpoints.
func sealingOf(c config.Config) (gvisor.Sealing, error) {
	sealer, err := diskSealer(c)
	if err != nil || sealer == nil {
		return gvisor.Sealing{}, err
	}
	if c.Encryption.Memory != "" {
		return gvisor.Sealing{Sealer: sealer, Memory: c.Encryption.Memory}, nil
	}
	var about unix.Statfs_t
	if err := unix.Statfs(usualMemory, &about); err != nil || about.Type != unix.TMPFS_MAGIC && about.Type != unix.RAMFS_MAGIC {
		return gvisor.Sealing{}, problem.New(problem.TempUnusable, usualMemory+" is not in memory").WithCause(err).
			WithHint("name a folder in memory with COVE_ENCRYPTION_MEMORY, through which encrypted sessions are saved and restored")
	}
	return gvisor.Sealing{Sealer: sealer, Memory: usualMemory}, nil
}

// encryption is what `cove encryption` does.
type encryption struct{ c config.Config }

var _ cli.Encryption = encryption{}

func newEncryption(c config.Config) cli.Encryption { return encryption{c} }

func (e encryption) options() (store.Options, error) {
	keys, err := seal.ParseKeys(e.c.Encryption.Key)
	if err == nil && len(keys) == 0 {
		err = problem.New(problem.EncryptionKeyMissing, "no encryption key is set").
			WithHint("`cove encryption key new FILE` makes one; set COVE_ENCRYPTION_KEY_FILE (encryption.key_file) to its file")
	}
	return store.Options{Database: e.c.DatabaseAddress(), Keys: keys}, err
}

// Status implements cli.Encryption.
func (e encryption) Status(ctx context.Context) (out cli.EncryptionStatus, err error) {
	keys, err := seal.ParseKeys(e.c.Encryption.Key)
	if err != nil {
		return out, err
	}
	for _, k := range keys {
		out.Set = append(out.Set, k.ID)
	}
	place := func(name string, ring seal.Ring, on bool) {
		p := cli.EncryptedPlace{Name: name, Encrypted: on && !ring.Unfinished, Unfinished: on && ring.Unfinished}
		for _, w := range ring.Keys {
			p.Keys = append(p.Keys, cli.DataKey{Number: w.Number, Made: w.Made, Under: w.Under})
		}
		out.Places = append(out.Places, p)
	}
	ring, on, err := store.Encryption(ctx, store.Options{Database: e.c.DatabaseAddress()})
	if err != nil {
		return out, err
	}
	place("database", ring, on)
	ring, on, err = readRing(e.c)
	if err != nil {
		return out, err
	}
	place("sessions and stored files", ring, on)
	return out, nil
}

// On implements cli.Encryption.
func (e encryption) On(ctx context.Context, told func(what string, done, all int64)) error {
	o, err := e.options()
	if err != nil {
		return err
	}
	lock, err := lockServer(e.c.Folders.Server)
	if err != nil {
		return err
	}
	defer lock.release()
	if err := store.Encrypt(ctx, o, told); err != nil {
		return err
	}
	return e.encryptDisk(ctx, o.Keys, told)
}

func (e encryption) encryptDisk(ctx context.Context, keys seal.Keys, told func(what string, done, all int64)) error {
	begun := seal.NewRing(keys)
	begun.Unfinished = true
	ring, err := foundRing(e.c, begun)
	if err != nil {
		return err
	}
	sealer, err := ring.Open(keys, diskPlace(e.c))
	if err != nil || !ring.Unfinished {
		return err
	}
	if err := encryptFiles(ctx, serverFiles(e.c), sealer, told); err != nil {
		return err
	}
	for _, s := range sessionStores(e.c) {
		err := s.Encrypt(ctx, gvisor.StateFiles(), sealer, func(done, all int) { told("sessions in "+s.Dir, int64(done), int64(all)) })
		if err != nil {
			return err
		}
	}
	ring.Unfinished = false
	return writeRing(e.c, ring)
}

// encryptFiles seals the contents of stored files. What was being received is sent again by its sender.
func encryptFiles(ctx context.Context, folder string, sealer *seal.Sealer, told func(what string, done, all int64)) error {
	var paths []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || entry.IsDir():
			return err
		case strings.HasPrefix(entry.Name(), "."):
			return os.Remove(path)
		}
		paths = append(paths, path)
		return nil
	})
	for i, path := range paths {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = sealer.SealFile(path)
		}
		if err != nil {
			return fmt.Errorf("encrypt the stored files: %w", err)
		}
		told("stored files", int64(i+1), int64(len(paths)))
	}
	return err
}

// Rotate implements cli.Encryption. Both places change at once or not at all; what a kill leaves in between can be read with both keys, and the next rotation ends it.
func (e encryption) Rotate(ctx context.Context, fresh bool) (changed bool, err error) {
	o, err := e.options()
	if err != nil {
		return false, err
	}
	if changed, err = store.Rewrap(ctx, o, fresh); err != nil {
		return false, err
	}
	unlock, err := lockRing(ctx, e.c)
	if err != nil {
		return changed, err
	}
	defer unlock()
	ring, there, err := readRing(e.c)
	if err != nil || !there {
		return changed, err
	}
	ring, also, err := ring.Rewrap(o.Keys, diskPlace(e.c))
	if err != nil {
		return changed, err
	}
	if fresh {
		ring.Add(o.Keys)
		also = true
	}
	if also {
		err = writeRing(e.c, ring)
	}
	return changed || also, err
}

// lockRing keeps two rotations apart.
func lockRing(ctx context.Context, c config.Config) (unlock func(), err error) {
	f, err := os.Open(c.Folders.Server)
	if err != nil {
		return nil, unwritableFolder(c.Folders.Server, err)
	}
	for unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return func() { _ = f.Close() }, nil
}
