package store

import (
	"context"
	"strconv"
	"time"
)

// The most that one transaction deletes. Others write in between, and it has to end in an operation's time: a conversation may have
// a hundred thousand words in the index.
const (
	someExecutions = 20
	someRows       = 1_000
)

// Retain implements hub.Retainer. What still runs stays. Idempotency keys, browsers and codes whose time has passed go without being counted.
func (s *Store) Retain(ctx context.Context, unusedSince, audit time.Time) (deleted int, err error) {
	if err := s.forgetPromises(ctx); err != nil {
		return 0, err
	}
	if err := s.forgetSignIns(ctx); err != nil {
		return 0, err
	}
	var removals []removal
	if !unusedSince.IsZero() {
		removals = append(removals, s.oldConversations(micros(unusedSince)), oldExecutions(micros(unusedSince)))
	}
	if !audit.IsZero() {
		removals = append(removals, oldRows(micros(audit)))
	}
	for _, remove := range removals {
		n, err := s.removeAll(ctx, remove)
		if deleted += n; err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// removal deletes some of what is old, and returns how much; 0 when there is no more.
type removal func(ctx context.Context, q queryer) (int, error)

// removeAll deletes transaction by transaction.
func (s *Store) removeAll(ctx context.Context, remove removal) (deleted int, err error) {
	for {
		n := 0
		err := s.base.write(ctx, func(ctx context.Context, q queryer) (err error) {
			n, err = remove(ctx, q)
			return err
		})
		if err != nil || n == 0 {
			return deleted, err
		}
		deleted += n
	}
}

// oldConversations takes one at a time, and one that begins to be used meanwhile stays.
func (s *Store) oldConversations(before int64) removal {
	query := `SELECT id FROM conversations WHERE used < $1 AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.conversation = conversations.id
		AND turns.unfinished = 1) ORDER BY used LIMIT 1` + s.dialect.forUpdate
	return removeFound(query, before, deleteConversation)
}

func oldExecutions(before int64) removal {
	return removeFound("SELECT id FROM executions WHERE turn_id = '' AND created < $1 AND unfinished = 0 ORDER BY created LIMIT "+strconv.Itoa(someExecutions),
		before, deleteExecution)
}

func oldRows(before int64) removal {
	return func(ctx context.Context, q queryer) (int, error) {
		done, err := q.ExecContext(ctx, "DELETE FROM audit_rows WHERE id IN (SELECT id FROM audit_rows WHERE at < $1 ORDER BY at LIMIT "+
			strconv.Itoa(someRows)+")", before)
		if err != nil {
			return 0, err
		}
		n, err := done.RowsAffected()
		return int(n), err
	}
}

// removeFound removes what a query finds.
func removeFound(query string, before int64, remove func(ctx context.Context, q queryer, id string) error) removal {
	return func(ctx context.Context, q queryer) (int, error) {
		ids, err := oneColumn(ctx, q, query, before)
		if err != nil {
			return 0, err
		}
		for _, id := range ids {
			if err := remove(ctx, q, id); err != nil {
				return 0, err
			}
		}
		return len(ids), nil
	}
}

func deleteExecution(ctx context.Context, q queryer, id string) error {
	return each(ctx, q, id, "DELETE FROM documents WHERE execution = $1", "DELETE FROM events WHERE stream = $1", "DELETE FROM executions WHERE id = $1")
}
