// Package store is all SQL of the server: accounts, sessions, executions with their events, conversations, files, usage, the audit log
// and the index for searching, on SQLite or PostgreSQL. The SQL text is the same for both; where they differ in more than opening, the
// file that needs it asks for the dialect.
//
// What a method wrote is on the disk when it returns. A function that a caller passes in to change a record runs inside the
// transaction, perhaps twice, and must not use the store.
package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/seal"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

var (
	_ hub.Store    = (*Store)(nil)
	_ hub.Retainer = (*Store)(nil)
	_ auth.Store   = (*Store)(nil)
	_ audit.Log    = (*Store)(nil)
)

// Options say which database to use.
type Options struct {
	// Database is the path of an SQLite file, which is made when it is not there, or the address of a PostgreSQL database
	// (postgres://user@host/name).
	Database string
	// Memory opens an SQLite database in memory instead, which nobody else sees and which Close ends. Nothing of it is ever on a disk.
	Memory bool
	Log    *slog.Logger // nil: none
	// Keys are the operator's. With one, a new database is encrypted, and an encrypted one can be opened.
	Keys seal.Keys
}

// Store is a database. It is safe for concurrent use.
type Store struct {
	base      base
	dialect   dialect
	searching time.Duration // longestSearch, but in tests
	sealer    *seal.Sealer  // what content is sealed with; nil: it is not
	owner     string        // that writes; "" where nobody in particular does. See By
}

// dialect is what differs in the SQL of the two databases.
type dialect struct {
	forUpdate string // ends a SELECT of a row that will be written
	// forKeyShare ends a SELECT of a row that must not be deleted before the transaction has ended. It may be changed.
	forKeyShare string
	clock       string // the database's time in microseconds since 1970
	alone       string // begins a transaction that only one process at a time may be in; "": any write is one
}

// queryer is a connection or a transaction.
type queryer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// base runs transactions on one kind of database. Its errors are those of this package; see explain.
type base interface {
	// read has do read; what it sees does not change meanwhile when it is one statement.
	read(ctx context.Context, do func(context.Context, queryer) error) error
	// snapshot has do read a state of the database that does not change, for as long as it takes.
	snapshot(ctx context.Context, do func(context.Context, queryer) error) error
	// write has do write in a transaction that is on the disk when write returns nil, and has not happened when do failed. do may run more than once.
	write(ctx context.Context, do func(context.Context, queryer) error) error
	// restore is a write that takes as long as it takes.
	restore(ctx context.Context, do func(context.Context, queryer) error) error
	close() error
}

// within is a transaction that runs.
type within struct{ q queryer }

func (w within) read(ctx context.Context, do func(context.Context, queryer) error) error {
	return explain(do(ctx, w.q))
}

func (w within) snapshot(ctx context.Context, do func(context.Context, queryer) error) error {
	return w.read(ctx, do)
}

func (w within) write(ctx context.Context, do func(context.Context, queryer) error) error {
	return w.read(ctx, do)
}

func (w within) restore(ctx context.Context, do func(context.Context, queryer) error) error {
	return w.read(ctx, do)
}

func (w within) close() error { return nil }

// Open opens the database, making or migrating it. Several processes may have it open at once. Problems: database_newer when a newer cove
// migrated it, database_corrupt, database_unavailable, encryption_key_missing, encryption_unfinished when it has what was written without a key.
func Open(ctx context.Context, o Options) (*Store, error) {
	s, err := openLocked(ctx, o)
	if err == nil {
		err = s.unlock(ctx, o.Keys)
	}
	if err != nil && s != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, err
}

// openLocked opens a database whose content is as it is kept.
func openLocked(ctx context.Context, o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Memory:
		return openMemory(ctx, o)
	case o.Database == "":
		return nil, problem.New(problem.DatabaseUnnamed, "no database is named").WithHint("name a file, or postgres://user@host/name")
	case strings.HasPrefix(o.Database, "postgres://"), strings.HasPrefix(o.Database, "postgresql://"):
		return openPostgres(ctx, o)
	}
	return openSQLite(ctx, o)
}

// Close ends what the store holds. Writes that wait are refused.
func (s *Store) Close() error { return s.base.close() }

// Ping says whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.base.read(ctx, func(ctx context.Context, q queryer) error {
		var n int
		return q.QueryRowContext(ctx, "SELECT COUNT(*) FROM schema_versions").Scan(&n)
	})
}
