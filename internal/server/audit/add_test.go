package audit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/audit"
)

// away is a log that does not answer some times, and refuses then if it is told to.
type away struct {
	times   int
	refuses error
	tries   []string // the ids that it was told
}

func (a *away) AddRow(ctx context.Context, r audit.Row) error {
	a.tries = append(a.tries, r.ID)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case a.times > 0:
		a.times--
		return problem.New(problem.DatabaseUnavailable, "the database is away")
	}
	return a.refuses
}

func (a *away) Rows(context.Context, audit.Query) ([]audit.Row, error) { return nil, nil }

func TestARowIsTriedAgainWhileTheLogIsAway(t *testing.T) {
	t.Parallel()
	refused := errors.New("the row is refused")
	for name, c := range map[string]struct {
		log   away
		tries int // 0: as many as there is time for
		code  string
	}{
		"it answers":    {away{}, 1, ""},
		"it comes back": {away{times: 3}, 4, ""},
		"it refuses":    {away{times: 1, refuses: refused}, 2, "internal"},
		"it stays away": {away{times: 1 << 30}, 0, "database_unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gone, cancel := context.WithCancel(t.Context())
				cancel()
				began := time.Now()
				err := audit.Add(gone, &c.log, audit.Row{ID: "aud_1"})
				if p := problem.Of(err); p == nil && c.code != "" || p != nil && p.Code != c.code {
					t.Errorf("got %v", err)
				}
				if n := len(c.log.tries); c.tries > 0 && n != c.tries || n < 1 {
					t.Errorf("it was tried %d times", n)
				}
				for _, id := range c.log.tries {
					if id != "aud_1" {
						t.Errorf("another row %s was tried", id)
					}
				}
				if took := time.Since(began); took > 11*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
