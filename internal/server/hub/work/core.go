// Package work is what every part of the hub needs for what it is asked to do: a request with an idempotency key is done once, it leaves a row in the audit log,
// its record is written although the store does not answer for a while, and what goes on in the background ends before the hub does. It changes with these rules
// alone, and knows nothing of sessions, turns and files besides their records.
package work

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/audit"
	"cove/internal/server/hub/record"
	"cove/internal/server/ownership"
)

// Options are what a Core is made of.
type Options struct {
	Store   record.Store
	Owner   *ownership.Owner // nil: this process is alone on the store
	Audit   audit.Log        // nil: there is none
	Private bool             // clients get problems with all details
	Log     *slog.Logger
	Now     func() time.Time
}

// Core is safe for concurrent use.
//
// Its locks: mu guards the idempotency keys whose requests run and what is known of the store's answers. Crew has one of its own. Both are leaves: no lock is
// taken and nothing is called under them, so that a caller may hold its own.
type Core struct {
	Store record.Store
	Log   *slog.Logger
	Ended context.Context // ends with the hub; of what goes on in the background
	Crew  Crew            // of RunInBackground

	o        Options
	rowsLate atomic.Int64 // audit rows that are still to be written after their requests have ended

	mu       sync.Mutex
	promises map[string]*promise
	draining bool
	away     time.Time      // since when the store accepts no record, but not before the drain; zero while it accepts them
	lacks    *problem.Error // the store's error then
	owing    int            // records that are not written because the store does not answer
}

// New returns a Core whose work in the background is to end with ended.
func New(ended context.Context, o Options) *Core {
	return &Core{Store: o.Store, Log: o.Log, Ended: ended, o: o, promises: map[string]*promise{}}
}

// Now returns the time, in the store's precision.
func (c *Core) Now() time.Time { return c.o.Now().Truncate(time.Microsecond) }

// RunInBackground runs f in a goroutine. ctx ends with the hub.
func (c *Core) RunInBackground(f func(ctx context.Context)) {
	c.Crew.run(func() { f(c.Ended) })
}

// Crew counts goroutines. Unlike with a sync.WaitGroup more may be begun during a wait: requests come until the very end.
type Crew struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n becomes 0; nil while no goroutine waits
}

func (c *Crew) run(f func()) {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	go func() {
		defer c.leave()
		f()
	}()
}

func (c *Crew) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// Wait returns as soon as none runs.
func (c *Crew) Wait() {
	c.mu.Lock()
	if c.n == 0 {
		c.mu.Unlock()
		return
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	<-idle
}

// IsClosed says whether a channel is closed.
func IsClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// PublicProblem returns the problem that ended a turn or an execution without the details that are for the operator. Those are in the log, with the id.
func (c *Core) PublicProblem(ctx context.Context, what, id string, err error) *problem.Error {
	if c.o.Private {
		return problem.Of(err)
	}
	p, differs := problem.Public(err)
	if differs {
		c.Log.WarnContext(ctx, "a problem of which clients get less detail", what, id, "code", p.Code, "error", err, "hint", problem.Of(err).Hint)
	}
	return p
}
