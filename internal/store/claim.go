package store

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/problem"
)

const (
	claimPatience = 5 * time.Second
	claimEvery    = 100 * time.Millisecond
)

// Claim takes the database for one server, until Close: what a server finds unfinished at its start it ends, and must not be what another one is about
// to do. A problem with code "database_served" when another has it. A server that was killed a moment ago is waited for.
//
// It is against mistakes. PostgreSQL gives the claim up when the connection breaks, as when it is started anew.
func (s *Store) Claim(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	for {
		mine, err := s.base.claim(ctx)
		if mine || err != nil {
			return explain(err)
		}
		select {
		case <-time.After(claimEvery):
		case <-ctx.Done():
			return problem.New(problem.Unavailable, "database_served", "another cove serve works on this database").
				WithHint("end that one, or give this one a database of its own: COVE_DATABASE")
		}
	}
}

// claim locks a file beside the database, whose own locks are SQLite's.
func (f *file) claim(context.Context) (bool, error) {
	lock, err := os.OpenFile(f.path+"-server", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, lock.Close()
	}
	f.claimed = lock // a file system without locks is no reason not to serve
	return true, nil
}

// claim locks a number on a connection that is kept for that. A server whose machine vanished must not have it for hours.
func (s *server) claim(ctx context.Context) (mine bool, err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		if !mine {
			_ = conn.Close()
		}
	}()
	for _, setting := range []string{"tcp_keepalives_idle = 15", "tcp_keepalives_interval = 5", "tcp_keepalives_count = 3"} {
		if _, err := conn.ExecContext(ctx, "SET "+setting); err != nil {
			return false, err
		}
	}
	if err = conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", int64(serverLock)).Scan(&mine); mine {
		s.claimed = conn
	}
	return mine, err
}

func (w within) claim(context.Context) (bool, error) { return true, nil }
