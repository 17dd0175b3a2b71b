// Package sandboxclock has what surfaces need whose sandboxes end at a time of their own: clocks, and the requests that end with a sandbox.
package sandboxclock

import (
	"context"
	"sync"
	"time"
)

// Clocks end sandboxes in time, and with them the requests that use them. What they know is of this process: after a restart a sandbox that is used again gets its clock again,
// and one that is not is paused or deleted by the hub.
type Clocks struct {
	End func(session string) // called when a sandbox has reached its end

	mu  sync.Mutex
	all map[string]*clock
}

// clock is that of one sandbox.
type clock struct {
	changing sync.Mutex // held while its record is read and written
	timer    *time.Timer
	uses     map[*use]struct{}
	seen     time.Time // when a request that counts as a use has ended last; zero: none has
}

// use is a request that uses a sandbox.
type use struct {
	stop  context.CancelCauseFunc
	quiet bool // it does not count as a use
}

func (c *Clocks) of(session string) *clock {
	if c.all == nil {
		c.all = map[string]*clock{}
	}
	k := c.all[session]
	if k == nil {
		k = &clock{uses: map[*use]struct{}{}}
		c.all[session] = k
	}
	return k
}

// Alone has changes of one sandbox's record wait for each other.
func (c *Clocks) Alone(session string) (release func()) {
	c.mu.Lock()
	k := c.of(session)
	c.mu.Unlock()
	k.changing.Lock()
	return k.changing.Unlock
}

// Set has a sandbox end at a time; zero: at none.
func (c *Clocks) Set(session string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.of(session)
	if k.timer != nil {
		k.timer.Stop()
	}
	k.timer = nil
	if !at.IsZero() {
		k.timer = time.AfterFunc(time.Until(at), func() { c.End(session) })
	}
}

// Know gives a sandbox its clock that has none.
func (c *Clocks) Know(session string, at time.Time) {
	c.mu.Lock()
	k := c.of(session)
	known := k.timer != nil
	c.mu.Unlock()
	if !known {
		c.Set(session, at)
	}
}

// Ring ends a sandbox now.
func (c *Clocks) Ring(session string) { c.End(session) }

// Enter returns the context of a request that uses a sandbox; leave is to be called at its end. A quiet one ends with the sandbox, too, and does not count as a use.
func (c *Clocks) Enter(ctx context.Context, session string, quiet bool) (inside context.Context, leave func()) {
	ctx, stop := context.WithCancelCause(ctx)
	u := &use{stop, quiet}
	c.mu.Lock()
	c.of(session).uses[u] = struct{}{}
	c.mu.Unlock()
	return ctx, func() {
		c.mu.Lock()
		if k := c.all[session]; k != nil {
			delete(k.uses, u)
			if !quiet {
				k.seen = time.Now()
			}
		}
		c.mu.Unlock()
		stop(nil)
	}
}

// Seen returns when a sandbox was used last through this process; now while a request uses it. Zero: it was not.
func (c *Clocks) Seen(session string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.all[session]
	if k == nil {
		return time.Time{}
	}
	for u := range k.uses {
		if !u.quiet {
			return time.Now()
		}
	}
	return k.seen
}

// Stop ends the requests of a sandbox, and forgets it.
func (c *Clocks) Stop(session string, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.all[session]
	if k == nil {
		return
	}
	if k.timer != nil {
		k.timer.Stop()
	}
	for u := range k.uses {
		u.stop(why)
	}
	delete(c.all, session)
}

// Known lists the sandboxes that have a clock.
func (c *Clocks) Known() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]string, 0, len(c.all))
	for session := range c.all {
		all = append(all, session)
	}
	return all
}
