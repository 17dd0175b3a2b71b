package store_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/seal"
	"cove/internal/server/store"
	"cove/internal/server/store/pgtest"
)

// both runs a test on an SQLite and on a PostgreSQL of its own, and on an SQLite in memory.
func both(t *testing.T, run func(t *testing.T, s *store.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		run(t, opened(t, store.Options{Memory: true}))
	})
	t.Run("encrypted", func(t *testing.T) {
		t.Parallel()
		run(t, opened(t, store.Options{Database: databases()["sqlite"](t), Keys: operatorsKeys(t)}))
	})
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, open(t, database(t)))
		})
	}
}

// operatorsKeys is a new key.
func operatorsKeys(t testing.TB) seal.Keys {
	t.Helper()
	keys, err := seal.ParseKeys(seal.NewKey())
	must(t, err)
	return keys
}

func databases() map[string]func(testing.TB) string {
	return map[string]func(testing.TB) string{
		"sqlite":   func(t testing.TB) string { return filepath.Join(t.TempDir(), "data", "cove.db") },
		"postgres": pgtest.Database,
	}
}

func open(t testing.TB, database string) *store.Store {
	t.Helper()
	return opened(t, store.Options{Database: database})
}

func opened(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// at is a time as the store keeps it.
func at(seconds int) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 123_456_000, time.UTC).Add(time.Duration(seconds) * time.Second)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code string) {
	t.Helper()
	if err == nil || problem.Of(err).Code != code {
		t.Fatalf("got %v, want a problem with code %s", err, code)
	}
}
