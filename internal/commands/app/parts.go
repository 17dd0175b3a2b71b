package app

import (
	"context"
	"io"
	"path/filepath"

	"cove/internal/core/config"
	"cove/internal/machine/sandbox"
	"cove/internal/python/deps"
	"cove/internal/python/pyenv"
	"cove/internal/sessions/pool"
	"cove/internal/sessions/session"
	"cove/internal/sessions/template"
)

// Parts are what a command makes its sessions of, for cove-bench, which measures them within its own process.
type Parts struct {
	Template session.Options // for session.Open: a copy of the warm interpreter of the standard environment, in gVisor
	Packages *deps.Installer // of a store of its own, so that layers can be removed from it
	cost     int64           // of a session, in bytes of memory
	progress io.Writer
}

// NewParts prepares the parts with these settings, which builds the environment and the warm interpreter when they are missing. It says so to
// progress.
func NewParts(ctx context.Context, c config.Config, progress io.Writer) (*Parts, error) {
	sweep(ctx, c)
	c.Packages.Set, c.Sandbox.Engine = string(pyenv.Standard), "gvisor"
	saver, err := newSaver(c)
	if err != nil {
		return nil, err
	}
	env, err := environment(ctx, c, "", progress)
	if err != nil {
		return nil, err
	}
	apart := c
	apart.Folders.Data = filepath.Join(c.Folders.Data, "bench", "installs")
	packages, err := newPackages(apart, env, progress)
	if err != nil {
		return nil, err
	}
	o := session.Options{Engine: saver, Env: env, Limits: sandbox.Limits{Memory: int64(c.Sandbox.Memory), CPUs: c.Sandbox.CPUs}, Packages: packages}
	t, err := template.Ensure(ctx, templateOf(c, saver, o, progress))
	if err != nil {
		return nil, withDoctor(err)
	}
	o.Checkpoint, o.Reseed = t.Checkpoint(), true
	return &Parts{Template: o, Packages: packages, cost: sessionMemory(c), progress: progress}, nil
}

// Open opens a session as a server's pool does: something has run in it.
func (p *Parts) Open(ctx context.Context, o session.Options) (*session.Live, error) {
	return openUsed(ctx, o)
}

// NewPool returns a pool of up to size sessions from the template, as a server has it; fewer where the memory is short.
func (p *Parts) NewPool(size int) (*pool.Pool[*session.Live], error) {
	size, err := pool.SizeFor(size, p.cost)
	if err != nil {
		return nil, err
	}
	return newPool(func(ctx context.Context) (*session.Live, error) { return openUsed(ctx, p.Template) }, size, size, p.cost, p.progress), nil
}
