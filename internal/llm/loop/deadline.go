package loop

import (
	"context"
	"time"
)

// deadline is the time at which something has to end. The zero value is never.
type deadline struct{ at time.Time }

// deadlineIn returns the deadline that is limit from now; a limit of 0 is none.
func deadlineIn(limit time.Duration) deadline {
	if limit == 0 {
		return deadline{}
	}
	return deadline{time.Now().Add(limit)}
}

func (d deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d deadline) add(more time.Duration) deadline {
	if d.at.IsZero() {
		return d
	}
	return deadline{d.at.Add(more)}
}

// orBefore returns the earlier of two deadlines.
func (d deadline) orBefore(other deadline) deadline {
	if d.at.IsZero() || !other.at.IsZero() && other.at.Before(d.at) {
		return other
	}
	return d
}

// bound ends a context at the deadline.
func (d deadline) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.at.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, d.at)
}

// left returns the time until the deadline, at least least and at most limit, where 0 is no limit. Without a deadline and a limit it is 0.
func (d deadline) left(least, limit time.Duration) time.Duration {
	if d.at.IsZero() {
		return limit
	}
	left := max(time.Until(d.at), least)
	if limit > 0 {
		left = min(left, limit)
	}
	return left
}
