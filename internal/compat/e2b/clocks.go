package e2b

import (
	"context"
	"errors"
	"sync"
	"time"

	"cove/internal/hub"
)

// Why the requests of a sandbox end.
var (
	errKilled = errors.New("the sandbox was killed")
	errEnded  = errors.New("the sandbox has reached its timeout")
	errPaused = errors.New("the sandbox was paused")
)

// clocks end sandboxes in time, and with them the requests that use them. What they know is of this process: after a restart a sandbox that is used again gets its clock again,
// and one that is not is deleted by the hub.
type clocks struct {
	end func(session string) // called when a sandbox has reached its end

	mu  sync.Mutex
	all map[string]*clock
}

// clock is that of one sandbox.
type clock struct {
	changing sync.Mutex // held while its record is read and written
	timer    *time.Timer
	uses     map[*use]struct{}
}

// use is a request that uses a sandbox.
type use struct{ stop context.CancelCauseFunc }

func (c *clocks) of(session string) *clock {
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

// alone has changes of one sandbox's record wait for each other.
func (c *clocks) alone(session string) (release func()) {
	c.mu.Lock()
	k := c.of(session)
	c.mu.Unlock()
	k.changing.Lock()
	return k.changing.Unlock
}

// set has a sandbox end when its record says so.
func (c *clocks) set(session string, r record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.of(session)
	if k.timer != nil {
		k.timer.Stop()
	}
	k.timer = nil
	if !r.Paused {
		k.timer = time.AfterFunc(time.Until(r.End), func() { c.end(session) })
	}
}

// know gives a sandbox its clock that has none.
func (c *clocks) know(session string, r record) {
	c.mu.Lock()
	k := c.of(session)
	known := k.timer != nil
	c.mu.Unlock()
	if !known {
		c.set(session, r)
	}
}

// ring ends a sandbox now.
func (c *clocks) ring(session string) { c.end(session) }

// enter returns the context of a request that uses a sandbox; leave is to be called at its end.
func (c *clocks) enter(ctx context.Context, session string) (inside context.Context, leave func()) {
	ctx, stop := context.WithCancelCause(ctx)
	u := &use{stop}
	c.mu.Lock()
	c.of(session).uses[u] = struct{}{}
	c.mu.Unlock()
	return ctx, func() {
		c.mu.Lock()
		if k := c.all[session]; k != nil {
			delete(k.uses, u)
		}
		c.mu.Unlock()
		stop(nil)
	}
}

// stop ends the requests of a sandbox, and forgets it.
func (c *clocks) stop(session string, why error) {
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

// known lists the sandboxes that have a clock.
func (c *clocks) known() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]string, 0, len(c.all))
	for session := range c.all {
		all = append(all, session)
	}
	return all
}

// atEnd pauses or deletes a sandbox whose end has come, unless somebody has prolonged its life meanwhile.
func (s *server) atEnd(session string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, who, err := s.Hub.LinkOf(ctx, s.token(session))
	row := hub.Session{}
	if err == nil {
		row, err = s.Hub.Session(ctx, who, session)
	}
	r, ok := recordOf(row, kindSandbox)
	if err != nil || !ok { // it is gone, or the hub deletes it by its own clock
		s.clocks.stop(session, errEnded)
		return
	}
	if r.Paused || time.Now().Before(r.End) {
		return
	}
	if r.AutoPause {
		s.clocks.stop(session, errPaused)
		_, err = s.Hub.PauseSession(ctx, who, session)
	} else {
		s.clocks.stop(session, errEnded)
		err = s.Hub.DeleteSession(ctx, who, session)
	}
	if err != nil {
		s.Log.WarnContext(ctx, "a sandbox has reached its end and could not be ended", "session", session, "error", err)
	}
}
