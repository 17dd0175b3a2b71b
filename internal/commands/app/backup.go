package app

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/core/seal"
	"cove/internal/server/store"
)

// The parts of an archive, in their order. What is in files/ is named by the hash of its content.
const (
	aboutPart    = "cove-backup.json"
	databasePart = "database"
	keysPart     = "encryption.json" // the data keys of the files, wrapped, where they are sealed
	filesPart    = "files/"
)

// backupVersion is the form of the archive.
const backupVersion = 1

type aboutBackup struct {
	Version int       `json:"version"`
	Made    time.Time `json:"made"`
}

// backup writes a compressed archive. The database comes first: contents that it names are there, unless they were deleted since.
func backup(ctx context.Context, s *store.Store, c config.Config, w io.Writer) error {
	packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(packed)
	about, err := json.Marshal(aboutBackup{backupVersion, time.Now().UTC()})
	if err != nil {
		return err
	}
	if err := writePart(t, aboutPart, about); err != nil {
		return err
	}
	if err := backupDatabase(ctx, s, t); err != nil {
		return err
	}
	if ring, sealed, err := readRing(c); err != nil {
		return err
	} else if sealed {
		if err := writePart(t, keysPart, ring.Text()); err != nil {
			return err
		}
	}
	if err := backupFiles(ctx, serverFiles(c), t); err != nil {
		return err
	}
	return errors.Join(t.Close(), packed.Close())
}

func writePart(t *tar.Writer, name string, text []byte) error {
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: time.Now()}); err != nil {
		return err
	}
	_, err := t.Write(text)
	return err
}

// backupDatabase goes by way of a file, because an archive says how long a part is before the part.
func backupDatabase(ctx context.Context, s *store.Store, t *tar.Writer) error {
	f, err := os.CreateTemp("", "cove-backup-")
	if err != nil {
		return problem.New(problem.TempUnusable, "there is no room for a temporary file").WithCause(err)
	}
	defer func() { _ = f.Close() }()
	_ = os.Remove(f.Name()) // so that a kill leaves nothing of it
	buffered := bufio.NewWriterSize(f, 1<<20)
	if err := s.Backup(ctx, buffered); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: databasePart, Mode: 0o600, Size: size, ModTime: time.Now()}); err != nil {
		return err
	}
	_, err = io.CopyN(t, f, size)
	return err
}

// contentName is what a content's file may be called: its hash, perhaps in folders by the hash's beginning.
func contentName(name string) bool {
	return regexp.MustCompile(`^([0-9a-f]{2}/)*[0-9a-f]{64}$`).MatchString(name)
}

func backupFiles(ctx context.Context, blobs string, t *tar.Writer) error {
	root, err := os.OpenRoot(blobs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unwritableFolder(blobs, err)
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && (!entry.Type().IsRegular() || !contentName(name)) {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		f, err := root.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted since
		}
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: filesPart + name, Mode: 0o600, Size: info.Size(), ModTime: info.ModTime()}); err != nil {
			return err
		}
		_, err = io.CopyN(t, f, info.Size()) // contents never change
		return errors.Join(err, ctx.Err())
	})
}

// restore reads an archive into an empty database and an empty folder, while no server uses them: all of it or nothing.
func restore(ctx context.Context, s *store.Store, c config.Config, r io.Reader) error {
	lock, err := lockServer(c.Folders.Server)
	if err != nil {
		return err
	}
	defer lock.release()
	blobs := serverFiles(c)
	if there, err := os.ReadDir(blobs); err == nil && len(there) > 0 {
		return problem.New(problem.NotEmpty, "there are files in "+blobs+" already").
			WithHint("a backup is restored into an empty folder: COVE_HOME=/new/folder cove restore FILE")
	}
	if err := os.MkdirAll(blobs, 0o700); err != nil {
		return unwritableFolder(blobs, err)
	}
	if err := restoreInto(ctx, s, &unpacking{c: c}, r); err != nil {
		return errors.Join(err, os.RemoveAll(blobs))
	}
	return nil
}

// restoreInto puts the database in place when all files are there: it is the one part that says whether something was restored.
func restoreInto(ctx context.Context, s *store.Store, u *unpacking, r io.Reader) error {
	blobs := serverFiles(u.c)
	root, err := os.OpenRoot(blobs)
	if err != nil {
		return unwritableFolder(blobs, err)
	}
	defer func() { _ = root.Close() }()
	u.root = root
	// Before anything is there, which would have to be encrypted first.
	if u.sealer, err = diskSealer(u.c); err != nil {
		return err
	}
	database, err := root.OpenFile(".restoring", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return unwritableFolder(blobs, err)
	}
	defer func() { _ = database.Close() }()
	if err := u.unpack(ctx, database, r); err != nil {
		return err
	}
	if _, err := database.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := root.Remove(".restoring"); err != nil {
		return unwritableFolder(blobs, err)
	}
	return s.Restore(ctx, database)
}

// unpacking is an archive on its way into the folder of stored files.
type unpacking struct {
	root   *os.Root
	c      config.Config
	sealer *seal.Sealer // what files here are sealed with
	// sealed are the archive's files, with a key that sealer has by then.
	sealed bool
	made   time.Time // when the archive was begun
	// looked has the hashes of the files where they are to be looked at and not kept, and size is how many bytes they have in the archive.
	looked map[string]bool
	size   int64
}

