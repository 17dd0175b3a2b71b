package app

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"

	"cove/internal/bench"
	"cove/internal/cli"
	"cove/internal/config"
	"cove/internal/install"
	"cove/internal/pool"
	"cove/internal/pydeps"
	"cove/internal/pydeps/require"
	"cove/internal/pyenv"
	"cove/internal/sandbox"
	"cove/internal/session"
	"cove/internal/template"
)

const (
	// poolSize is how many sessions are kept ready where the memory allows it.
	poolSize = 8
	// sessionMemory is about what an idle session of the standard environment costs the host, in bytes.
	sessionMemory = 120 << 20
)

// newBenchSide prepares cove's own side of `cove bench`: a template, and a pool of copies of it.
func newBenchSide(ctx context.Context, c config.Config, progress io.Writer) (*cli.BenchSide, error) {
	c.Packages, c.Engine = string(pyenv.Standard), "gvisor"
	saver, err := newSaver(c)
	if err != nil {
		return nil, err
	}
	env, err := environment(ctx, c, "", progress)
	if err != nil {
		return nil, err
	}
	// With a store of its own: layers are removed from it.
	apart := c
	apart.Data = filepath.Join(c.Data, "bench", "installs")
	packages, err := newPackages(apart, env, progress)
	if err != nil {
		return nil, err
	}
	o := session.Options{Engine: saver, Env: env, Limits: sandbox.Limits{Memory: int64(c.Memory), CPUs: c.CPUs}, Packages: packages}
	t, err := template.Ensure(ctx, template.Options{Dir: templates(c), Engine: saver, Env: env, Limits: o.Limits, Packages: packages, Progress: progress})
	if err != nil {
		return nil, withDoctor(err)
	}
	size, err := pool.SizeFor(poolSize, sessionMemory)
	if err != nil {
		return nil, err
	}
	o.Image, o.Reseed = t.Image(), true
	side := &benchSide{options: o, packages: packages, pool: newPool(func(ctx context.Context) (*session.Session, error) { return openUsed(ctx, o) }, size, progress)}
	side.start = sync.OnceFunc(func() { side.run(context.WithoutCancel(ctx)) })
	command, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &cli.BenchSide{Cove: side, Env: env, Command: command, Close: side.close}, nil
}

// benchSide implements bench.Cove.
type benchSide struct {
	options  session.Options
	packages *pydeps.Installer
	pool     *pool.Pool[*session.Session]
	start    func() // the pool, once: rows that need none are measured without one
	stop     context.CancelFunc
	done     chan error
}

var _ bench.Cove = (*benchSide)(nil)

func (b *benchSide) run(ctx context.Context) {
	ctx, b.stop = context.WithCancel(ctx)
	b.done = make(chan error, 1)
	go func() { b.done <- b.pool.Run(ctx) }()
}

func (b *benchSide) close(context.Context) error {
	if b.stop == nil {
		return nil
	}
	b.stop()
	return <-b.done
}

// Open starts a session from the template.
func (b *benchSide) Open(ctx context.Context) (bench.CoveSession, error) {
	return session.Open(ctx, b.options)
}

// Fill waits until the pool is full.
func (b *benchSide) Fill(ctx context.Context) error {
	b.start()
	return b.pool.Fill(ctx)
}

// Claim takes a session from the pool.
func (b *benchSide) Claim(ctx context.Context) (bench.CoveSession, error) { return b.pool.Claim(ctx) }

// Install opens a session that lacks a distribution, or has it installed.
func (b *benchSide) Install(ctx context.Context, distribution string, r bench.Readiness, have bool) (bench.CoveSession, error) {
	p, err := b.packages.Install(ctx, []require.Requirement{{Name: distribution}}, install.State{}, func(install.Progress) {})
	if err != nil {
		return nil, err
	}
	if r == bench.Downloaded {
		if err := b.packages.Store().Remove(ctx, p.Layer); err != nil {
			return nil, err
		}
	}
	o := b.options
	if have {
		o.Installed = p.State
	}
	return openUsed(ctx, o)
}

// Resume starts a session from a saved one.
func (b *benchSide) Resume(ctx context.Context, dir string) (bench.CoveSession, error) {
	o := b.options
	o.Image, o.Reseed = dir, false
	return session.Open(ctx, o)
}
