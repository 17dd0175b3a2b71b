package egress

import (
	"context"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// Meter bounds what a session sends and receives together, over all its connections and over changes of its rules.
type Meter struct {
	most  int64
	bytes atomic.Int64
	pace  *rate.Limiter // nil: any
}

// leastBurst is how many bytes may come at once, however slow the rest.
const leastBurst = 1 << 20

// NewMeter bounds the bytes of a session, and those in a second, of which a second's may come at once. 0 is no limit.
func NewMeter(most, perSecond int64) *Meter {
	m := &Meter{most: most}
	if perSecond > 0 {
		m.pace = rate.NewLimiter(rate.Limit(perSecond), int(min(max(perSecond, leastBurst), 1<<30)))
	}
	return m
}

// spent says whether the session may send and receive no more.
func (m *Meter) spent() bool { return m.most > 0 && m.bytes.Load() >= m.most }

// take counts bytes that were moved, and waits until there may be more.
func (m *Meter) take(ctx context.Context, n int) {
	m.bytes.Add(int64(n))
	for m.pace != nil && n > 0 && ctx.Err() == nil {
		some := min(n, m.pace.Burst())
		_ = m.pace.WaitN(ctx, some) // an error is the end of the connection, which shows elsewhere
		n -= some
	}
}
