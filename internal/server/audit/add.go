package audit

import (
	"context"
	"time"

	"cove/internal/core/problem"
)

const (
	// patience bounds how long a change waits for its row.
	patience = 10 * time.Second
	// pause is between two tries.
	pause = 100 * time.Millisecond
)

// Try writes a row within 10 seconds, also when ctx has ended: what was done stays done when its caller goes away. It may be repeated.
func Try(ctx context.Context, l Log, r Row) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return try(ctx, l, r)
}

// Add is Try that tries again, within the same time, while the log is away (problem.Unavailable).
func Add(ctx context.Context, l Log, r Row) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for {
		err := try(ctx, l, r)
		if !problem.Is(err, problem.Unavailable) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

func try(ctx context.Context, l Log, r Row) error {
	err := l.AddRow(ctx, r)
	if err != nil && ctx.Err() != nil {
		return problem.New(problem.DatabaseUnavailable, "the database did not take the row in time").WithCause(err)
	}
	return err
}
