package snapshot

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/durable"
	"cove/internal/machine/sandbox"
)

const (
	tmpPrefix = ".tmp-"
	// tmpGrace is how long a folder counts as being made although no process has locked it yet. Every maker locks its folder sooner.
	tmpGrace = 10 * time.Second
)

// temporary returns the path of a folder beside dir that Sweep recognises as temporary.
func temporary(dir string) string {
	return filepath.Join(filepath.Dir(dir), tmpPrefix+strings.ToLower(rand.Text()[:16]))
}

// Create makes a snapshot in dir, which must not exist: save puts the engine's files into the folder that it is given, or leaves it empty and returns the checkpoint that the
// engine keeps elsewhere. The snapshot appears whole or not at all; the folder above dir is made when needed.
func Create(ctx context.Context, dir string, m Manifest, save func(ctx context.Context, folder string) (sandbox.Checkpoint, error)) (*Snapshot, error) {
	return assemble(ctx, dir, settledLong, func(tmp string) (Manifest, error) {
		image := filepath.Join(tmp, imageName)
		if err := os.Mkdir(image, 0o700); err != nil {
			return m, err
		}
		saved, err := save(ctx, image)
		if err != nil {
			return m, err
		}
		m.Version = version
		m.Elsewhere.Name, m.Elsewhere.Size, _ = saved.Named()
		m.Files, m.Shared, err = survey(ctx, image)
		if err == nil && len(m.Files) == 0 && m.Elsewhere.Name == "" {
			err = errors.New("the engine saved nothing")
		}
		return m, err
	})
}

// assemble has fill prepare a folder and puts it into place at dir. Certain is as for remember.
func assemble(ctx context.Context, dir string, good judge, fill func(tmp string) (Manifest, error)) (*Snapshot, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, fmt.Errorf("make a snapshot: %w", full(err, "a snapshot"))
	}
	if err := Sweep(parent); err != nil {
		return nil, err
	}
	tmp := temporary(dir)
	lock, err := makeLocked(tmp)
	if err != nil {
		return nil, fmt.Errorf("make a snapshot: %w", full(err, "a snapshot"))
	}
	defer lock.Close()
	manifest, err := roomyFile(filepath.Join(tmp, manifestName))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a snapshot: %w", full(err, "a snapshot")), os.RemoveAll(tmp))
	}
	defer manifest.Close()
	m, err := fill(tmp)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = finish(tmp, dir, m, manifest, good)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a snapshot: %w", full(err, "a snapshot")), os.RemoveAll(tmp))
	}
	return &Snapshot{Dir: dir, Manifest: m}, nil
}

// makeLocked makes a folder and holds a lock on it, which tells a sweep in any process that its maker lives.
func makeLocked(dir string) (*os.File, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err == nil {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return f, nil
}

// finish writes the manifest and gives the snapshot its name.
func finish(tmp, dir string, m Manifest, manifest *os.File, good judge) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := writeLast(manifest, append(text, '\n')); err != nil {
		return err
	}
	_ = remember(tmp, m, good) // without it the files are read once more
	if err := syncFolders(filepath.Join(tmp, imageName)); err != nil {
		return err
	}
	if err := durable.SyncFolder(tmp); err != nil {
		return err
	}
	if err := unix.Renameat2(unix.AT_FDCWD, tmp, unix.AT_FDCWD, dir, unix.RENAME_NOREPLACE); err != nil {
		return &os.LinkError{Op: "rename", Old: tmp, New: dir, Err: err}
	}
	return durable.SyncFolder(filepath.Dir(dir))
}

// manifestRoom is the room that is reserved for a manifest, in bytes, twenty times what one of a checkpoint takes.
const manifestRoom = 16 << 10

// roomyFile makes a file that has room on the disk before it is written, where the file system can do that: when a sandbox has ended to be saved, a few missing
// bytes must not make the save fail.
func roomyFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, manifestRoom)
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// writeLast writes a whole file through to the disk and frees the room that was reserved and not needed.
func writeLast(f *os.File, text []byte) error {
	_, err := f.Write(text)
	if err == nil {
		err = f.Truncate(int64(len(text)))
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

func syncFolders(top string) error {
	return filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return durable.SyncFolder(path)
	})
}

// survey writes every file below image through to the disk and lists them, those that are linked from elsewhere apart: they are on the disk, and need not be read.
func survey(ctx context.Context, image string) (files, shared []File, err error) {
	err = filepath.WalkDir(image, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if !e.Type().IsRegular() {
			return fmt.Errorf("%s is not an ordinary file", path)
		}
		name, err := filepath.Rel(image, path)
		if err != nil {
			return err
		}
		f := File{Name: filepath.ToSlash(name)}
		if f.shared() {
			info, err := e.Info()
			if err != nil {
				return err
			}
			if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
				f.Size = info.Size()
				shared = append(shared, f)
				return nil
			}
		}
		if f.Size, f.CRC, err = settle(ctx, path); err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	return files, shared, err
}

// settle writes a file through to the disk while it reads it.
func settle(ctx context.Context, path string) (size int64, crc uint32, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	synced := make(chan error, 1)
	go func() { synced <- f.Sync() }()
	size, crc, err = checksum(ctx, f)
	return size, crc, errors.Join(err, <-synced)
}

func checksum(ctx context.Context, r io.Reader) (size int64, crc uint32, err error) {
	table := crc32.MakeTable(crc32.Castagnoli)
	buf := make([]byte, 1<<20)
	for {
		n, err := r.Read(buf)
		size += int64(n)
		crc = crc32.Update(crc, table, buf[:n])
		if errors.Is(err, io.EOF) {
			return size, crc, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return size, crc, err
		}
	}
}

// Sweep removes from parent the remains of snapshots that a process was making or removing when it died. It never touches those that a living process works on.
func Sweep(parent string) error {
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tmpPrefix) || !e.IsDir() {
			continue
		}
		sweepOne(filepath.Join(parent, e.Name()))
	}
	return nil
}

// sweepOne removes one folder if its maker is dead. A folder that cannot be removed does no harm.
func sweepOne(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || time.Since(info.ModTime()) < tmpGrace {
		return
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		_ = os.RemoveAll(dir)
	}
}
