package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"cove/internal/core/problem"
)

const (
	connectTime   = 5 * time.Second
	statementTime = 10 * time.Second
	lockTime      = 5 * time.Second
	// operationTime bounds a read or a write with all its attempts, also where packets vanish.
	operationTime = 20 * time.Second
	attempts      = 3
	// repeatTime is how long something may have taken that is repeated: what fails at once may work the next time, as when the database was started anew.
	repeatTime  = 2 * time.Second
	connections = 20
)

// server is a PostgreSQL database.
type server struct {
	db       *sql.DB
	patience time.Duration // operationTime, but in tests
}

func openPostgres(ctx context.Context, o Options) (*Store, error) {
	config, err := pgx.ParseConfig(o.Database)
	if err != nil {
		// The parser's own words may repeat the password.
		return nil, problem.New(problem.BadDatabase, "the address of the database cannot be read").
			WithHint("write it as postgres://user:password@host:5432/name")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTime
	}
	unhurried := *config.Copy()
	for name, limit := range map[string]time.Duration{
		"statement_timeout": statementTime, "lock_timeout": lockTime, "idle_in_transaction_session_timeout": 2 * statementTime,
	} {
		if config.RuntimeParams[name] == "" {
			config.RuntimeParams[name] = strconv.FormatInt(limit.Milliseconds(), 10)
		}
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "cove"
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(5 * time.Minute)
	db.SetConnMaxLifetime(time.Hour) // the address may come to mean another server
	s := &server{db: db, patience: operationTime}
	if err := s.prepare(ctx, o.Log, unhurried); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open the database: %w", explain(err))
	}
	return &Store{base: timed{s}, searching: longestSearch, dialect: dialect{
		forUpdate: " FOR UPDATE", forKeyShare: " FOR KEY SHARE", clock: "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
		alone: "SELECT pg_advisory_xact_lock(" + strconv.Itoa(accountsLock) + ")",
	}}, nil
}

// The numbers that servers of one database lock; any others would do.
const (
	migrationLock = 7_301_204_886
	accountsLock  = 7_301_204_887
)

// prepare migrates over connections of its own, which no timeout ends. One server at a time does so.
func (s *server) prepare(ctx context.Context, log *slog.Logger, unhurried pgx.ConnConfig) error {
	var encoding string
	err := s.read(ctx, func(ctx context.Context, q queryer) error {
		return q.QueryRowContext(ctx, "SHOW server_encoding").Scan(&encoding)
	})
	if err != nil {
		return err
	}
	if encoding != "UTF8" {
		return problem.New(problem.BadDatabase, "the database's encoding is "+encoding+", not UTF8").
			WithHint("make a database with: createdb --encoding UTF8 --template template0 NAME")
	}
	db := stdlib.OpenDB(unhurried)
	defer func() { _ = db.Close() }()
	holder, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = holder.Close() }() // the lock ends with its connection
	if _, err := holder.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(migrationLock)); err != nil {
		return err
	}
	return migrate(ctx, log, db, goose.DialectPostgres)
}

// bounded gives an operation its time, and says afterwards whether it was the database that took too long or the caller who gave up.
func (s *server) bounded(ctx context.Context, do func(context.Context) error) error {
	short, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	err := do(short)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		return problem.New(problem.DatabaseUnavailable, "the database did not answer in time").WithHint("try again").WithCause(oneLine{err})
	}
	return interrupted(ctx, err)
}

func (s *server) read(ctx context.Context, do func(context.Context, queryer) error) error {
	return s.bounded(ctx, func(ctx context.Context) error {
		return repeat(ctx, func() (bool, error) {
			err := do(ctx, s.db)
			return unreachable(err), err
		})
	})
}

func (s *server) snapshot(ctx context.Context, do func(context.Context, queryer) error) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return explain(err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := takeTime(ctx, tx); err != nil {
		return explain(err)
	}
	return explain(do(ctx, tx))
}

// takeTime has a transaction take as long as it takes.
func takeTime(ctx context.Context, q queryer) error {
	for _, limit := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
		if _, err := q.ExecContext(ctx, "SET LOCAL "+limit+" = 0"); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) write(ctx context.Context, do func(context.Context, queryer) error) error {
	return s.bounded(ctx, func(ctx context.Context) error {
		return repeat(ctx, func() (bool, error) { return s.transaction(ctx, do) })
	})
}

// transaction runs a transaction and says whether it certainly did not commit for a reason that may not hold the next time.
func (s *server) transaction(ctx context.Context, do func(context.Context, queryer) error) (again bool, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return unreachable(err), err
	}
	defer func() { _ = tx.Rollback() }()
	if err := do(ctx, tx); err != nil {
		return unreachable(err) || wasUndone(err), err
	}
	err = tx.Commit()
	// Whether a commit happened whose answer never came is not known: doing it again could do it twice.
	return wasUndone(err), err
}

func wasUndone(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && undone(e)
}

// repeat does something until it works, cannot be repeated, or was tried often or long enough.
func repeat(ctx context.Context, do func() (again bool, err error)) error {
	began := time.Now()
	for n := 1; ; n++ {
		again, err := do()
		if err == nil || !again || n == attempts || time.Since(began) > repeatTime {
			return err
		}
		pause := time.Duration(n) * (20*time.Millisecond + rand.N(30*time.Millisecond))
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

func (s *server) restore(ctx context.Context, do func(context.Context, queryer) error) error {
	_, err := s.transaction(ctx, func(ctx context.Context, q queryer) error {
		if err := takeTime(ctx, q); err != nil {
			return err
		}
		return do(ctx, q)
	})
	return explain(err)
}

// compactServer has PostgreSQL forget the rows that were replaced.
func compactServer(ctx context.Context, address string) error {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for _, t := range append(sealedTables(), sealedTable{name: "words"}, sealedTable{name: "session_pairs"}) {
		if _, err := db.ExecContext(ctx, "VACUUM FULL "+t.name); err != nil {
			return explain(err)
		}
	}
	return nil
}

func (s *server) close() error {
	return s.db.Close()
}
