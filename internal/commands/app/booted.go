package app

import (
	"context"
	"io"
	"slices"
	"sync"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/machine/sandbox"
	"cove/internal/sessions/pool"
)

const (
	mostBooted   = 2        // a burst of sessions that are resumed has to boot its own, in the time in which the first ones run
	bootedMemory = 24 << 20 // about what a sandbox costs the host in which nothing runs yet, in bytes
)

// bootedPool keeps sandboxes booted, empty: to boot one is a quarter of the time in which a session is resumed or copied, and is the same for every session with the same mounts
// and limits. A nil one has none.
type bootedPool struct {
	engine sandbox.Engine
	spec   sandbox.Spec // of those that wait, but for the ID
	pool   *pool.Pool[sandbox.Prepared]
}

// newBootedPool returns a pool that keeps up to size sandboxes as spec describes them, as far as memory allows.
func newBootedPool(saver sandbox.Saver, spec sandbox.Spec, size int, progress io.Writer) *bootedPool {
	return &bootedPool{engine: saver, spec: spec, pool: pool.New(pool.Options[sandbox.Prepared]{
		Size: min(size, mostBooted),
		Make: func(ctx context.Context) (sandbox.Prepared, error) {
			one := spec
			one.ID = sandbox.NewID("sbx")
			return saver.Prepare(ctx, one)
		},
		Discard: func(p sandbox.Prepared) { _ = p.Stop(context.Background()) }, // what stays is swept by the next command
		Room:    func() bool { return roomFor(bootedMemory) },
		Failed:  func(err error) { sayFailed(progress, problem.Of(err)) },
	})}
}

// ready is how many wait.
func (p *bootedPool) ready() int {
	if p == nil {
		return 0
	}
	return p.pool.Ready()
}

// claim is session.Options.Prepared of sessions on an engine.
func (p *bootedPool) claim(ctx context.Context, engine sandbox.Engine, spec sandbox.Spec) sandbox.Prepared {
	if p == nil || engine != p.engine || spec.Limits != p.spec.Limits || spec.Root != p.spec.Root || spec.Layer != p.spec.Layer || !slices.Equal(spec.Mounts, p.spec.Mounts) || len(spec.Volumes) > 0 || p.ready() == 0 {
		return nil
	}
	waiting, err := p.pool.Claim(telemetry.With(ctx, nil)) // claims are counted for new sessions
	if err != nil {
		return nil // the session says what is wrong when it boots one itself
	}
	return waiting
}

// engines are those of one process's sessions, of each kind one, so that all have the same helper process and can have what was booted before.
type engines struct {
	mu     sync.Mutex
	made   map[string]sandbox.Engine
	booted *bootedPool
}

// of returns the engine that c names.
func (e *engines) of(c config.Config) (sandbox.Engine, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if engine := e.made[c.Sandbox.Engine]; engine != nil {
		return engine, nil
	}
	engine, err := newEngine(c)
	if err == nil {
		if e.made == nil {
			e.made = map[string]sandbox.Engine{}
		}
		e.made[c.Sandbox.Engine] = engine
	}
	return engine, err
}
