package store

import (
	"context"
	"time"
)

// retainAtOnce is how many conversations or executions one transaction deletes: others write in between.
const retainAtOnce = 50

// Retain implements hub.Retainer. What still runs stays. Idempotency keys whose time has passed go without being counted.
func (s *Store) Retain(ctx context.Context, unusedSince, audit time.Time) (deleted int, err error) {
	if err := s.forgetPromises(ctx); err != nil {
		return 0, err
	}
	if !unusedSince.IsZero() {
		before := micros(unusedSince)
		n, err := s.retain(ctx, before, `SELECT id FROM conversations WHERE used < $1
			AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.conversation = conversations.id AND turns.unfinished = 1) ORDER BY used LIMIT 50`, deleteConversation)
		deleted += n
		if err != nil {
			return deleted, err
		}
		n, err = s.retain(ctx, before, "SELECT id FROM executions WHERE created < $1 AND turn_id = '' AND unfinished = 0 ORDER BY created LIMIT 50", deleteExecution)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	if audit.IsZero() {
		return deleted, nil
	}
	err = s.base.write(ctx, func(ctx context.Context, q queryer) error {
		done, err := q.ExecContext(ctx, "DELETE FROM audit_rows WHERE at < $1", micros(audit))
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		deleted += int(n)
		return err
	})
	return deleted, err
}

// retain deletes what query finds, some at a time, until there is no more.
func (s *Store) retain(ctx context.Context, before int64, query string, remove func(context.Context, queryer, string) error) (deleted int, err error) {
	for {
		n := 0
		err := s.base.write(ctx, func(ctx context.Context, q queryer) error {
			n = 0
			ids, err := oneColumn(ctx, q, query, before)
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := remove(ctx, q, id); err != nil {
					return err
				}
			}
			n = len(ids)
			return nil
		})
		if err != nil {
			return deleted, err
		}
		deleted += n
		if n < retainAtOnce {
			return deleted, nil
		}
	}
}

func deleteExecution(ctx context.Context, q queryer, id string) error {
	return each(ctx, q, id, "DELETE FROM documents WHERE execution = $1", "DELETE FROM events WHERE stream = $1", "DELETE FROM executions WHERE id = $1")
}
