package work

import (
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/ownership"
)

const (
	// awayPatience is how long a drain waits for a store that does not answer. The next start makes up for the records that were not written.
	awayPatience = 10 * time.Second
	// futile is how often the write of a record is tried that the store refuses while it answers: within about a second.
	futile = 7
)

// WriteUntilStored repeats write until it succeeds, its subject does not exist, ctx ends, or a drain waits no longer. While the store does not answer, no new work
// begins. When the store answers and refuses the record, the fault is the record's alone: persist gives up after a few attempts, and other work goes on.
func (c *Core) WriteUntilStored(ctx context.Context, write func(ctx context.Context) error) error {
	backoff := backoff{first: 20 * time.Millisecond, most: 2 * time.Second}
	owes := false
	defer func() { c.setOwing(&owes, false) }()
	for refusals := 0; ; {
		err := write(ctx)
		away := problem.Is(err, problem.Unavailable)
		if ownership.IsLost(err) {
			return err
		}
		c.noteAnswer(err)
		if err == nil || problem.Is(err, problem.NotFound) || ctx.Err() != nil || c.DrainedLongEnough() {
			return err
		}
		if !away {
			refusals++
		}
		if refusals >= futile {
			return err
		}
		if away && !owes {
			c.Log.WarnContext(ctx, "the store does not take a record", "error", err)
		}
		c.setOwing(&owes, away)
		select {
		case <-time.After(backoff.next()):
		case <-ctx.Done():
		}
	}
}

// backoff is the time between attempts. It grows from first to most.
type backoff struct{ first, most, last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(max(b.first, 2*b.last), b.most)
	return b.last
}

// setOwing records whether a record could not be written because the store does not answer.
func (c *Core) setOwing(owes *bool, now bool) {
	if now == *owes {
		return
	}
	*owes = now
	c.mu.Lock()
	defer c.mu.Unlock()
	if now {
		c.owing++
	} else {
		c.owing--
	}
}

// noteAnswer records whether the store answered when a record was written, and if not, its error.
func (c *Core) noteAnswer(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !problem.Is(err, problem.Unavailable):
		c.away, c.lacks = time.Time{}, nil
		return
	case c.away.IsZero():
		c.away = time.Now()
	}
	c.lacks = problem.Of(err)
}

// UnstoredProblem returns the problem of a request for new work while the store does not answer, and otherwise nil.
func (c *Core) UnstoredProblem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owing == 0 {
		return nil
	}
	if problem.Has(c.lacks, problem.DiskFull) {
		return problem.New(problem.DiskFull, "the disk of the server's database is full").WithHint("the operator has to make room; nothing that was recorded is lost")
	}
	return problem.New(problem.DatabaseUnavailable, "the database has not taken all records yet").WithHint("try again in a moment")
}

// BeginDrain notes that the hub drains since then.
func (c *Core) BeginDrain(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	if !c.away.IsZero() {
		c.away = since
	}
}

// DrainedLongEnough says that the hub drains and has waited for its store long enough.
func (c *Core) DrainedLongEnough() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining && !c.away.IsZero() && time.Since(c.away) >= awayPatience
}
