package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"cove/internal/problem"
)

const (
	codeUnavailable = "database_unavailable"
	codeExists      = "already_exists"
)

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
	return problem.New(problem.Unavailable, codeUnavailable, "the database cannot be reached").
		WithHint("see that the database runs and has room, then try again").WithCause(err)
}

func explainSQLite(e *sqlite.Error) error {
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return problem.New(problem.Unavailable, "disk_full", "the disk of the database is full; nothing was written").
			WithHint("make room on the disk of the data folder, then try again").WithCause(e)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return problem.New(problem.Unavailable, codeUnavailable, "another process keeps the database locked").
			WithHint("see what else has the file open, then try again").WithCause(e)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return corrupt(e)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return unavailable(e)
	case sqlite3.SQLITE_CONSTRAINT:
		if e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY {
			return exists(e)
		}
	}
	return e
}

func corrupt(cause error) *problem.Error {
	return problem.New(problem.Internal, "database_corrupt", "the database file is damaged, or is not a database").
		WithHint("move the file and its -wal and -shm aside and restore a backup with: cove restore").WithCause(cause)
}

func exists(cause error) error {
	return problem.New(problem.Invalid, codeExists, "there is one already").WithCause(cause)
}

func explainPostgres(e *pgconn.PgError) error {
	switch {
	case e.Code == "23505": // unique_violation
		return exists(e)
	case e.Code == "53100": // disk_full
		return problem.New(problem.Unavailable, "disk_full", "the disk of the database is full; nothing was written").
			WithHint("make room on the database's disk, then try again").WithCause(e)
	case e.Code == "57014", e.Code == "55P03": // query_canceled by a timeout, lock_not_available
		return problem.New(problem.Unavailable, codeUnavailable, "the database did not answer in time").WithHint("try again").WithCause(e)
	case e.Code == "25006": // read_only_sql_transaction: the server became a standby
		return unavailable(e)
	case strings.HasPrefix(e.Code, "28"), e.Code == "3D000", e.Code == "42501":
		return problem.New(problem.Unavailable, codeUnavailable, "the database refuses the server").
			WithHint("see that the address names the right database, user and password").WithCause(e)
	case lostConnection(e), undone(e):
		return unavailable(e)
	}
	return e
}

// lostConnection says whether the server ended the connection or takes none.
func lostConnection(e *pgconn.PgError) bool {
	return strings.HasPrefix(e.Code, "08") || strings.HasPrefix(e.Code, "57P") || strings.HasPrefix(e.Code, "53")
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
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "conn closed")
}

// isCode says whether err is a problem with that code.
func isCode(err error, code string) bool {
	e, ok := errors.AsType[*problem.Error](err)
	return ok && e.Code == code
}
