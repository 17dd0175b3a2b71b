package store

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"cove/internal/llm/model"
)

// This file is where Go's values become the database's and back. A record's columns are listed once, in records.go, each with a value that
// reads from and writes to the record's field.

// field is a column of a record.
type field struct {
	name string
	value
}

// value reads and writes a Go variable.
type value interface {
	sql.Scanner
	driver.Valuer
}

// micros is a time as it is kept: microseconds since 1970, 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// clean is a text as both databases take it: PostgreSQL refuses the byte 0 and what is not UTF-8.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

type moment struct{ to *time.Time }

func (m moment) Value() (driver.Value, error) { return micros(*m.to), nil }

func (m moment) Scan(from any) error {
	n, err := integer(from)
	*m.to = fromMicros(n)
	return err
}

// span is a duration in microseconds.
type span struct{ to *time.Duration }

func (s span) Value() (driver.Value, error) { return s.to.Microseconds(), nil }

func (s span) Scan(from any) error {
	n, err := integer(from)
	*s.to = time.Duration(n) * time.Microsecond
	return err
}

type text[T ~string] struct{ to *T }

func textOf[T ~string](to *T) value { return text[T]{to} }

func (t text[T]) Value() (driver.Value, error) { return clean(string(*t.to)), nil }

func (t text[T]) Scan(from any) error {
	s, err := characters(from)
	*t.to = T(s)
	return err
}

type count[T ~int | ~int64] struct{ to *T }

func countOf[T ~int | ~int64](to *T) value { return count[T]{to} }

func (c count[T]) Value() (driver.Value, error) { return int64(*c.to), nil }

func (c count[T]) Scan(from any) error {
	n, err := integer(from)
	*c.to = T(n)
	return err
}

// tokens is a count of tokens. One that cannot be, which models have told, is not kept, and one that was is read as none.
type tokens struct{ to *int64 }

func plausible(n int64) int64 {
	if n < 0 || n > model.MostTokens {
		return 0
	}
	return n
}

func (t tokens) Value() (driver.Value, error) { return plausible(*t.to), nil }

func (t tokens) Scan(from any) error {
	n, ok := from.(int64)
	if _, isReal := from.(float64); !ok && !isReal { // what SQLite makes of a sum that does not fit
		return fmt.Errorf("%T is not a number", from)
	}
	*t.to = plausible(n)
	return nil
}

type decimal struct{ to *float64 }

func (d decimal) Value() (driver.Value, error) { return *d.to, nil }

func (d decimal) Scan(from any) error {
	switch n := from.(type) {
	case float64:
		*d.to = n
	case int64:
		*d.to = float64(n)
	default:
		return fmt.Errorf("%T is not a number", from)
	}
	return nil
}

// millionths is an amount of money, which is kept in millionths: sums of those are exact.
type millionths struct{ to *float64 }

func (m millionths) Value() (driver.Value, error) {
	if !(*m.to >= 0) {
		return int64(0), nil
	}
	return int64(math.Round(min(*m.to, model.MostCost) * 1e6)), nil
}

func (m millionths) Scan(from any) error {
	n, err := integer(from)
	*m.to = float64(n) / 1e6
	return err
}

type flag struct{ to *bool }

func (f flag) Value() (driver.Value, error) { return bit(*f.to), nil }

func (f flag) Scan(from any) error {
	n, err := integer(from)
	*f.to = n != 0
	return err
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// derived is a column that is computed from others and never read.
type derived struct{ from func() any }

func (d derived) Value() (driver.Value, error) {
	return driver.DefaultParameterConverter.ConvertValue(d.from())
}

func (derived) Scan(any) error { return nil }

// jsonText is a JSON text whose form is its owner's; nil is "".
type jsonText[T ~[]byte] struct{ to *T }

func jsonTextOf[T ~[]byte](to *T) value { return jsonText[T]{to} }

func (j jsonText[T]) Value() (driver.Value, error) { return clean(string(*j.to)), nil }

func (j jsonText[T]) Scan(from any) error {
	s, err := characters(from)
	*j.to = nil
	if s != "" {
		*j.to = T(s)
	}
	return err
}

type blob struct{ to *[]byte }

func (b blob) Value() (driver.Value, error) { return append([]byte{}, *b.to...), nil }

func (b blob) Scan(from any) error {
	s, err := characters(from)
	*b.to = []byte(s)
	return err
}

// document is a value as JSON; what JSON calls null is "".
type document[T any] struct{ to *T }

func documentOf[T any](to *T) value { return document[T]{to} }

func (d document[T]) Value() (driver.Value, error) {
	text, err := json.Marshal(*d.to)
	if err != nil || string(text) == "null" {
		return "", err
	}
	return clean(string(text)), nil
}

func (d document[T]) Scan(from any) error {
	s, err := characters(from)
	if err != nil || s == "" {
		*d.to = *new(T)
		return err
	}
	return json.Unmarshal([]byte(s), d.to)
}

func integer(from any) (int64, error) {
	n, ok := from.(int64)
	if !ok {
		return 0, fmt.Errorf("%T is not a whole number", from)
	}
	return n, nil
}

func characters(from any) (string, error) {
	switch s := from.(type) {
	case string:
		return s, nil
	case []byte:
		return string(s), nil
	}
	return "", fmt.Errorf("%T is not a text", from)
}
