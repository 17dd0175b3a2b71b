package store

import (
	"context"
	"time"

	"cove/internal/telemetry"
)

// The kinds of operations whose time is measured.
const (
	opRead   = "read"
	opWrite  = "write"
	opEvents = "events" // events of what runs, many streams at once
	opEnd    = "end"    // of an execution or a turn, with its last events
	opSearch = "search"
	opBackup = "backup"
)

type operationKey struct{}

// operation names the kind of what is done with the context, where it is not just a read or a write.
func operation(ctx context.Context, kind string) context.Context {
	if telemetry.From(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, operationKey{}, kind)
}

// timed measures how long a database takes, waiting for its turn included.
type timed struct{ base }

func (t timed) measure(ctx context.Context, kind string, do func() error) error {
	seen := telemetry.From(ctx)
	if seen == nil {
		return do()
	}
	if named, ok := ctx.Value(operationKey{}).(string); ok {
		kind = named
	}
	began := time.Now()
	err := do()
	seen.Observe(telemetry.Store, time.Since(began), kind)
	return err
}

func (t timed) read(ctx context.Context, do func(context.Context, queryer) error) error {
	return t.measure(ctx, opRead, func() error { return t.base.read(ctx, do) })
}

func (t timed) write(ctx context.Context, do func(context.Context, queryer) error) error {
	return t.measure(ctx, opWrite, func() error { return t.base.write(ctx, do) })
}

func (t timed) snapshot(ctx context.Context, do func(context.Context, queryer) error) error {
	return t.measure(ctx, opBackup, func() error { return t.base.snapshot(ctx, do) })
}
