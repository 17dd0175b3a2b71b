package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/pressly/goose/v3"
	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // registers the driver

	"cove/internal/core/problem"
)

const (
	// busy is how long a write waits for another process.
	busy = 10 * time.Second
	// readers is how many connections read at once.
	readers = 8
	// checkedSize is up to which size a database is checked whole when it is opened: that reads all of it.
	checkedSize = 16 << 20
)

// file is an SQLite database: one connection writes, some read.
type file struct {
	path    string
	reading *sql.DB
	writing *sql.DB
	writer  *writer
}

func openSQLite(ctx context.Context, o Options) (*Store, error) {
	if err := makeFile(o.Database); err != nil {
		return nil, problem.New(problem.DatabaseUnavailable, "the database file cannot be opened").
			WithHint("see that the folder of " + o.Database + " exists and may be written").WithCause(err)
	}
	f, err := openFile(o.Database)
	if err != nil {
		return nil, err
	}
	if err := f.prepare(ctx, o.Log); err != nil {
		_ = f.reading.Close()
		_ = f.writing.Close()
		return nil, fmt.Errorf("open the database %s: %w", o.Database, explain(err))
	}
	return f.store(), nil
}

func (f *file) store() *Store {
	f.writer = newWriter(f.writing)
	return &Store{base: timed{f}, searching: longestSearch, dialect: dialect{clock: "CAST(unixepoch('subsec') * 1000000 AS INTEGER)"}}
}

// openMemory opens a database of SQLite's VFS for memory, in which connections of one process share what has the same name.
func openMemory(ctx context.Context, o Options) (*Store, error) {
	f, err := openConnections("/"+rand.Text(), url.Values{"vfs": {"memdb"}}, url.Values{})
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, o.Log, f.writing, goose.DialectSQLite3); err != nil {
		_ = f.reading.Close()
		_ = f.writing.Close()
		return nil, fmt.Errorf("open a database in memory: %w", explain(err))
	}
	return f.store(), nil
}

// makeFile makes the file for its owner alone; SQLite gives the files beside it the same rights.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	made, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return made.Close()
}

func openFile(path string) (*file, error) {
	return openConnections(path, url.Values{}, url.Values{"_pragma": {"journal_mode(WAL)", "journal_size_limit(67108864)"}})
}

// openConnections opens a database for reading and for writing. shared are options of both, own those of the connection that writes.
func openConnections(path string, shared, own url.Values) (*file, error) {
	shared["_pragma"] = []string{fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()), "foreign_keys(1)", "synchronous(FULL)", "temp_store(memory)"}
	address := func(more url.Values) string {
		for name, values := range shared {
			more[name] = append(append([]string{}, values...), more[name]...)
		}
		return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: more.Encode()}).String()
	}
	// A write transaction takes the lock when it begins: one that began to read first could not wait for it.
	own["_txlock"], own["_pragma"] = []string{"immediate"}, append(own["_pragma"], "cache_size(-32000)")
	writing, err := sql.Open("sqlite", address(own))
	if err != nil {
		return nil, err
	}
	writing.SetMaxOpenConns(1)
	reading, err := sql.Open("sqlite", address(url.Values{"_pragma": {"query_only(1)", "cache_size(-4000)"}}))
	if err != nil {
		_ = writing.Close()
		return nil, err
	}
	reading.SetMaxOpenConns(readers)
	reading.SetMaxIdleConns(readers)
	return &file{path: path, reading: reading, writing: writing}, nil
}

// prepare checks and migrates. One process at a time does so: the folder is what they lock, because closing a second handle of the file itself
// would drop SQLite's locks.
func (f *file) prepare(ctx context.Context, log *slog.Logger) error {
	unlock, err := lockFolder(ctx, filepath.Dir(f.path))
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.check(ctx); err != nil {
		return err
	}
	return migrate(ctx, log, f.writing, goose.DialectSQLite3)
}

func (f *file) check(ctx context.Context) error {
	var mode string
	if err := f.writing.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the file system cannot hold a write-ahead log (journal mode %s)", mode)
	}
	about, err := os.Stat(f.path)
	if err != nil || about.Size() > checkedSize {
		return err
	}
	var verdict string
	if err := f.writing.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return corrupt(errors.New(verdict))
	}
	return nil
}

func lockFolder(ctx context.Context, folder string) (unlock func(), err error) {
	handle, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(handle.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return func() { _ = handle.Close() }, nil // also where the file system has no locks
		}
		select {
		case <-ctx.Done():
			_ = handle.Close()
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// compactFile has SQLite forget the rows that were replaced. Nobody else may write meanwhile.
func compactFile(ctx context.Context, path string) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	for _, text := range []string{"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if err == nil {
			_, err = f.writing.ExecContext(ctx, text)
		}
	}
	return errors.Join(explain(err), f.reading.Close(), f.writing.Close())
}

func (f *file) read(ctx context.Context, do func(context.Context, queryer) error) error {
	return interrupted(ctx, do(ctx, f.reading))
}

func (f *file) snapshot(ctx context.Context, do func(context.Context, queryer) error) error {
	tx, err := f.reading.BeginTx(ctx, nil)
	if err != nil {
		return explain(err)
	}
	defer func() { _ = tx.Rollback() }()
	return interrupted(ctx, do(ctx, tx))
}

func (f *file) write(ctx context.Context, do func(context.Context, queryer) error) error {
	return explain(f.writer.write(ctx, do))
}

func (f *file) restore(ctx context.Context, do func(context.Context, queryer) error) error {
	return f.write(ctx, do)
}

func (f *file) close() error {
	f.writer.close()
	return errors.Join(f.reading.Close(), f.writing.Close())
}
