package benchcmd

import (
	"context"
	"io"
	"sync"

	"cove/internal/commands/app"
	"cove/internal/core/config"
	"cove/internal/machine/sandbox"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
	"cove/internal/python/pyenv"
	"cove/internal/sessions/pool"
	"cove/internal/sessions/session"
	"cove/tools/bench"
)

// poolSize is how many sessions are kept ready where the memory allows it.
const poolSize = 8

// Side is cove's own side of the measurements.
type Side struct {
	Cove  bench.Cove
	Env   *pyenv.Environment          // the standard environment, for the peers
	Close func(context.Context) error // frees what Cove holds
}

// Prepare makes cove's own side of what it is in every command: sessions of the warm interpreter, and a pool of them.
func Prepare(ctx context.Context, c config.Config, progress io.Writer) (*Side, error) {
	parts, err := app.NewParts(ctx, c, progress)
	if err != nil {
		return nil, err
	}
	kept, err := parts.NewPool(poolSize)
	if err != nil {
		return nil, err
	}
	own := &ownSide{parts: parts, pool: kept}
	own.start = sync.OnceFunc(func() { own.run(context.WithoutCancel(ctx)) })
	return &Side{Cove: own, Env: parts.Template.Env, Close: own.close}, nil
}

// ownSide implements bench.Cove.
type ownSide struct {
	parts *app.Parts
	pool  *pool.Pool[*session.Live]
	start func() // the pool, once: rows that need none are measured without one
	stop  context.CancelFunc
	done  chan error
}

var _ bench.Cove = (*ownSide)(nil)

func (s *ownSide) run(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	s.done = make(chan error, 1)
	go func() { s.done <- s.pool.Run(ctx) }()
}

func (s *ownSide) close(context.Context) error {
	if s.stop == nil {
		return nil
	}
	s.stop()
	return <-s.done
}

// Open starts a session from the template.
func (s *ownSide) Open(ctx context.Context) (bench.CoveSession, error) {
	return session.Open(ctx, s.parts.Template)
}

// Fill waits until the pool is full.
func (s *ownSide) Fill(ctx context.Context) error {
	s.start()
	return s.pool.Fill(ctx)
}

// Claim takes a session from the pool.
func (s *ownSide) Claim(ctx context.Context) (bench.CoveSession, error) { return s.pool.Claim(ctx) }

// Install opens a session that lacks a distribution, or has it installed.
func (s *ownSide) Install(ctx context.Context, distribution string, r bench.Readiness, have bool) (bench.CoveSession, error) {
	packages := s.parts.Packages
	p, err := packages.Install(ctx, []require.Requirement{{Name: distribution}}, installation.State{}, func(installation.Progress) {})
	if err != nil {
		return nil, err
	}
	if r == bench.Downloaded {
		if err := packages.Store().Remove(ctx, p.Layer); err != nil {
			return nil, err
		}
	}
	o := s.parts.Template
	if have {
		o.Installed = p.State
	}
	return s.parts.Open(ctx, o)
}

// Resume starts a session from a saved one.
func (s *ownSide) Resume(ctx context.Context, dir string) (bench.CoveSession, error) {
	o := s.parts.Template
	o.Checkpoint, o.Reseed = sandbox.CheckpointIn(dir), false
	return session.Open(ctx, o)
}
