package hub_test

import (
	"context"
	"testing"
	"time"

	"cove/internal/server/auth"
	"cove/internal/server/store"
	"cove/internal/server/store/pgtest"
	"cove/internal/testkit/testneeds"
)

// TestNothingCountsTwice loses the answers of commits of a real PostgreSQL while a server works: what it does again must not count again.
func TestNothingCountsTwice(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	way := pgtest.Over(t, pgtest.Database(t))
	open := func() *store.Store {
		s, err := store.Open(t.Context(), store.Options{Database: way.Address})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	l, who := lifeIn(t, t.TempDir(), open(), nil), someone(auth.LocalProject)
	s := l.session(who)
	const rounds, runs = 5, 2
	deadline := time.Now().Add(3 * time.Minute)
	for round := range rounds {
		for range runs {
			l.run(who, s.ID, "say hello")
		}
		way.LoseEvery(2)
		for before := way.Lost.Load(); way.Lost.Load() < before+4 || l.charged(l.store, who, "") < int64(runs*(round+1)); {
			if time.Now().After(deadline) {
				t.Fatalf("%d answers were lost, and %d executions are charged", way.Lost.Load()-before, l.charged(l.store, who, ""))
			}
			_, _ = l.PauseSession(t.Context(), who, s.ID)
			_, _ = l.ResumeSession(t.Context(), who, s.ID)
		}
		way.LoseEvery(0)
		for l.Ready(t.Context()) != nil { // something is still to be repeated
			time.Sleep(time.Millisecond)
			if time.Now().After(deadline) {
				t.Fatal("the records are not taken")
			}
		}
	}
	if row, err := l.Session(t.Context(), who, s.ID); err != nil || row.Executions != rounds*runs {
		t.Errorf("the session is said to have run %d times: %v", row.Executions, err)
	}
	if err := l.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	next := open()
	defer func() { _ = next.Close() }()
	if row, err := next.Session(t.Context(), who.Project, s.ID); err != nil || row.Executions != rounds*runs {
		t.Errorf("the record of the session says %d: %v", row.Executions, err)
	}
	for _, key := range []string{"", who.Key} {
		if n := l.charged(next, who, key); n != rounds*runs {
			t.Errorf("%d executions are charged to %q", n, key)
		}
	}
}

// charged is how many executions a key, or with "" its project, is charged for.
func (l *life) charged(s *store.Store, who auth.Principal, key string) (n int64) {
	l.t.Helper()
	days, err := s.Usage(l.t.Context(), who.Project, key, "2000-01-01", time.Now().UTC().Format(time.DateOnly))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, d := range days {
		n += d.Executions
	}
	return n
}
