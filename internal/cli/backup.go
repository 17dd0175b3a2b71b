package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"cove/internal/ident"
	"cove/internal/problem"
)

type backupCmd struct {
	configFlag
	File string `arg:"" help:"The archive to write (.tar.gz), which must not exist; - is standard output."`
}

// Help is the long help.
func (backupCmd) Help() string {
	return `History, keys, users, sessions' records and stored files; also while a server runs. The sandboxes' own state (variables and
workspaces of paused sessions) is not in it: restored sessions are reported as lost.

Examples:

    cove backup cove-2026-11-21.tar.gz
    cove backup - | ssh elsewhere 'cat > cove.tar.gz'`
}

func (c *backupCmd) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.onRecords(ctx, c.configFlag, func(r *Records) error {
		if c.File == "-" {
			if _, tty := terminal(p.Out); tty {
				return problem.New(problem.Usage, "an archive cannot be written to a terminal").WithHint("give a file, or pipe it somewhere")
			}
			return r.Backup(ctx, p.Out)
		}
		if _, err := os.Lstat(c.File); err == nil {
			return problem.New(problem.FileExists, c.File+" exists already").WithHint("give another name")
		}
		size, err := writeWhole(c.File, 0o600, func(w io.Writer) error { return r.Backup(ctx, w) })
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Out, "%s, %s\n", c.File, humanSize(size))
		return err
	})
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
	File string `arg:"" help:"The archive; - is standard input."`
}

// Help is the long help.
func (restoreCmd) Help() string {
	return `The database and the server's folder must be empty, and no server may use them. SQLite and PostgreSQL read each other's backups.

Example:

    COVE_HOME=/srv/cove cove restore cove-2026-11-21.tar.gz`
}

func (c *restoreCmd) run(ctx context.Context, p *Program) (int, error) {
	from := p.In
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return 0, unreadable(c.File, err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	cfg, err := c.settings(p)
	if err == nil {
		err = cfg.Validate()
	}
	if err == nil {
		err = p.Restore(ctx, cfg, from)
	}
	if err != nil {
		return 0, err
	}
	_, err = fmt.Fprintln(p.Out, "the backup is restored")
	return 0, err
}
