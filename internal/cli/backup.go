package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
	i := p.interruptible(ctx)
	defer i.stop()
	return 0, p.onRecords(i.soft, c.configFlag, func(r *Records) error {
		if c.File == "-" {
			if _, tty := terminal(p.Out); tty {
				return problem.New(problem.Invalid, "usage", "an archive is nothing for a terminal").WithHint("give a file, or pipe it somewhere")
			}
			return r.Backup(i.soft, p.Out)
		}
		if _, err := os.Lstat(c.File); err == nil {
			return problem.New(problem.Invalid, "file_exists", c.File+" exists already").WithHint("give another name")
		}
		size, err := writeWhole(c.File, func(w io.Writer) error { return r.Backup(i.soft, w) })
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Out, "%s, %s\n", c.File, humanSize(size))
		return err
	})
}

// writeWhole puts a file in place whole or not at all.
func writeWhole(name string, fill func(io.Writer) error) (int64, error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".cove-partial-")
	if err != nil {
		return 0, problem.New(problem.Invalid, "file_unwritable", "cannot write "+name).WithCause(err)
	}
	err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	size, serr := f.Seek(0, io.SeekCurrent)
	if err = errors.Join(err, serr, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return 0, err
	}
	return size, nil
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
	i := p.interruptible(ctx)
	defer i.stop()
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
		err = p.Restore(i.soft, cfg, from)
	}
	if err != nil {
		return 0, err
	}
	_, err = fmt.Fprintln(p.Out, "the backup is restored")
	return 0, err
}
