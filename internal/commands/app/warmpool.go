package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"golang.org/x/sync/errgroup"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/snapshot"
	"cove/internal/server/hub"
	"cove/internal/sessions/ondisk"
	"cove/internal/sessions/pool"
	"cove/internal/sessions/session"
	"cove/internal/sessions/template"
)

// sessionMemory is about what an idle session of the standard environment costs the host, in bytes.
func sessionMemory(c config.Config) int64 {
	if !c.Saves() {
		return 240 << 20 // it has nothing in common with others
	}
	if c.Sandbox.ShareTemplate {
		return 48 << 20
	}
	return hub.SessionMemory
}

// newPool returns a pool of what start makes: size of them, and up to most after many were wanted, as far as the memory of a session allows.
func newPool(start func(context.Context) (*session.Live, error), size, most int, memory int64, progress io.Writer) *pool.Pool[*session.Live] {
	return pool.New(pool.Options[*session.Live]{
		Size:    size,
		Most:    most,
		Make:    start,
		Polish:  template.RehearseFirst,
		Discard: func(s *session.Live) { _ = s.Close(context.Background()) }, // what stays is swept by the next command
		Usable: func(s *session.Live) bool {
			select {
			case <-s.Lost():
				return false
			default:
				return true
			}
		},
		Room:   func() bool { return roomFor(memory) },
		Failed: func(err error) { sayFailed(progress, problem.Of(err)) },
	})
}

// roomFor says whether the machine has that much memory for something that waits, in bytes, with room for the sessions in use to grow.
func roomFor(memory int64) bool {
	room, err := machine().Look()
	return err != nil || room.Available > memory+2*room.Growth()
}

func sayFailed(progress io.Writer, p *problem.Error) {
	_, _ = fmt.Fprintln(progress, "cove:", p.Message)
}

