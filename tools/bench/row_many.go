package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const notMany = "it keeps no variables between executions, so there is nothing that could be idle"

func memoryRow() Row {
	return Row{
		ID: "memory", Title: "memory of an idle session", Rounds: 1, Quick: 1,
		Measures: []Measure{
			{ID: "memory", Title: "host memory of an idle session", Unit: "MB",
				Detail: "MemAvailable before less after, for 20 sessions (5 with --quick) with numpy, pandas and matplotlib imported, each."},
			{ID: "memory-pss", Title: "the same, by the processes' own account", Unit: "MB",
				Detail: "Pss of the processes that are new, and the growth of cove's own, each; it counts shared library pages, and misses what no process maps."},
		},
		Able: as[Stateful](notMany),
		Round: func(ctx context.Context, s Subject, rec Recorder) error {
			n := 20
			if rec.Quick {
				n = 5
			}
			if p, ok := s.(Pooled); ok {
				if err := p.Refill(ctx); err != nil {
					return fmt.Errorf("prepare: %w", err)
				}
			}
			before := settled(ctx)
			var c crowd
			defer func() { c.close(ctx, rec) }()
			for range n {
				l, err := s.(Stateful).Open(ctx)
				if err != nil {
					return err
				}
				c.lives = append(c.lives, l)
				if _, err := timed(ctx, time.Now(), l, imports()); err != nil {
					return err
				}
			}
			between := shareOut()
			after := settled(ctx)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			rec.Value(0, megabytes(before.available-after.available)/float64(n))
			rec.Value(1, megabytes(after.shares.since(before.shares, between))/float64(n))
			return nil
		},
	}
}

func crowdRow() Row {
	return Row{
		ID: "crowd", Title: "100 sessions at once", Rounds: 1, Quick: 1,
		Measures: []Measure{
			{ID: "crowd", Title: "100 sessions at once: first result of each", Unit: "ms",
				Detail: "all start together and execute 1+1; counted from the common start."},
			{ID: "crowd-all", Title: "100 sessions at once: until all have answered", Unit: "ms", Detail: "the slowest of them."},
			{ID: "crowd-again", Title: "100 sessions at once: each once more while all live", Unit: "ms",
				Detail: "all execute 1+1 at the same moment; counted from that moment."},
		},
		Able: as[Stateful](notMany),
		Round: func(ctx context.Context, s Subject, rec Recorder) error {
			many, n := s.(Stateful), 100
			if rec.Quick {
				n = 20
				rec.Note("20 sessions, not 100, for --quick")
			}
			if room := int(memInfo()["MemAvailable"] * 8 / 10 / many.Footprint()); room < n {
				n = max(room, 1)
				rec.Note(fmt.Sprintf("only %d sessions: there is no memory for more", n))
			}
			if p, ok := s.(Pooled); ok {
				if err := p.Refill(ctx); err != nil {
					return fmt.Errorf("prepare: %w", err)
				}
				defer quiet(ctx, p)
			}
			c := crowd{lives: make([]Live, n)}
			begun := time.Now()
			c.each(func(i int) {
				var err error
				if c.lives[i], err = many.Join(ctx); err == nil {
					var d time.Duration
					if d, err = timed(ctx, begun, c.lives[i], sum()); err == nil {
						rec.took(0, d)
					}
				}
				c.note(err, func() { rec.Fail(0, err) })
			})
			if c.failed == 0 {
				rec.took(1, time.Since(begun))
			} else {
				rec.Fail(1, fmt.Errorf("%d of %d gave no result", c.failed, n))
			}
			begun = time.Now()
			c.each(func(i int) {
				if c.lives[i] == nil {
					rec.Fail(2, errors.New("never started"))
					return
				}
				d, err := timed(ctx, begun, c.lives[i], sum())
				if err == nil {
					rec.took(2, d)
					return
				}
				rec.Fail(2, err)
			})
			c.close(ctx, rec)
			return nil
		},
	}
}

// crowd is many sessions that do things at the same time.
type crowd struct {
	lives []Live

	mu     sync.Mutex
	failed int
}

func (c *crowd) each(do func(i int)) {
	var wg sync.WaitGroup
	for i := range c.lives {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

func (c *crowd) note(err error, fail func()) {
	if err == nil {
		return
	}
	fail()
	c.mu.Lock()
	c.failed++
	c.mu.Unlock()
}

// close frees all, a few at a time. It comes after the measuring, so what goes wrong is noted and fails no sample.
func (c *crowd) close(ctx context.Context, rec Recorder) {
	turn := make(chan struct{}, 8)
	c.each(func(i int) {
		if c.lives[i] == nil {
			return
		}
		turn <- struct{}{}
		defer func() { <-turn }()
		var err error
		if free(ctx, c.lives[i], &err); err != nil {
			rec.Note("a session could not be closed: " + explain(err))
		}
	})
}
