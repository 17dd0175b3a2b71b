package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"cove/internal/audit"
	"cove/internal/problem"
)

// AddRow implements audit.Log. A row that is there already stays as it is, so adding may be repeated.
func (s *Store) AddRow(ctx context.Context, r audit.Row) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		return insert(ctx, q, "audit_rows", auditFields(&r), "ON CONFLICT (id) DO NOTHING")
	})
}

// Rows implements audit.Log. Problems: bad_cursor when there is no row before.
func (s *Store) Rows(ctx context.Context, project, before string, limit int) ([]audit.Row, error) {
	var out []audit.Row
	err := s.base.read(ctx, func(ctx context.Context, q queryer) error {
		var f filter
		f.is("project", clean(project))
		if before != "" {
			mark := f
			mark.add("id = ?", clean(before))
			r, err := one(ctx, q, auditFields, "FROM audit_rows"+mark.where(), mark.args...)
			if errors.Is(err, sql.ErrNoRows) {
				return problem.New(problem.BadCursor, "there is no such row of the audit log").WithHint("begin with the newest")
			}
			if err != nil {
				return err
			}
			f.add("(at, id) < (?, ?)", micros(r.At), r.ID)
		}
		var err error
		out, err = many(ctx, q, auditFields, "FROM audit_rows"+f.where()+" ORDER BY at DESC, id DESC LIMIT "+strconv.Itoa(max(limit, 0)), f.args...)
		return err
	})
	return out, err
}
