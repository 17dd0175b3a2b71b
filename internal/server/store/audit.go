package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/server/audit"
)

// AddRow implements audit.Log. A row that is there already stays as it is, so adding may be repeated.
func (s *Store) AddRow(ctx context.Context, r audit.Row) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		return insert(ctx, q, "audit_rows", auditFields(&r), "ON CONFLICT (id) DO NOTHING")
	})
}

// Rows implements audit.Log. Problems: bad_cursor when there is no row before.
func (s *Store) Rows(ctx context.Context, want audit.Query) ([]audit.Row, error) {
	var out []audit.Row
	err := s.base.read(ctx, func(ctx context.Context, q queryer) error {
		var f filter
		f.is("project", clean(want.Project))
		if want.Before != "" {
			mark := f
			mark.add("id = ?", clean(want.Before))
			r, err := one(ctx, q, auditFields, "FROM audit_rows"+mark.where(), mark.args...)
			if errors.Is(err, sql.ErrNoRows) {
				return problem.New(problem.BadCursor, "there is no such row of the audit log").WithHint("begin with the newest")
			}
			if err != nil {
				return err
			}
			f.add("(at, id) < (?, ?)", micros(r.At), r.ID)
		}
		narrow(&f, want)
		var err error
		out, err = many(ctx, q, auditFields, "FROM audit_rows"+f.where()+" ORDER BY at DESC, id DESC LIMIT "+strconv.Itoa(max(want.Limit, 0)), f.args...)
		return err
	})
	return out, err
}

// narrow adds what a query asks for beside the project and the place.
func narrow(f *filter, want audit.Query) {
	f.is("user_id", clean(want.User))
	f.is("key_id", clean(want.Key))
	f.is("target", clean(want.Target))
	if action := clean(want.Action); action != "" {
		f.add("(action = ? OR substr(action, 1, ?) = ?)", action, utf8.RuneCountInString(action)+1, action+".")
	}
	if want.Outcome == audit.Refused {
		f.add("outcome <> ?", "ok")
	} else {
		f.is("outcome", clean(want.Outcome))
	}
	if !want.From.IsZero() {
		f.add("at >= ?", micros(want.From))
	}
	if !want.To.IsZero() {
		f.add("at < ?", micros(want.To))
	}
}
