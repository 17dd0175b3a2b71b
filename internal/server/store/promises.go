package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cove/internal/server/hub"
)

var _ hub.Rememberer = (*Store)(nil)

// Remember implements hub.Rememberer.
func (s *Store) Remember(ctx context.Context, project, word, request, id string, until time.Time) (thatPrint, thatID string, err error) {
	err = s.base.write(ctx, func(ctx context.Context, q queryer) error {
		// One that has passed is replaced; of two that come at once the first one stays.
		_, err := q.ExecContext(ctx, `INSERT INTO promises (project, word, print, thing, until) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (project, word) DO UPDATE SET print = EXCLUDED.print, thing = EXCLUDED.thing, until = EXCLUDED.until WHERE promises.until <= $6`,
			project, clean(word), request, id, micros(until), micros(time.Now()))
		if err != nil {
			return err
		}
		thatPrint, thatID, err = promised(ctx, q, project, word)
		return err
	})
	return thatPrint, thatID, err
}

// Remembered implements hub.Rememberer.
func (s *Store) Remembered(ctx context.Context, project, word string) (request, id string, err error) {
	err = s.base.read(ctx, func(ctx context.Context, q queryer) (err error) {
		request, id, err = promised(ctx, q, project, word)
		return err
	})
	return request, id, err
}

// promised reads what a word stands for that has not passed.
func promised(ctx context.Context, q queryer, project, word string) (request, thing string, err error) {
	err = q.QueryRowContext(ctx, "SELECT print, thing FROM promises WHERE project = $1 AND word = $2 AND until > $3", project, clean(word), micros(time.Now())).
		Scan(&request, &thing)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return request, thing, err
}

// forgetPromises deletes those that have passed.
func (s *Store) forgetPromises(ctx context.Context) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		_, err := q.ExecContext(ctx, "DELETE FROM promises WHERE until <= $1", micros(time.Now()))
		return err
	})
}
