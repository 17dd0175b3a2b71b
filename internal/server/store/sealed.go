package store

import (
	"context"
	"database/sql/driver"

	"cove/internal/core/seal"
)

// What users have written and got is encrypted where the database has a ring of data keys: the columns that records.go and its like mark with content. A value is sealed
// for its column, so that it counts in no other one. What is looked up, counted or ordered by is as it is: ids, times, states, sizes, hashes of files.

// content marks a column with what users have written, or got.
func content(f field) field { return field{f.name, &hidden{value: f.value, column: f.name}} }

// lookedUp is content that is found by being the same: its sealed form is always the same, too.
func lookedUp(f field) field {
	return field{f.name, &hidden{value: f.value, column: f.name, how: always}}
}

// clue is a column that others are found by, and that would tell of content: it is left out where content is sealed.
func clue(f field) field { return field{f.name, &hidden{value: f.value, column: f.name, how: never}} }

// hiding is how a column is sealed.
type hiding int

const (
	anew   hiding = iota // differently each time
	always               // always the same
	never                // it is empty
)

// hidden is the value of a column that is sealed when sealer is set.
type hidden struct {
	value
	column string
	how    hiding
	sealer *seal.Sealer
}

func (h *hidden) Value() (driver.Value, error) {
	plain, err := h.value.Value()
	if err != nil || h.sealer == nil {
		return plain, err
	}
	return h.seal(plain), nil
}

// seal returns a plain value as it is kept.
func (h *hidden) seal(plain driver.Value) driver.Value {
	switch v := plain.(type) {
	case string:
		if h.how == always {
			return h.sealer.SealFixed(h.column, v)
		}
		return h.sealer.SealText(h.column, v)
	case []byte:
		if len(v) == 0 || h.how == never {
			return []byte{}
		}
		return h.sealer.Seal(h.column, v)
	}
	return plain
}

func (h *hidden) Scan(from any) error {
	if h.sealer == nil || h.how == never {
		return h.value.Scan(from)
	}
	kept, err := characters(from)
	if err != nil {
		return err
	}
	plain, err := h.open(kept)
	if err != nil {
		return err
	}
	return h.value.Scan(plain)
}

// open returns a kept value as it was.
func (h *hidden) open(kept string) (string, error) {
	if !h.bytes() || kept == "" {
		return h.sealer.OpenText(h.column, kept)
	}
	plain, err := h.sealer.Open(h.column, []byte(kept))
	return string(plain), err
}

// bytes says that the column is one of bytes.
func (h *hidden) bytes() bool {
	_, is := h.value.(blob)
	return is || h.how == never
}

// bind has the columns of a record be sealed as q says.
func bind(q queryer, fields []field) []field {
	if sealer := sealerOf(q); sealer != nil {
		for _, f := range fields {
			if h, ok := f.value.(*hidden); ok {
				h.sealer = sealer
			}
		}
	}
	return fields
}

// sealing is a queryer on a database whose content is sealed.
type sealing struct {
	queryer
	sealer *seal.Sealer
}

func sealerOf(q queryer) *seal.Sealer {
	if s, ok := q.(sealing); ok {
		return s.sealer
	}
	return nil
}

// sealedBase passes on what content is sealed with.
type sealedBase struct {
	base
	sealer *seal.Sealer
}

func (b sealedBase) with(do func(context.Context, queryer) error) func(context.Context, queryer) error {
	return func(ctx context.Context, q queryer) error { return do(ctx, sealing{q, b.sealer}) }
}

func (b sealedBase) read(ctx context.Context, do func(context.Context, queryer) error) error {
	return b.base.read(ctx, b.with(do))
}

func (b sealedBase) snapshot(ctx context.Context, do func(context.Context, queryer) error) error {
	return b.base.snapshot(ctx, b.with(do))
}

func (b sealedBase) write(ctx context.Context, do func(context.Context, queryer) error) error {
	return b.base.write(ctx, b.with(do))
}

func (b sealedBase) restore(ctx context.Context, do func(context.Context, queryer) error) error {
	return b.base.restore(ctx, b.with(do))
}
