package app

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"cove/internal/auth"
	"cove/internal/cli"
	"cove/internal/config"
	"cove/internal/problem"
	"cove/internal/store"
)

// openStore opens the database that the settings name, and makes an SQLite one that is missing.
func openStore(ctx context.Context, c config.Config, log *slog.Logger) (*store.Store, error) {
	if file := c.SQLite(); file != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, unwritableFolder(filepath.Dir(file), err)
		}
	}
	return store.Open(ctx, store.Options{Database: c.DatabaseAddress(), Log: log})
}

// databaseName is the database without its password.
func databaseName(c config.Config) string {
	if file := c.SQLite(); file != "" {
		return "SQLite, " + file
	}
	u, err := url.Parse(c.Database)
	if err != nil {
		return "PostgreSQL"
	}
	return "PostgreSQL, " + u.Host + u.Path
}

// databasePassword is what of the database's address must not be said, "" when there is none.
func databasePassword(c config.Config) string {
	u, err := url.Parse(c.Database)
	if err != nil || c.SQLite() != "" {
		return ""
	}
	if password, ok := u.User.Password(); ok {
		return password
	}
	return u.Query().Get("password")
}

// openRecords opens the database for a command. The local project and its owner are made with it.
func openRecords(ctx context.Context, c config.Config) (*cli.Records, error) {
	s, err := openStore(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	if err := foundLocal(ctx, s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	accounts := &auth.Accounts{Store: s, Audit: s}
	blobs := filepath.Join(c.ServerFolder, "files")
	return &cli.Records{
		Store: s, Accounts: accounts, Audit: s,
		Backup: func(ctx context.Context, w io.Writer) error { return backup(ctx, s, blobs, w) },
		Close: func() error {
			accounts.Wait()
			return s.Close()
		},
	}, nil
}

// restoreRecords reads a backup into the database and the folder that the settings name, which must have nothing in them.
func restoreRecords(ctx context.Context, c config.Config, r io.Reader) error {
	s, err := openStore(ctx, c, nil)
	if err != nil {
		return err
	}
	return errors.Join(restore(ctx, s, c.ServerFolder, r), s.Close())
}

// foundLocal makes the user and the project of this machine in a new database, and no key: nobody would see it.
func foundLocal(ctx context.Context, s auth.Store) error {
	who, now := auth.Local(), time.Now().UTC()
	if role, err := s.Role(ctx, who.Project, who.User); err != nil || role == auth.Owner {
		return err
	}
	if _, err := s.User(ctx, who.User); problem.Is(err, problem.NotFound) {
		err = s.AddUser(ctx, auth.User{ID: who.User, Name: "local", Admin: true, Created: now})
		if err != nil && problem.Of(err).Code != "user_exists" {
			return err
		}
	}
	if _, err := s.Project(ctx, who.Project); problem.Is(err, problem.NotFound) {
		err = s.AddProject(ctx, auth.Project{ID: who.Project, Name: "local", Created: now})
		if err != nil && problem.Of(err).Code != "project_exists" {
			return err
		}
	}
	return s.SetMember(ctx, auth.Membership{Project: who.Project, User: who.User, Role: auth.Owner})
}

// The parts of an archive, in their order. What is in files/ is named by the hash of its content.
const (
	aboutPart    = "cove-backup.json"
	databasePart = "database"
	filesPart    = "files/"
)

// backupVersion is the form of the archive.
const backupVersion = 1

type aboutBackup struct {
	Version int       `json:"version"`
	Made    time.Time `json:"made"`
}

// backup writes a compressed archive. The database comes first: contents that it names are there, unless they were deleted since.
func backup(ctx context.Context, s *store.Store, blobs string, w io.Writer) error {
	packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(packed)
	about, err := json.Marshal(aboutBackup{backupVersion, time.Now().UTC()})
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: aboutPart, Mode: 0o600, Size: int64(len(about)), ModTime: time.Now()}); err != nil {
		return err
	}
	if _, err := t.Write(about); err != nil {
		return err
	}
	if err := backupDatabase(ctx, s, t); err != nil {
		return err
	}
	if err := backupFiles(ctx, blobs, t); err != nil {
		return err
	}
	return errors.Join(t.Close(), packed.Close())
}

// backupDatabase goes by way of a file, because an archive says how long a part is before the part.
func backupDatabase(ctx context.Context, s *store.Store, t *tar.Writer) error {
	f, err := os.CreateTemp("", "cove-backup-")
	if err != nil {
		return problem.New(problem.Unavailable, "temp_unusable", "there is no room for a temporary file").WithCause(err)
	}
	defer func() { _ = f.Close(); _ = os.Remove(f.Name()) }()
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

// restore reads an archive into an empty database and an empty folder, while no server uses them.
func restore(ctx context.Context, s *store.Store, folder string, r io.Reader) error {
	lock, err := lockServer(folder)
	if err != nil {
		return err
	}
	defer lock.release()
	blobs := filepath.Join(folder, "files")
	if there, err := os.ReadDir(blobs); err == nil && len(there) > 0 {
		return problem.New(problem.Invalid, "not_empty", "there are files in "+blobs+" already").
			WithHint("a backup is restored into an empty folder: COVE_HOME=/new/folder cove restore FILE")
	}
	if err := os.MkdirAll(blobs, 0o700); err != nil {
		return unwritableFolder(blobs, err)
	}
	root, err := os.OpenRoot(blobs)
	if err != nil {
		return unwritableFolder(blobs, err)
	}
	defer func() { _ = root.Close() }()
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return notABackup(err)
	}
	t := tar.NewReader(unpacked)
	if err := readAbout(t); err != nil {
		return err
	}
	for restored := false; ; {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF) && restored:
			return nil
		case err != nil:
			return notABackup(err)
		case h.Name == databasePart && !restored:
			if err := s.Restore(ctx, t); err != nil {
				return err
			}
			restored = true
		default:
			if err := restoreFile(root, h, t); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func readAbout(t *tar.Reader) error {
	h, err := t.Next()
	if err != nil || h.Name != aboutPart {
		return notABackup(err)
	}
	var about aboutBackup
	if err := json.NewDecoder(io.LimitReader(t, 1<<16)).Decode(&about); err != nil {
		return notABackup(err)
	}
	if about.Version != backupVersion {
		return problem.New(problem.Invalid, "backup_newer", fmt.Sprintf("the backup has form %d, and this cove knows %d", about.Version, backupVersion)).
			WithHint("use the cove that made it, or a newer one")
	}
	return nil
}

func notABackup(err error) error {
	p := problem.New(problem.Invalid, "backup_invalid", "this is not a whole backup of cove's")
	if err != nil {
		p = p.WithCause(err)
	}
	return p
}

// restoreFile writes one content. Its name comes from outside: anything but a content's name is refused.
func restoreFile(root *os.Root, h *tar.Header, r io.Reader) error {
	name, ok := strings.CutPrefix(h.Name, filesPart)
	if !ok || h.Typeflag != tar.TypeReg || !contentName(name) {
		return notABackup(fmt.Errorf("it has %q", h.Name))
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
