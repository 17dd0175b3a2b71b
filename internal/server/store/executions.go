package store

import (
	"context"
	"strconv"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/audit"
	"cove/internal/server/hub"
	"cove/internal/server/stream"
)

// AddExecution implements hub.ExecutionStore.
func (s *Store) AddExecution(ctx context.Context, e hub.Execution, asked ...audit.Row) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		for i := range asked {
			if err := insert(ctx, q, "audit_rows", auditFields(&asked[i]), ""); err != nil {
				return err
			}
		}
		return insert(ctx, q, "executions", executionFields(&e), "")
	})
}

// Execution implements hub.ExecutionStore.
func (s *Store) Execution(ctx context.Context, project, id string) (hub.Execution, error) {
	return get(ctx, s, problem.ExecutionNotFound, executionFields, "FROM executions WHERE id = $1 AND project = $2", clean(id), project)
}

// Executions implements hub.ExecutionStore.
func (s *Store) Executions(ctx context.Context, project string, f hub.ExecutionFilter, p hub.Page) (hub.Listing[hub.Execution], error) {
	var w filter
	w.add("project = ?", project)
	w.is("session_id", clean(f.Session))
	w.is("turn_id", clean(f.Turn))
	w.is("kernel", clean(f.Kernel))
	w.is("state", clean(string(f.State)))
	return list(ctx, s, order[hub.Execution]{
		table: "executions", fields: executionFields, by: "created",
		at: func(e *hub.Execution) (time.Time, string) { return e.Created, e.ID },
	}, w, p)
}

// StartExecution implements hub.ExecutionStore. One that is final stays so.
func (s *Store) StartExecution(ctx context.Context, id string, at time.Time) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		done, err := q.ExecContext(ctx, "UPDATE executions SET state = $1, started = $2 WHERE id = $3 AND unfinished = 1",
			string(hub.ExecutionRunning), micros(at), clean(id))
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); n > 0 || err != nil {
			return err
		}
		_, err = one(ctx, q, executionFields, "FROM executions WHERE id = $1", clean(id))
		return found(err, problem.ExecutionNotFound)
	})
}

// FinishExecution implements hub.ExecutionStore.
func (s *Store) FinishExecution(ctx context.Context, e hub.Execution, last []stream.Event) (first bool, err error) {
	texts, err := s.executionTexts(ctx, e, last)
	if err != nil {
		return false, err
	}
	err = s.base.write(operation(ctx, opEnd), func(ctx context.Context, q queryer) (err error) {
		first, err = finish(ctx, q, problem.ExecutionNotFound, "executions", owned(e.Project, e.ID), executionEnd(&e), last)
		if !first || err != nil {
			return err
		}
		return addTexts(ctx, q, texts)
	})
	return first && err == nil, err
}

// finish writes the end of an execution or a turn unless there is one already.
func finish(ctx context.Context, q queryer, absent problem.NotFoundCode, table string, where filter, end []field, last []stream.Event) (bool, error) {
	open := where
	open.add("unfinished = 1")
	n, err := update(ctx, q, table, end, open)
	if err != nil {
		return false, err
	}
	if n > 0 {
		return true, addEvents(ctx, q, last)
	}
	var id string
	err = q.QueryRowContext(ctx, "SELECT id FROM "+table+where.where(), where.args...).Scan(&id)
	return false, found(err, absent)
}

// ExecutionsSince implements hub.ExecutionStore. The oldest come first.
func (s *Store) ExecutionsSince(ctx context.Context, project, session string, since time.Time, limit int) ([]hub.Execution, error) {
	return all(ctx, s, executionFields, "FROM executions WHERE session_id = $1 AND project = $2 AND started > 0 AND finished > $3 ORDER BY created, id LIMIT "+
		strconv.Itoa(max(limit, 0)), clean(session), project, micros(since))
}

// AbandonedExecutions implements hub.ExecutionStore. The oldest come first.
func (s *Store) AbandonedExecutions(ctx context.Context, limit int) ([]hub.Execution, error) {
	return all(ctx, s, executionFields, "FROM executions WHERE unfinished = 1 AND "+ownerDead("executions")+" ORDER BY created, id LIMIT "+strconv.Itoa(max(limit, 0)))
}

// ownerDead is the condition that a record's owner does not live; none is dead.
func ownerDead(table string) string {
	return "NOT EXISTS (SELECT 1 FROM owners WHERE owners.id = " + table + ".owner)"
}
