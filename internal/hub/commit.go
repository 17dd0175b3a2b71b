package hub

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// committer writes the events of all streams that run to the store, many in one transaction. It works while there is something to write and is no
// goroutine otherwise.
type committer struct {
	store EventStore
	log   *slog.Logger
	spawn func(func(ctx context.Context))
	full  chan struct{} // a stream has much to write

	mu    sync.Mutex
	dirty map[*eventLog]bool
	works bool
}

// note has the events of l written soon, or at once.
func (c *committer) note(l *eventLog, much bool) {
	c.mu.Lock()
	c.dirty[l] = true
	begin := !c.works
	c.works = true
	c.mu.Unlock()
	if begin {
		c.spawn(c.work)
	}
	if much {
		select {
		case c.full <- struct{}{}:
		default:
		}
	}
}

func (c *committer) work(ctx context.Context) {
	backoff := backoff{first: commitDelay, most: 2 * time.Second}
	wait := commitDelay
	for {
		timer, full := time.NewTimer(wait), c.full
		if wait > commitDelay {
			full = nil // the store does not answer
		}
		select {
		case <-timer.C:
		case <-full:
		case <-ctx.Done(): // the last ones
		}
		timer.Stop()
		c.mu.Lock()
		logs := slices.Collect(maps.Keys(c.dirty))
		clear(c.dirty)
		if len(logs) == 0 {
			c.works = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		if err := c.write(ctx, logs); err != nil {
			if ctx.Err() != nil {
				c.log.ErrorContext(ctx, "events were not stored", "error", err)
				return
			}
			wait = backoff.next()
			continue
		}
		wait = commitDelay
		backoff.reset()
	}
}

// write stores what waits in logs. What could not be stored, or is more than one transaction should have, stays for the next time.
func (c *committer) write(ctx context.Context, logs []*eventLog) error {
	budget := commitBudget
	if ctx.Err() != nil {
		budget = lastPatience
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), budget)
	defer cancel()
	var batch []StoredEvent
	room := commitSize
	held := map[*eventLog][]StoredEvent{}
	defer func() {
		for l := range held {
			<-l.writing
		}
	}()
	for _, l := range logs {
		select {
		case l.writing <- struct{}{}:
		default:
			continue // who ends it writes all that it has
		}
		events := l.waiting(room)
		held[l] = events
		for _, e := range events {
			room -= cost(e)
		}
		batch = append(batch, events...)
	}
	if len(batch) == 0 {
		return nil
	}
	err := c.store.AddEvents(ctx, batch)
	if refused(err) && ctx.Err() == nil {
		err = c.apart(ctx, held)
	}
	for l, events := range held {
		if err == nil && len(events) > 0 {
			l.stored(events[len(events)-1].Seq)
		}
		if err != nil || len(l.waiting(1)) > 0 {
			c.mu.Lock()
			c.dirty[l] = true
			c.mu.Unlock()
		}
	}
	return err
}

// apart writes stream by stream, since the store refuses something of one of them.
func (c *committer) apart(ctx context.Context, held map[*eventLog][]StoredEvent) error {
	for _, events := range held {
		tries := salvageTries
		if err := c.salvage(ctx, events, &tries); err != nil {
			return err
		}
	}
	return nil
}

// salvage writes what the store takes of a stream's events, and a gap in the place of what it refuses.
func (c *committer) salvage(ctx context.Context, events []StoredEvent, tries *int) error {
	if len(events) == 0 {
		return nil
	}
	*tries--
	err := c.store.AddEvents(ctx, events)
	if !refused(err) {
		return err
	}
	if half := len(events) / 2; half > 0 && *tries > 0 {
		if err := c.salvage(ctx, events[:half], tries); err != nil {
			return err
		}
		return c.salvage(ctx, events[half:], tries)
	}
	gap := events[len(events)-1]
	c.log.ErrorContext(ctx, "events were refused by the store", "stream", gap.Stream, "from", events[0].Seq, "until", gap.Seq, "error", err)
	gap.Body = gapBody
	if err = c.store.AddEvents(ctx, []StoredEvent{gap}); refused(err) {
		return nil
	}
	return err
}

// backoff grows from first to most.
type backoff struct{ first, most, last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(max(b.first, 2*b.last), b.most)
	return b.last
}

func (b *backoff) reset() { b.last = 0 }
