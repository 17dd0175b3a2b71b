package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/ident"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/server/archive"
)

type backupCmd struct {
	Make   backupMake   `cmd:"" default:"withargs" help:"Write a backup. This is meant without a word."`
	Ls     backupLs     `cmd:"" help:"List the backups in a folder or a bucket, the newest first."`
	Verify backupVerify `cmd:"" help:"Read a backup and restore it into a temporary folder, for a try."`
}

// Help is the long help.
func (backupCmd) Help() string {
	return `History, keys, users, sessions' records and stored files; also while a server runs. The sandboxes' own state (variables and
workspaces of paused sessions) is not in it: restored sessions are reported as lost.

A bucket is one of Amazon S3, MinIO or another storage that speaks S3. backup.s3_endpoint (COVE_BACKUP_S3_ENDPOINT) says where, and the credentials are
backup.s3_access_key and backup.s3_secret_key, or AWS's variables and files.

A server makes backups by itself where backup.to (COVE_BACKUP_TO) says where, every day unless backup.every says otherwise. Where nothing is given here, that place is meant.

Examples:

    cove backup cove-2026-11-21.tar.gz
    cove backup /mnt/backups/                  # a name with the time
    cove backup s3://bucket/cove
    cove backup ls s3://bucket/cove
    cove backup verify s3://bucket/cove        # the newest
    cove backup - | ssh elsewhere 'cat > cove.tar.gz'`
}

type backupMake struct {
	configFlag
	File string `arg:"" optional:"" help:"The archive to write (.tar.gz), which must not exist; a folder or s3://BUCKET/PREFIX, where it gets a name; - is standard output."`
}

func (c *backupMake) run(ctx context.Context, p *Program) (int, error) {
	cfg, where, err := c.place(p, c.File)
	if err != nil {
		return 0, err
	}
	return 0, p.onRecords(ctx, c.configFlag, func(r *Records) error {
		switch {
		case where == "-":
			if _, tty := terminal.Descriptor(p.Out); tty {
				return problem.New(problem.Usage, "an archive cannot be written to a terminal").WithHint("give a file, or pipe it somewhere")
			}
			return r.Backup(ctx, p.Out)
		case c.File == "" || archive.Is(where):
			return into(ctx, p, r, cfg, where)
		}
		if err := absent(where); err != nil {
			return err
		}
		size, err := writeWhole(where, 0o600, func(w io.Writer) error { return r.Backup(ctx, w) })
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Out, "%s, %s\n", where, humanSize(size))
		return err
	})
}

// place is what a command was given, or where the settings have a server put its backups.
func (c configFlag) place(p *Program, given string) (cfg config.Config, where string, err error) {
	if cfg, err = c.settings(p); err == nil {
		err = cfg.Validate()
	}
	if err == nil && given == "" && cfg.Backup.To == "" {
		err = problem.New(problem.Usage, "no backup and no place of backups is given").WithHint("give a file, a folder or s3://BUCKET/PREFIX, or set backup.to")
	}
	if err != nil {
		return cfg, "", err
	}
	return cfg, cmp.Or(given, cfg.Backup.To), nil
}

// into writes the backup into a folder or a bucket.
func into(ctx context.Context, p *Program, r *Records, cfg config.Config, where string) error {
	place, name, err := archive.At(where, cfg.Backup, p.Getenv)
	if err != nil {
		return err
	}
	if name == "" {
		name = archive.AnyMark().Name(time.Now())
	}
	defer p.live.Over()
	size, err := place.Write(ctx, name, func(w io.Writer) error {
		return r.Backup(ctx, &progressWriter{to: w, tell: func(n int64) { p.live.Progress(lang.Sprintf("backing up: %s", humanSize(n))) }})
	})
	if err != nil {
		return err
	}
	p.live.Over()
	_, err = fmt.Fprintf(p.Out, "%s, %s\n", place.Path(name), humanSize(size))
	return err
}

// progressWriter says after each piece how many bytes were written.
type progressWriter struct {
	to   io.Writer
	n    int64
	tell func(n int64)
}

func (t *progressWriter) Write(b []byte) (int, error) {
	n, err := t.to.Write(b)
	t.n += int64(n)
	t.tell(t.n)
	return n, err
}

type backupLs struct {
	configFlag
	Place string `arg:"" optional:"" help:"The folder, or s3://BUCKET/PREFIX; backup.to where none is given."`
	JSON  bool   `name:"json" help:"Print one JSON object for each backup."`
}

