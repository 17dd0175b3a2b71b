package stream

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	commitDelay  = 25 * time.Millisecond // from an event's coming to its being written
	longestDelay = 2 * time.Second       // between attempts while the store takes nothing
	commitBudget = time.Minute           // of one transaction
	lastBudget   = 2 * time.Second       // of the last one, when life has ended
	salvageTries = 32                    // writes in which to find the events of a stream that the store refuses
)

// committer writes the events of all open streams to the store, many in one transaction. It has a goroutine only while there is something to write.
type committer struct {
	life  context.Context
	store Store
	log   *slog.Logger
	size  int           // of one transaction, in bytes of events
	full  chan struct{} // a stream has much to write

	mu    sync.Mutex
	dirty map[*Writer]bool
	done  chan struct{} // closed when the goroutine ends; nil while there is none
}

// note has the events of w written: soon, or with much at once.
func (c *committer) note(w *Writer, much bool) {
	c.mu.Lock()
	c.dirty[w] = true
	if c.done == nil {
		c.done = make(chan struct{})
		go c.work(c.life, c.done)
	}
	c.mu.Unlock()
	if much {
		select {
		case c.full <- struct{}{}:
		default:
		}
	}
}

// wait returns when the committer has no goroutine.
func (c *committer) wait() {
	c.mu.Lock()
	done := c.done
	c.mu.Unlock()
	if done != nil {
		<-done
	}
}

// work writes until nothing is left to write. When ctx ends, it writes at once and gives up what the store does not take then.
func (c *committer) work(ctx context.Context, done chan struct{}) {
	defer close(done)
	wait, retry := commitDelay, commitDelay
	for {
		timer, full := time.NewTimer(wait), c.full
		if wait > commitDelay {
			full = nil // the store takes nothing; more to write does not change that
		}
		select {
		case <-timer.C:
		case <-full:
		case <-ctx.Done():
		}
		timer.Stop()
		writers := c.take()
		if len(writers) == 0 {
			return
		}
		err := c.write(ctx, writers)
		switch {
		case err == nil:
			wait, retry = commitDelay, commitDelay
		case ctx.Err() != nil:
			c.log.ErrorContext(ctx, "events were not stored", "error", err)
			c.abandon()
			return
		default:
			wait, retry = retry, min(2*retry, longestDelay)
		}
	}
}

// take returns the writers that have events to store. Where there are none, the goroutine that asks has to end, and note begins a new one.
func (c *committer) take() []*Writer {
	c.mu.Lock()
	defer c.mu.Unlock()
	writers := slices.Collect(maps.Keys(c.dirty))
	clear(c.dirty)
	if len(writers) == 0 {
		c.done = nil
	}
	return writers
}

// abandon is the end of the goroutine while there is something left to write.
func (c *committer) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = nil
}

// write stores events of writers. What could not be stored, or is more than one transaction should have, is noted for the next time.
func (c *committer) write(ctx context.Context, writers []*Writer) error {
	budget := commitBudget
	if ctx.Err() != nil {
		budget = lastBudget
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), budget)
	defer cancel()
	held := hold(writers, c.size)
	defer func() {
		for w := range held {
			<-w.writing
		}
	}()
	var batch []Event
	for _, events := range held {
		batch = append(batch, events...)
	}
	if len(batch) == 0 {
		return nil
	}
	err := c.store.AddEvents(ctx, batch)
	if Refused(err) && ctx.Err() == nil {
		err = c.apart(ctx, held)
	}
	for w, events := range held {
		if err == nil && len(events) > 0 {
			w.stored(events[len(events)-1].Seq)
		}
		if err != nil || len(w.waiting(1)) > 0 {
			c.mu.Lock()
			c.dirty[w] = true
			c.mu.Unlock()
		}
	}
	return err
}

// hold acquires the right to write the events of streams, and returns those that a transaction with that much room should write of each. A stream that is being ended is
// left out: Finish writes all of its events.
func hold(writers []*Writer, room int) map[*Writer][]Event {
	held := map[*Writer][]Event{}
	for _, w := range writers {
		select {
		case w.writing <- struct{}{}:
		default:
			continue
		}
		held[w] = w.waiting(room)
		for _, e := range held[w] {
			room -= e.cost()
		}
	}
	return held
}

// apart writes stream by stream, because the store refuses something of one of them.
func (c *committer) apart(ctx context.Context, held map[*Writer][]Event) error {
	for _, events := range held {
		tries := salvageTries
		if err := c.salvage(ctx, events, &tries); err != nil {
			return err
		}
	}
	return nil
}

// salvage writes what the store takes of a stream's events, and a gap in the place of what it refuses.
func (c *committer) salvage(ctx context.Context, events []Event, tries *int) error {
	if len(events) == 0 {
		return nil
	}
	*tries--
	err := c.store.AddEvents(ctx, events)
	if !Refused(err) {
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
	if err = c.store.AddEvents(ctx, []Event{gap}); Refused(err) {
		return nil
	}
	return err
}
