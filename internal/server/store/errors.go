package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"cove/internal/core/problem"
)

// interrupted is what a caller gets who may have given up: what a database says of that is not the context's word.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return explain(err)
}

// explain makes what a database said a problem, where people can do something about it.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*problem.Error](err); ok {
		return err
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return explainSQLite(e)
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return explainPostgres(e)
	}
	if unreachable(err) {
		return unavailable(err)
	}
	return err
}

func unavailable(err error) error {
	return problem.New(problem.DatabaseUnavailable, "the database cannot be reached").
		WithHint("see that it runs at the address that the setting database (COVE_DATABASE) names, and has room; then try again").WithCause(oneLine{err})
}

// oneLine is an error that says what it has to say in a line: the driver tells of every attempt to connect in lines of their own.
type oneLine struct{ error }

func (o oneLine) Unwrap() error { return o.error }

func (o oneLine) Error() string {
	text := o.error.Error()
	if _, attempts, ok := strings.Cut(text, "failed to connect to `"); ok {
		if _, attempts, ok = strings.Cut(attempts, "`:"); ok {
			text = attempts
		}
	}
	plainly := strings.NewReplacer("dial error: ", "", "hostname resolving error: ", "", "timeout: context deadline exceeded", "no answer in time")
	var said []string
	for line := range strings.Lines(text) {
		line = plainly.Replace(strings.TrimSpace(line))
		if line != "" && !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}

func explainSQLite(e *sqlite.Error) error {
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return problem.New(problem.DiskFull, "the disk of the database is full; nothing was written").
			WithHint("make room on the disk of the data folder, then try again").WithCause(e)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return problem.New(problem.DatabaseUnavailable, "another process keeps the database locked").
			WithHint("see what else has the file open, then try again").WithCause(e)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return corrupt(e)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return problem.New(problem.DatabaseUnavailable, "the database file cannot be used").
			WithHint("see that the file and its folder may be written, and that the disk is there and not mounted read-only").WithCause(e)
	case sqlite3.SQLITE_CONSTRAINT:
		if e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY {
			return exists(e)
		}
	}
	return e
}

func corrupt(cause error) *problem.Error {
	return problem.New(problem.DatabaseCorrupt, "the database file is damaged, or is not a database").
		WithHint("move the file and its -wal and -shm aside and restore a backup with: cove restore").WithCause(cause)
}

func exists(cause error) error {
	return problem.New(problem.AlreadyExists, "there is one already").WithCause(cause)
}

func explainPostgres(e *pgconn.PgError) error {
	switch {
	case e.Code == "23505": // unique_violation
		return exists(e)
	case e.Code == "53100": // disk_full
		return problem.New(problem.DiskFull, "the disk of the database is full; nothing was written").
			WithHint("make room on the database's disk, then try again").WithCause(e)
	case e.Code == "57014", e.Code == "55P03": // query_canceled by a timeout, lock_not_available
		return problem.New(problem.DatabaseUnavailable, "the database did not answer in time").WithHint("try again").WithCause(e)
	case e.Code == "25006", strings.HasPrefix(e.Code, "58"): // read_only_sql_transaction: the server became a standby; its disk fails
		return unavailable(e)
	case strings.HasPrefix(e.Code, "28"), e.Code == "3D000", e.Code == "42501":
		return problem.New(problem.DatabaseUnavailable, "the database refuses the server").
			WithHint("see that the address names the right database, user and password").WithCause(e)
	case lostConnection(e), undone(e):
		return unavailable(e)
	}
	return e
}

// lostConnection says whether the server ended the connection or takes none. 25P03: this process stood still in a transaction for too long.
func lostConnection(e *pgconn.PgError) bool {
	return e.Code == "25P03" || strings.HasPrefix(e.Code, "08") || strings.HasPrefix(e.Code, "57P") || strings.HasPrefix(e.Code, "53")
}

// contradicts says whether a database refuses what was written for its content: a row is there twice, or refers to one that is not there.
func contradicts(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(e.Code, "22") || strings.HasPrefix(e.Code, "23"))
}

// undone says whether the server took a transaction back so that another could go on.
func undone(e *pgconn.PgError) bool { return e.Code == "40001" || e.Code == "40P01" }

// unreachable says whether an error is one of the connection, not of what was asked.
func unreachable(err error) bool {
	if err == nil {
		return false
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return lostConnection(e)
	}
	// Connecting has a deadline of its own, which is not the caller's.
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "database is closed")
}