func (c *backupLs) run(ctx context.Context, p *Program) (int, error) {
	cfg, where, err := c.place(p, c.Place)
	if err != nil {
		return 0, err
	}
	place, _, err := archive.At(where, cfg.Backup, p.Getenv)
	if err != nil {
		return 0, err
	}
	all, err := place.List(ctx)
	if err != nil {
		return 0, err
	}
	if len(all) == 0 && !c.JSON {
		_, err := lang.Fprintf(p.Err, "there are no backups in %s\n", place.Path(""))
		return 0, err
	}
	for _, e := range all {
		if c.JSON {
			err = json.NewEncoder(p.Out).Encode(e)
		} else {
			_, err = fmt.Fprintf(p.Out, "%s  %10s  %s\n", e.Made.Local().Format("2006-01-02 15:04"), humanSize(e.Size), place.Path(e.Name))
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, nil
}

type backupVerify struct {
	configFlag
	File string `arg:"" optional:"" help:"The archive: a file, or s3://BUCKET/PREFIX/NAME.tar.gz; of a folder or s3://BUCKET/PREFIX the newest one; - is standard input; backup.to where none is given."`
	JSON bool   `name:"json" help:"Print one JSON object."`
}

// Help is the long help.
func (backupVerify) Help() string {
	return `Everything is read and compared with its sums, and the database is restored. The temporary folder (TMPDIR) needs room for the database and the largest stored
file. A backup of encrypted files needs their key (encryption.key), as restoring it does.`
}

// Verified is what a backup has that was restored for a try.
type Verified struct {
	Made      time.Time `json:"made"`
	Files     int       `json:"files"`     // stored files that are in it
	Bytes     int64     `json:"bytes"`     // of these
	Elsewhere int       `json:"elsewhere"` // stored files that its records name and that are not in it
}

func (c *backupVerify) run(ctx context.Context, p *Program) (int, error) {
	cfg, where, err := c.place(p, c.File)
	if err != nil {
		return 0, err
	}
	from, done, named, err := p.archived(ctx, cfg, where)
	if err != nil {
		return 0, err
	}
	defer done()
	defer p.live.Over()
	read := int64(0)
	found, err := p.Verify(ctx, cfg, io.TeeReader(from, &progressWriter{to: io.Discard, tell: func(n int64) {
		read = n
		p.live.Progress(lang.Sprintf("reading the backup: %s", humanSize(n)))
	}}))
	if err != nil {
		return 0, err
	}
	p.live.Over()
	if c.JSON {
		return 0, json.NewEncoder(p.Out).Encode(struct {
			Backup string `json:"backup"`
			Verified
		}{named, found})
	}
	_, err = lang.Fprintf(p.Out, "%s can be restored: %s, made at %s, with %d stored files of %s\n", named, humanSize(read), found.Made.Local().Format("2006-01-02 15:04:05"), found.Files, humanSize(found.Bytes))
	if err == nil && found.Elsewhere > 0 {
		_, err = lang.Fprintf(p.Out, "%d stored files of its records are not in it: they are on the disks of other servers, or were deleted while it was made\n", found.Elsewhere)
	}
	return 0, err
}

// archived is an archive that a command reads until done is called: a file, standard input for "-", or one in a folder or a bucket, the newest where none is named.
func (p *Program) archived(ctx context.Context, cfg config.Config, where string) (from io.Reader, done func(), named string, err error) {
	if where == "-" || !archive.Is(where) {
		from, done, err = p.source(where)
		return from, done, where, err
	}
	place, name, err := archive.At(where, cfg.Backup, p.Getenv)
	if err == nil && name == "" {
		name, err = archive.Newest(ctx, place)
	}
	if err != nil {
		return nil, nil, "", err
	}
	opened, err := place.Read(ctx, name)
	if err != nil {
		return nil, nil, "", err
	}
	return opened, func() { _ = opened.Close() }, place.Path(name), nil
}

// source is a file that a command reads, or standard input for "-", until done is called.
func (p *Program) source(file string) (from io.Reader, done func(), err error) {
	if file == "-" {
		return p.In, func() {}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, unreadable(file, err)
	}
	return f, func() { _ = f.Close() }, nil
}

// absent refuses to write over what is there.
func absent(file string) error {
	if _, err := os.Lstat(file); err == nil {
		return problem.New(problem.FileExists, file+" exists already").WithHint("give another name")
	}
	return nil
}

// writeWhole puts a file in place whole or not at all, with what the umask leaves of mode. What is there and is no ordinary file, such as a
// device or a pipe, is written into.
func writeWhole(name string, mode os.FileMode, fill func(io.Writer) error) (int64, error) {
	partial, flags := filepath.Join(filepath.Dir(name), ".cove-partial-"+ident.New(ident.Request)), os.O_CREATE|os.O_EXCL|os.O_WRONLY
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		partial, flags = name, os.O_WRONLY
	}
	f, err := os.OpenFile(partial, flags, mode)
	if err != nil {
		return 0, unwritable(name, err)
	}
	counted := &boundedWriter{to: f, left: math.MaxInt64}
	err = fill(counted)
	if err == nil && partial != name {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil && partial != name {
		err = os.Rename(partial, name)
	}
	if err != nil && partial != name {
		_ = os.Remove(partial)
	}
	return counted.written, unwritable(name, err)
}

// unwritable is a failure of the system to write a file, by the name that the user gave it; other errors stay what they are.
func unwritable(name string, err error) error {
	cause := error(nil)
	if broken, ok := errors.AsType[*fs.PathError](err); ok && filepath.Dir(broken.Path) == filepath.Dir(name) {
		cause = broken.Err
	}
	if broken, ok := errors.AsType[*os.LinkError](err); ok {
		cause = broken.Err
	}
	if cause == nil {
		return err
	}
	return problem.New(problem.FileUnwritable, "cannot write "+oneLine(name)).WithCause(cause)
}

type restoreCmd struct {
	configFlag
	File string `arg:"" help:"The archive: a file, or s3://BUCKET/PREFIX/NAME.tar.gz; of a folder or s3://BUCKET/PREFIX the newest one; - is standard input."`
}

// Help is the long help.
func (restoreCmd) Help() string {
	return `The database and the server's folder must be empty, and no server may use them. SQLite and PostgreSQL read each other's backups.

Examples:

    COVE_HOME=/srv/cove cove restore cove-2026-11-21.tar.gz
    COVE_HOME=/srv/cove cove restore s3://bucket/cove    # the newest`
}

func (c *restoreCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.settings(p)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return 0, err
	}
	from, done, named, err := p.archived(ctx, cfg, c.File)
	if err != nil {
		return 0, err
	}
	defer done()
	if err := p.Restore(ctx, cfg, from); err != nil {
		return 0, err
	}
	if named != c.File {
		_, err = lang.Fprintf(p.Out, "the backup %s is restored\n", named)
		return 0, err
	}
	_, err = fmt.Fprintln(p.Out, lang.Text("the backup is restored"))
	return 0, err
}
