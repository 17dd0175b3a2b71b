// Package pool keeps things ready ahead of need: sandboxes with a warm kernel in
// them, so that a claim costs a channel receive and not a start.
//
// What is claimed leaves the pool for good; nothing that user code has touched ever comes back. The pool refills in the background, one at a time, and pauses
// while claims come in, so that it does not take processor time from what was claimed. After many claims in a short time it keeps more for a while.
package pool

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cove/internal/core/memory"
	"cove/internal/core/telemetry"
)

// Options describe a pool of T.
type Options[T any] struct {
	// Size is how many are kept ready; at least 1.
	Size int
	// Most is how many are kept ready at most, after so many were claimed within a minute of the last quarter of an hour; Size when it is less.
	Most int
	// Make makes one, as ready as can be. It is called by at most one goroutine of the pool at a time, and by claims
	// that find the pool empty, which may be many.
	Make func(ctx context.Context) (T, error)
	// Polish makes one more ready than a claim would wait for; nil does nothing. It is called for what the pool makes ahead, never for what a claim makes.
	Polish func(ctx context.Context, t T) error
	// Discard ends one that nobody claimed, or that is not usable any more.
	Discard func(T)
	// Usable says whether one that waited is still good; nil means it always is.
	Usable func(T) bool
	// Calm is how long no claim must have come before the pool makes another, while it is not empty, and 20 times that while it is at least half
	// full: right after a claim, what was claimed is busiest. 0 means 50 ms.
	Calm time.Duration
	// Room says whether there is memory for another one; nil means that there always is. While there is none the pool stays as it is.
	Room func() bool
	// Failed is called with errors of Make in the background; nil ignores them. The pool tries again, after longer and longer waits.
	Failed func(error)
}

// Pool is safe for concurrent use. Run fills it; without Run, and after it, every claim makes its own.
type Pool[T any] struct {
	opts    Options[T]
	ready   chan T
	wanted  chan struct{} // holds a token when the pool may be short
	claimed atomic.Int64  // when the last claim came, in nanoseconds

	mu      sync.Mutex
	demand  demand
	making  *making // what Run makes now; nil: nothing
	failure error   // of Make, the last time
}

// making is one that is being made ahead.
type making struct {
	done    chan struct{} // closed when it is ready, or could not be made
	awaited bool          // by a claim, which takes it as soon as it is made
}

// New returns an empty pool.
func New[T any](o Options[T]) *Pool[T] {
	o.Size = max(o.Size, 1)
	o.Most = max(o.Most, o.Size)
	if o.Calm == 0 {
		o.Calm = 50 * time.Millisecond
	}
	return &Pool[T]{opts: o, ready: make(chan T, o.Most), wanted: make(chan struct{}, 1)}
}

// Ready is how many could be claimed now.
func (p *Pool[T]) Ready() int { return len(p.ready) }

// Failure is why none can be had: none is ready, and the last one could not be made. Run goes on trying.
func (p *Pool[T]) Failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ready) > 0 {
		return nil
	}
	return p.failure
}

// make makes one.
func (p *Pool[T]) make(ctx context.Context) (T, error) {
	t, err := p.opts.Make(ctx)
	if ctx.Err() == nil { // else the caller may have given it up
		p.mu.Lock()
		defer p.mu.Unlock()
		p.failure = err
	}
	return t, err
}

// target is how many are to be ready now.
func (p *Pool[T]) target() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(max(p.opts.Size, p.demand.most(time.Now())), p.opts.Most)
}

