package store

import (
	"context"
	"log/slog"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
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

// spanStore is an operation in a trace.
const spanStore = "store"

type operationKey struct{}

// operation names the kind of what is done with the context, where it is not just a read or a write.
func operation(ctx context.Context, kind string) context.Context {
	if telemetry.From(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, operationKey{}, kind)
}

// timed measures how long a database takes, queueing included.
type timed struct{ base }

func (t timed) measure(ctx context.Context, kind string, do func() error) error {
	seen := telemetry.From(ctx)
	if seen == nil {
		return do()
	}
	if named, ok := ctx.Value(operationKey{}).(string); ok {
		kind = named
	}
	began, over := time.Now(), telemetry.Part(ctx, spanStore, slog.String("operation", kind))
	err := do()
	seen.Observe(telemetry.Store, time.Since(began), kind)
	over(failure(err))
	return err
}

// failure is err where the database failed, and nil where it said that something is not there, or there already.
func failure(err error) error {
	if problem.Is(err, problem.Unavailable) || problem.Is(err, problem.Timeout) {
		return err
	}
	return nil
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
