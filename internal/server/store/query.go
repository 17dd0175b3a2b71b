package store

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

const (
	defaultPage = 20
	largestPage = 100
)

// names are the columns of a record, for SELECT and INSERT.
func names(fields []field) string {
	var b strings.Builder
	for i, f := range fields {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(f.name)
	}
	return b.String()
}

// insert writes a record. tail follows the values: "" or ON CONFLICT.
func insert(ctx context.Context, q queryer, table string, fields []field, tail string) error {
	bind(q, fields)
	args := make([]any, len(fields))
	var holes strings.Builder
	for i, f := range fields {
		args[i] = f.value
		if i > 0 {
			holes.WriteString(", ")
		}
		holes.WriteString("$" + strconv.Itoa(i+1))
	}
	_, err := q.ExecContext(ctx, "INSERT INTO "+table+" ("+names(fields)+") VALUES ("+holes.String()+") "+tail, args...)
	return err
}

// update writes the fields of the records that where says and returns how many there are.
func update(ctx context.Context, q queryer, table string, fields []field, where filter) (int64, error) {
	var f filter
	for _, x := range bind(q, fields) {
		f.add(x.name+" = ?", x.value)
	}
	text := "UPDATE " + table + " SET " + strings.Join(f.terms, ", ")
	f.terms = nil
	for i, term := range where.raw {
		f.add(term, where.rawArgs[i]...)
	}
	done, err := q.ExecContext(ctx, text+f.where(), f.args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// one reads a record; sql.ErrNoRows when there is none. from begins with FROM.
func one[T any](ctx context.Context, q queryer, fields func(*T) []field, from string, args ...any) (T, error) {
	var t T
	all := bind(q, fields(&t))
	return t, q.QueryRowContext(ctx, "SELECT "+names(all)+" "+from, args...).Scan(targets(all)...)
}

// present returns sql.ErrNoRows when there is no such record.
func present(ctx context.Context, q queryer, table string, where filter) error {
	var one int
	return q.QueryRowContext(ctx, "SELECT 1 FROM "+table+where.where(), where.args...).Scan(&one)
}

// many reads records.
func many[T any](ctx context.Context, q queryer, fields func(*T) []field, from string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, "SELECT "+names(fields(new(T)))+" "+from, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var out []T
	for rows.Next() {
		var t T
		if err := rows.Scan(targets(bind(q, fields(&t)))...); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, rows.Err()
}

func targets(fields []field) []any {
	out := make([]any, len(fields))
	for i, f := range fields {
		out[i] = f.value
	}
	return out
}

// filter collects conditions. Their placeholders are written "?" and numbered as they come.
type filter struct {
	terms   []string
	args    []any
	raw     []string // as they were added
	rawArgs [][]any
}

func (f *filter) add(term string, args ...any) {
	f.raw, f.rawArgs = append(f.raw, term), append(f.rawArgs, args)
	var b strings.Builder
	for _, c := range term {
		if c != '?' {
			b.WriteRune(c)
			continue
		}
		f.args = append(f.args, args[0])
		args = args[1:]
		b.WriteString("$" + strconv.Itoa(len(f.args)))
	}
	f.terms = append(f.terms, b.String())
}

// is adds a condition unless the value is "".
func (f *filter) is(column, value string) {
	if value != "" {
		f.add(column+" = ?", value)
	}
}

// among adds the condition that a column has one of some values.
func (f *filter) among(column string, values []string) {
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = clean(v)
	}
	f.add(column+" IN (?"+strings.Repeat(", ?", len(values)-1)+")", args...)
}

func (f *filter) where() string {
	if len(f.terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(f.terms, " AND ")
}

// order says what a list goes by.
type order[T any] struct {
	table  string
	fields func(*T) []field
	by     string // the column of a time
	at     func(*T) (time.Time, string)
}

// list reads a page.
func list[T any](ctx context.Context, s *Store, o order[T], f filter, p hub.Page) (hub.Listing[T], error) {
	limit, err := pageLimit(p)
	if err != nil {
		return hub.Listing[T]{}, err
	}
	query, err := pageQuery(o.table, o.by, &f, p, limit)
	if err != nil {
		return hub.Listing[T]{}, err
	}
	var out hub.Listing[T]
	err = s.base.read(ctx, func(ctx context.Context, q queryer) (err error) {
		out.Items, err = many(ctx, q, o.fields, query, f.args...)
		return err
	})
	if err != nil {
		return hub.Listing[T]{}, err
	}
	if len(out.Items) > limit {
		out.Items = out.Items[:limit]
		at, id := o.at(&out.Items[limit-1])
		out.Next = cursor(o.table, micros(at), id)
	}
	return out, nil
}

// pageQuery is what follows the columns of a SELECT of one page and one more.
func pageQuery(table, by string, f *filter, p hub.Page, limit int) (string, error) {
	sign, direction := "<", " DESC"
	if p.Oldest {
		sign, direction = ">", ""
	}
	if p.After != "" {
		at, id, err := readCursor(table, p.After)
		if err != nil {
			return "", err
		}
		f.add("("+by+", id) "+sign+" (?, ?)", at, id)
	}
	return "FROM " + table + f.where() + " ORDER BY " + by + direction + ", id" + direction + " LIMIT " + strconv.Itoa(limit+1), nil
}

func pageLimit(p hub.Page) (int, error) {
	switch {
	case p.Limit == 0:
		return defaultPage, nil
	case p.Limit < 0 || p.Limit > largestPage:
		return 0, problem.New(problem.BadLimit, "a page has 1 to "+strconv.Itoa(largestPage)+" entries, not "+strconv.Itoa(p.Limit)).
			WithHint("ask for the next page with the cursor that comes with this one")
	}
	return p.Limit, nil
}

// cursor is a place in the list of a table.
func cursor(table string, at int64, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(table + "/" + strconv.FormatInt(at, 36) + "/" + id))
}

func readCursor(table, text string) (at int64, id string, err error) {
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(plain) > 200 {
		return 0, "", badCursor()
	}
	parts := strings.Split(string(plain), "/")
	if len(parts) != 3 || parts[0] != table || parts[2] == "" || clean(parts[2]) != parts[2] {
		return 0, "", badCursor()
	}
	if at, err = strconv.ParseInt(parts[1], 36, 64); err != nil {
		return 0, "", badCursor()
	}
	return at, parts[2], nil
}

func badCursor() error {
	return problem.New(problem.BadCursor, "the cursor is not one that this list gave").
		WithHint("begin without a cursor and use those of the answers as they are")
}

// found gives a missing row its name.
func found(err error, code problem.NotFoundCode) error {
	if errors.Is(err, sql.ErrNoRows) {
		return missing(code)
	}
	return err
}

func missing(code problem.NotFoundCode) error {
	return problem.New(code, "there is no such "+strings.TrimSuffix(string(code), "_not_found"))
}

// get reads one record outside a transaction.
func get[T any](ctx context.Context, s *Store, absent problem.NotFoundCode, fields func(*T) []field, from string, args ...any) (T, error) {
	var t T
	err := s.base.read(ctx, func(ctx context.Context, q queryer) (err error) {
		t, err = one(ctx, q, fields, from, args...)
		return found(err, absent)
	})
	return t, err
}

// all reads records outside a transaction.
func all[T any](ctx context.Context, s *Store, fields func(*T) []field, from string, args ...any) ([]T, error) {
	var out []T
	err := s.base.read(ctx, func(ctx context.Context, q queryer) (err error) {
		out, err = many(ctx, q, fields, from, args...)
		return err
	})
	return out, err
}

// record says where the records of a type are.
type record[T any] struct {
	absent problem.NotFoundCode
	table  string
	fields func(*T) []field
}

// modify reads the record that where says, has change change it and writes it back, in one transaction. then writes what depends on it.
func modify[T any](ctx context.Context, s *Store, r record[T], where filter, change func(*T) error, then func(context.Context, queryer, *T) error) (T, error) {
	var t T
	err := s.base.write(ctx, func(ctx context.Context, q queryer) (err error) {
		t, err = one(ctx, q, r.fields, "FROM "+r.table+where.where()+s.dialect.forUpdate, where.args...)
		if err != nil {
			return found(err, r.absent)
		}
		had, err := valuesOf(r.fields(&t))
		if err != nil {
			return err
		}
		if err := change(&t); err != nil {
			return err
		}
		fields, err := changed(r.fields(&t), had)
		if err != nil || len(fields) == 0 {
			return err
		}
		if _, err = update(ctx, q, r.table, fields, where); err != nil || then == nil {
			return err
		}
		return then(ctx, q, &t)
	})
	return t, err
}

func valuesOf(fields []field) ([]driver.Value, error) {
	out := make([]driver.Value, len(fields))
	for i, f := range fields {
		var err error
		if out[i], err = f.Value(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return out, nil
}

// changed are the fields whose values are not those they had: an index whose columns are not written need not be.
func changed(fields []field, had []driver.Value) ([]field, error) {
	have, err := valuesOf(fields)
	if err != nil {
		return nil, err
	}
	var out []field
	for i, f := range fields {
		a, isBytes := have[i].([]byte)
		b, _ := had[i].([]byte)
		if isBytes && !bytes.Equal(a, b) || !isBytes && have[i] != had[i] {
			out = append(out, f)
		}
	}
	return out, nil
}