// Fill waits until the pool is full, which Run has to be doing.
func (p *Pool[T]) Fill(ctx context.Context) error {
	const interval = 5 * time.Millisecond
	for len(p.ready) < p.target() {
		if !sleep(ctx, interval) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// Claim takes one out of the pool: a ready one if there is any, else one that is being made and that no other claim waits for, else one made for this claim. From then on the caller owns it.
func (p *Pool[T]) Claim(ctx context.Context) (T, error) {
	p.note()
	defer p.want()
	for waited := false; ; {
		select {
		case t := <-p.ready:
			if p.opts.Usable == nil || p.opts.Usable(t) {
				claimed(ctx, "ready")
				return t, nil
			}
			p.opts.Discard(t)
		default:
			if !waited && p.await(ctx) {
				waited = true
				continue
			}
			claimed(ctx, "made")
			return p.make(ctx)
		}
	}
}

// await waits until what Run makes is ready, when there is such and no other claim waits for it: two that are made at the same time slow each other down. It says whether it waited.
func (p *Pool[T]) await(ctx context.Context) bool {
	p.mu.Lock()
	m := p.making
	if m == nil || m.awaited {
		p.mu.Unlock()
		return false
	}
	m.awaited = true
	p.mu.Unlock()
	select {
	case <-m.done:
	case <-ctx.Done():
	}
	return true
}

// begin notes that Run makes one, and returns what ends that.
func (p *Pool[T]) begin() (m *making, end func()) {
	m = &making{done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.making = m
	return m, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.making = nil
		close(m.done)
	}
}

func (p *Pool[T]) isAwaited(m *making) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return m.awaited
}

func (p *Pool[T]) note() {
	now := time.Now()
	p.claimed.Store(now.UnixNano())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.demand.note(now)
}

func claimed(ctx context.Context, result string) {
	telemetry.Count(ctx, telemetry.Claims, 1, result)
	telemetry.Note(ctx, slog.String("sandbox", result))
}

func (p *Pool[T]) want() {
	select {
	case p.wanted <- struct{}{}:
	default:
	}
}

// Run fills the pool and keeps it full until ctx ends; then it discards what is ready. It returns nil. Call it once.
func (p *Pool[T]) Run(ctx context.Context) error {
	defer p.drain()
	for p.fill(ctx) {
		for len(p.ready) > p.target() {
			p.discardOne() // or somebody has just claimed it
		}
		var later <-chan time.Time
		if p.target() > p.opts.Size { // it will be less again without a claim
			later = time.After(spell)
		}
		select {
		case <-p.wanted:
		case <-later:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// fill makes what is missing. It returns false when ctx has ended.
func (p *Pool[T]) fill(ctx context.Context) bool {
	const longestPause = 30 * time.Second
	pause := 100 * time.Millisecond
	for len(p.ready) < p.target() {
		if !p.calm(ctx) || !p.roomy(ctx) {
			return false
		}
		began := time.Now()
		err := p.addOne(ctx)
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			if p.opts.Failed != nil {
				p.opts.Failed(fmt.Errorf("fill the pool: %w", err))
			}
			if !sleep(ctx, pause) {
				return false
			}
			pause = min(2*pause, longestPause)
			continue
		}
		pause = 100 * time.Millisecond
		if len(p.ready) >= p.opts.Size && len(p.ready) < p.target() && !sleep(ctx, time.Since(began)) {
			return false // what is kept beyond Size is not urgent: it gets half of the time that it could have
		}
	}
	return true
}

// addOne makes one and adds it to what is ready.
func (p *Pool[T]) addOne(ctx context.Context) error {
	m, end := p.begin()
	defer end()
	t, err := p.make(ctx)
	if err != nil {
		return err
	}
	if p.opts.Polish != nil && !p.isAwaited(m) {
		err = p.opts.Polish(ctx, t)
	}
	if err != nil || ctx.Err() != nil {
		p.opts.Discard(t)
		return err
	}
	p.ready <- t // only Run adds to the pool, so there is room
	return nil
}

// roomy waits until there is room for another one. It returns false when ctx has ended.
func (p *Pool[T]) roomy(ctx context.Context) bool {
	const interval = time.Second
	for p.opts.Room != nil && !p.opts.Room() {
		if !sleep(ctx, interval) {
			return false
		}
	}
	return true
}

// Shed discards one that is ready, and says whether there was any.
func (p *Pool[T]) Shed() bool {
	shed := p.discardOne()
	if shed {
		p.want()
	}
	return shed
}

func (p *Pool[T]) discardOne() bool {
	select {
	case t := <-p.ready:
		p.opts.Discard(t)
		return true
	default:
		return false
	}
}

// calm waits until no claim has come for a while; with an empty pool it returns at once. It returns false when ctx has ended.
func (p *Pool[T]) calm(ctx context.Context) bool {
	for len(p.ready) > 0 {
		patience := p.opts.Calm
		if 2*len(p.ready) >= p.opts.Size {
			patience *= 20
		}
		left := patience - time.Since(time.Unix(0, p.claimed.Load()))
		if left <= 0 {
			break
		}
		if !sleep(ctx, min(left, p.opts.Calm)) { // there may be fewer left by then
			return false
		}
	}
	return ctx.Err() == nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *Pool[T]) drain() {
	var discarding sync.WaitGroup // in parallel: each takes a while, and drain's caller waits for all
	defer discarding.Wait()
	for {
		select {
		case t := <-p.ready:
			discarding.Go(func() { p.opts.Discard(t) })
		default:
			return
		}
	}
}

// SizeFor returns how many things of cost bytes each may be kept ready: at most want, and no more than a quarter of the memory
// that the machine has available now can hold, but at least one.
func SizeFor(want int, cost int64) (int, error) {
	room, err := memory.Machine{}.Look()
	if err != nil {
		return 1, err
	}
	return max(1, min(want, int(room.Available/4/max(cost, 1)))), nil
}
