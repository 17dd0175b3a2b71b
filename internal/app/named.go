package app

import (
	"context"
	"io"

	"cove/internal/config"
	"cove/internal/named"
	"cove/internal/problem"
	"cove/internal/pyenv"
	"cove/internal/sandbox"
	"cove/internal/session"
	"cove/internal/snapshot"
	"cove/internal/template"
)

// prepareNamed finds what a session with a name stands on: an engine that can save, and the environment that the session
// was made with, or the present one when it is new.
func prepareNamed(c config.Config, progress io.Writer) named.Prepare {
	return func(ctx context.Context, b named.Base) (*named.Ground, error) {
		c := c
		c.Engine, c.Packages = b.Engine, b.Packages
		engine, err := newEngine(c)
		if err != nil {
			return nil, err
		}
		saver, err := sandbox.SaverOf(engine)
		if err != nil {
			return nil, problem.Of(err).WithHint("use --engine gvisor, or leave --session away")
		}
		env, err := environment(ctx, c, b.Environment, progress)
		if err != nil {
			return nil, err
		}
		packages, err := newPackages(c, env, progress)
		if err != nil {
			return nil, err
		}
		installed := b.Installed
		if len(installed.Layers) == 0 {
			if installed, err = standing(ctx, c, packages, progress); err != nil {
				return nil, err
			}
		}
		o := session.Options{Engine: engine, Env: env, Limits: b.Limits.Sandbox(), Packages: packages, Installed: installed}
		key, err := template.KeyOf(template.Options{Engine: saver, Env: env, Limits: o.Limits, Packages: packages})
		if err != nil {
			return nil, err
		}
		return &named.Ground{
			Key: key, Python: env.Version,
			Start: func(ctx context.Context, from *snapshot.Snapshot, reseed bool) (named.Live, error) {
				return asLive(startNamed(ctx, c, o, from, reseed, progress))
			},
			Join: func(ctx context.Context, running sandbox.Sandbox, from *snapshot.Snapshot) (named.Live, error) {
				joined := o
				joined.Running = running
				if from != nil {
					joined.Image = from.Image()
				}
				return asLive(session.Open(ctx, joined))
			},
		}, nil
	}
}

// asLive keeps a nil session from becoming a Live that is not nil.
func asLive(s *session.Session, err error) (named.Live, error) {
	if err != nil {
		return nil, withDoctor(err)
	}
	return s, nil
}

func startNamed(ctx context.Context, c config.Config, o session.Options, from *snapshot.Snapshot, reseed bool, progress io.Writer) (*session.Session, error) {
	if from == nil {
		return openWarm(ctx, c, o, progress)
	}
	o.Image, o.Reseed = from.Image(), reseed
	return session.Open(ctx, o)
}

// environment returns the one with that key, or the present one for the set of packages when key is "".
func environment(ctx context.Context, c config.Config, key string, progress io.Writer) (*pyenv.Environment, error) {
	if key != "" {
		return pyenv.Open(c.Data, key)
	}
	return pyenv.Ensure(ctx, pyenv.Options{
		Data: c.Data, Set: pyenv.Set(c.Packages), Python: c.Python, Progress: progress, Terminal: isTerminal(progress), Needed: needed(c),
	})
}

// needed lists the environments of the sessions that wait on disk.
func needed(c config.Config) func() []string {
	return func() []string {
		sessions, _ := named.Store{Dir: c.Sessions}.List() // what cannot be read cannot be used either
		keys := make([]string, 0, len(sessions))
		for _, s := range sessions {
			keys = append(keys, s.Environment)
		}
		return keys
	}
}