// takeKeys adds the data keys of an archive to those of the data folder, which seal from now on as before.
func (u *unpacking) takeKeys(r io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return notABackup(err)
	}
	const place = "the backup"
	ring, err := seal.ParseRing(text, place)
	if err != nil {
		return err
	}
	keys, err := seal.ParseKeys(u.c.Encryption.Key)
	if err != nil {
		return err
	}
	if _, err := ring.Open(keys, place); err != nil {
		return err
	}
	own, there, err := readRing(u.c)
	if err != nil {
		return err
	}
	if there {
		ring.Keys = append(slices.DeleteFunc(ring.Keys, func(w seal.Wrapped) bool {
			return slices.ContainsFunc(own.Keys, func(o seal.Wrapped) bool { return o.Number == w.Number })
		}), own.Keys...)
	}
	if err := writeRing(u.c, ring); err != nil {
		return err
	}
	u.sealed = true
	u.sealer, err = ring.Open(keys, place)
	return err
}

// unpack writes the files of an archive below root, and its database part to database.
func (u *unpacking) unpack(ctx context.Context, database io.Writer, r io.Reader) error {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return notABackup(err)
	}
	t := tar.NewReader(unpacked)
	if u.made, err = readAbout(t); err != nil {
		return err
	}
	for found := false; ; {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF) && found:
			// What follows the archive's end is read, too: its sum is there.
			if _, err := io.Copy(io.Discard, unpacked); err != nil {
				return notABackup(err)
			}
			return nil
		case err != nil:
			return notABackup(err)
		case h.Name == databasePart && !found:
			err, found = restorePart(u.root.Name(), database, t), true
		case h.Name == keysPart && !u.sealed:
			err = u.takeKeys(t)
		default:
			err = u.restoreFile(h, t)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
}

// restorePart copies a part. Whether it is the archive that cannot be read or the disk that cannot be written is told apart.
func restorePart(folder string, to io.Writer, from io.Reader) error {
	source := &problem.Source{From: from}
	if _, err := io.Copy(to, source); source.Failed != nil {
		return notABackup(source.Failed)
	} else if err != nil {
		return unwritableFolder(folder, err)
	}
	return nil
}

func readAbout(t *tar.Reader) (made time.Time, err error) {
	h, err := t.Next()
	if err != nil || h.Name != aboutPart {
		return made, notABackup(err)
	}
	var about aboutBackup
	if err := json.NewDecoder(io.LimitReader(t, 1<<16)).Decode(&about); err != nil {
		return made, notABackup(err)
	}
	if about.Version != backupVersion {
		return made, problem.New(problem.BackupNewer, fmt.Sprintf("the backup has form %d, and this cove knows %d", about.Version, backupVersion)).
			WithHint("use the cove that made it, or a newer one")
	}
	return about.Made, nil
}

func notABackup(err error) error {
	p := problem.New(problem.BackupInvalid, "this is not a whole backup of cove's; nothing was restored").WithHint("use another one")
	if err != nil {
		p = p.WithCause(err)
	}
	return p
}

func twice(h *tar.Header) error { return notABackup(fmt.Errorf("it has %q twice", h.Name)) }

// restoreFile writes one content. Its name comes from outside: anything but a content's name, which is its hash, is refused.
func (u *unpacking) restoreFile(h *tar.Header, r io.Reader) error {
	name, ok := strings.CutPrefix(h.Name, filesPart)
	if !ok || h.Typeflag != tar.TypeReg || !contentName(name) {
		return notABackup(fmt.Errorf("it has %q", h.Name))
	}
	if err := u.root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return unwritableFolder(u.root.Name(), err)
	}
	if u.looked[filepath.Base(name)] {
		return twice(h)
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return twice(h)
	case err != nil:
		return unwritableFolder(u.root.Name(), err)
	}
	sum, err := u.restoreContent(f, r)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if sum != filepath.Base(name) {
		return notABackup(fmt.Errorf("the content of %q is another", h.Name))
	}
	if u.looked != nil {
		u.looked[sum], u.size = true, u.size+h.Size
		if err := u.root.Remove(name); err != nil {
			return unwritableFolder(u.root.Name(), err)
		}
	}
	return nil
}

// restoreContent writes a content and returns the hash of what it is when it is not sealed.
func (u *unpacking) restoreContent(f *os.File, r io.Reader) (hash string, err error) {
	sum := sha256.New()
	if !u.sealed {
		sealed, err := u.sealer.NewWriter(f)
		if err == nil {
			err = restorePart(u.root.Name(), io.MultiWriter(sealed, sum), r)
		}
		if err == nil {
			err = sealed.Close()
		}
		return hex.EncodeToString(sum.Sum(nil)), err
	}
	if err := restorePart(u.root.Name(), f, r); err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	plain, err := u.sealer.NewReader(f, info.Size(), false)
	if err == nil {
		_, err = io.Copy(sum, plain)
	}
	if err != nil {
		return "", notABackup(err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
