package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// densitySteps are the numbers of sessions at which is measured.
var densitySteps = []int{25, 50, 100, 200, 300, 400}

const (
	// densityTimeout is the patience with one subject.
	densityTimeout = 20 * time.Minute
	// densityAtOnce is how many sessions are opened at a time.
	densityAtOnce = 3
	// densityMost is when it ends all the same.
	densityMost = 2000
)

// densityRow has more and more sessions live at the same time, until the memory ends.
func densityRow() Row {
	row := Row{
		ID: "density", Title: "more and more live sessions", Rounds: 1, Quick: 1, Timeout: densityTimeout,
		Able: as[Stateful](notMany),
		Measures: []Measure{{ID: "density", Title: "live sessions that fit", Unit: "sessions",
			Detail: fmt.Sprintf("with numpy, pandas and matplotlib imported, all answering; opened until an eighth of the memory is left, up to %d.", densityMost)}},
	}
	for _, n := range densitySteps {
		row.Measures = append(row.Measures,
			Measure{ID: fmt.Sprintf("density-%d-memory", n), Title: fmt.Sprintf("host memory of %d live sessions", n), Unit: "MB", Detail: "MemAvailable before less after."},
			Measure{ID: fmt.Sprintf("density-%d", n), Title: fmt.Sprintf("`1+1` while %d sessions live", n), Unit: "ms", Detail: "in each of them, one after the other."})
	}
	row.Round = func(ctx context.Context, s Subject, rec Recorder) error {
		if p, ok := s.(Pooled); ok {
			if err := p.Refill(ctx); err != nil {
				return fmt.Errorf("prepare: %w", err)
			}
			defer quiet(ctx, p)
		}
		steps, most := densitySteps, densityMost
		if rec.Quick {
			steps, most = steps[:1], steps[0]
			rec.Note(fmt.Sprintf("%d sessions at most, for --quick", steps[0]))
		}
		d := &density{subject: s.(Stateful), rec: rec, before: settled(ctx)}
		defer func() { d.close(ctx, rec) }()
		for i, n := range append(slices.Clone(steps), most) {
			if err := d.grow(ctx, n); err != nil {
				rec.Note(err.Error())
				break
			}
			if i == len(steps) {
				break
			}
			if err := d.measure(ctx, 1+2*i); err != nil {
				return err
			}
		}
		rec.Value(0, float64(len(d.lives)))
		return ctx.Err()
	}
	return row
}

// density is a crowd that grows.
type density struct {
	crowd
	subject Stateful
	rec     Recorder
	before  footprint
}

var errNoRoom = errors.New("an eighth of the memory is left")

// grow opens sessions until there are n. The error says why there are fewer.
func (d *density) grow(ctx context.Context, n int) error {
	var wg sync.WaitGroup
	turn := make(chan struct{}, densityAtOnce)
	var mu sync.Mutex
	var why error
	for range n - len(d.lives) {
		turn <- struct{}{}
		mu.Lock()
		if info := memInfo(); why == nil && info["MemAvailable"] < info["MemTotal"]/8 {
			why = errNoRoom
		}
		stop := why != nil || ctx.Err() != nil
		mu.Unlock()
		if stop {
			<-turn
			break
		}
		wg.Go(func() {
			defer func() { <-turn }()
			l, err := d.subject.Join(ctx)
			if err == nil {
				if _, err = timed(ctx, time.Now(), l, imports()); err != nil {
					free(ctx, l, &err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				d.lives = append(d.lives, l)
			} else if why == nil {
				why = err
			}
		})
	}
	wg.Wait()
	if why != nil {
		return fmt.Errorf("no more than %d sessions: %s", len(d.lives), explain(why))
	}
	return ctx.Err()
}

// measure takes the samples of a step, whose first measure has that number.
func (d *density) measure(ctx context.Context, first int) error {
	d.rec.Value(first, megabytes(d.before.available-settled(ctx).available))
	for _, l := range d.lives {
		took, err := timed(ctx, time.Now(), l, sum())
		if err != nil {
			d.rec.Fail(first+1, err)
			continue
		}
		d.rec.took(first+1, took)
	}
	return ctx.Err()
}