// rehearsed runs something in a new session, because what runs first in a restored sandbox runs slowly.
func rehearsed(ctx context.Context, s *session.Live, err error) (*session.Live, error) {
	if err != nil {
		return nil, err
	}
	if err := s.Rehearse(ctx); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// openReady opens a session as it waits in a pool. Where there is no template to start from, it is warmed up like one.
func openReady(ctx context.Context, c config.Config, o session.Options, progress io.Writer) (*session.Live, error) {
	s, err := openWarm(ctx, c, o, progress)
	if _, saves := o.Engine.(sandbox.Saver); err == nil && !saves {
		if err := template.Warm(ctx, s); err != nil {
			return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}
	return rehearsed(ctx, s, err)
}

// openUsed opens a session and runs something in it.
func openUsed(ctx context.Context, o session.Options) (*session.Live, error) {
	s, err := session.Open(ctx, o)
	return rehearsed(ctx, s, err)
}

// warmPool gives a server's new sessions a sandbox that waits for them already, where they are what most are.
type warmPool struct {
	base    ondisk.Base
	prepare ondisk.Prepare
	ground  *ondisk.Ground                     // of base
	again   func(b ondisk.Base) *ondisk.Ground // the same for sessions that had kernels of these names
	pool    *pool.Pool[*session.Live]
	booted  *bootedPool // for sessions that are resumed or copied
	size    int
}

// newWarmPool prepares what new sessions stand on, which builds the environment and the warm interpreter when they are missing. Without a
// size sessions are started when they are wanted.
func newWarmPool(ctx context.Context, version string, c config.Config, base ondisk.Base, progress io.Writer) (*warmPool, error) {
	e := &engines{}
	o, ground, err := prepareServed(ctx, version, c, e, base, progress)
	if err != nil {
		return nil, err
	}
	prepare := func(ctx context.Context, b ondisk.Base) (*ondisk.Ground, error) {
		_, g, err := prepareServed(ctx, version, c, e, b, progress)
		return g, err
	}
	p := &warmPool{base: base, prepare: prepare, ground: ground, again: func(b ondisk.Base) *ondisk.Ground {
		known := o
		known.Kernels, known.Parked = b.Kernels, b.Parked
		g := *ground
		started := groundOf(c, known, ground.Key, progress)
		g.Start, g.Join = started.Start, started.Join
		return &g
	}}
	if err := haveTemplate(ctx, c, o, progress); err != nil {
		return nil, err
	}
	if c.Serve.Pool == 0 {
		return p, nil
	}
	cost := sessionMemory(c)
	if p.size, err = pool.SizeFor(c.Serve.Pool, cost); err != nil {
		return nil, err
	}
	most, err := pool.SizeFor(cmp.Or(c.Serve.PoolMost, math.MaxInt), cost)
	if err != nil {
		return nil, err
	}
	if saver, ok := o.Engine.(sandbox.Saver); ok {
		p.booted = newBootedPool(saver, o.SandboxSpec(), p.size, progress)
		e.booted = p.booted
	}
	ahead := o
	ahead.Prepared = nil // the pool has time to boot its own
	p.pool = newPool(func(ctx context.Context) (*session.Live, error) {
		return openReady(ctx, c, ahead, progress)
	}, p.size, most, cost, progress)
	return p, nil
}

// haveTemplate makes the warm interpreter before anybody waits for it. Where none can be made, sessions say so and start cold.
func haveTemplate(ctx context.Context, c config.Config, o session.Options, progress io.Writer) error {
	saver, ok := o.Engine.(sandbox.Saver)
	if !ok {
		return nil
	}
	t, err := template.Ensure(ctx, templateOf(c, saver, o, progress))
	if err == nil {
		t.Warm()
	} else {
		_, _ = fmt.Fprintf(progress, "cove: sessions start without the warm interpreter, which takes longer: %s\n", problem.Of(err).Message)
	}
	return ctx.Err()
}

// Prepare is ondisk.Prepare for the server's sessions.
func (p *warmPool) Prepare(ctx context.Context, b ondisk.Base) (*ondisk.Ground, error) {
	if !p.fits(b) {
		return p.prepare(ctx, b)
	}
	if len(b.Kernels) > 0 {
		return p.again(b), nil
	}
	if p.pool == nil {
		return p.ground, nil
	}
	g := *p.ground
	g.Start = func(ctx context.Context, from *snapshot.Snapshot, reseed bool) (ondisk.Live, error) {
		if from != nil {
			return p.ground.Start(ctx, from, reseed)
		}
		return asLive(p.pool.Claim(ctx))
	}
	return &g, nil
}

func (p *warmPool) fits(b ondisk.Base) bool {
	return b.Engine == p.base.Engine && b.Packages == p.base.Packages && b.Limits == p.base.Limits && len(b.Installed.Layers) == 0 && len(b.Volumes) == 0 &&
		(b.Environment == "" || b.Environment == p.ground.Key.Environment)
}

// Run keeps the pool full until ctx ends.
func (p *warmPool) Run(ctx context.Context) error {
	if p.pool == nil {
		<-ctx.Done()
		return nil
	}
	var both errgroup.Group
	both.Go(func() error { return p.pool.Run(ctx) })
	if p.booted != nil {
		both.Go(func() error { return p.booted.pool.Run(ctx) })
	}
	return both.Wait()
}

// Shed ends a sandbox that waits, and says whether there was any.
func (p *warmPool) Shed() bool {
	return p.pool != nil && p.pool.Shed() || p.booted != nil && p.booted.pool.Shed()
}

// Failure is why no sandbox for a new session can be had, as far as is known: nothing is where none are kept ready.
func (p *warmPool) Failure() error {
	if p.pool == nil {
		return nil
	}
	return p.pool.Failure()
}

// Ready is how many sandboxes wait.
func (p *warmPool) Ready() int {
	if p.pool == nil {
		return 0
	}
	return p.pool.Ready()
}
