package app

import (
	"context"
	"io"
	"path/filepath"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/machine/image"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/snapshot"
	"cove/internal/python/debs"
	"cove/internal/python/libdata"
	"cove/internal/python/pyenv"
	"cove/internal/sessions/ondisk"
	"cove/internal/sessions/session"
	"cove/internal/sessions/template"
)

// prepareNamed finds what a session with a name stands on: an engine that can save, and the environment that the session
// was made with, or the present one when it is new.
func prepareNamed(version string) func(config.Config, io.Writer) ondisk.Prepare {
	return func(c config.Config, progress io.Writer) ondisk.Prepare {
		e := &engines{}
		return func(ctx context.Context, b ondisk.Base) (*ondisk.Ground, error) {
			_, ground, err := prepareGround(ctx, version, c, e, b, progress)
			return ground, err
		}
	}
}

// prepareGround also returns what sessions that stand there are opened with.
func prepareGround(ctx context.Context, version string, c config.Config, e *engines, b ondisk.Base, progress io.Writer) (session.Options, *ondisk.Ground, error) {
	c.Sandbox.Engine, c.Packages.Set = b.Engine, b.Packages
	engine, err := e.of(c)
	if err != nil {
		return session.Options{}, nil, err
	}
	saver, err := sandbox.SaverOf(engine)
	if err != nil {
		return session.Options{}, nil, problem.Of(err).WithHint("use --engine gvisor, or leave --session out")
	}
	o, err := optionsOf(ctx, c, e, b, progress)
	if err != nil {
		return o, nil, err
	}
	key, err := template.KeyOf(template.Options{Engine: saver, Env: o.Env, Limits: o.Limits, Packages: o.Packages})
	if err != nil {
		return o, nil, err
	}
	made, err := makerOf(saver, version)
	if err != nil {
		return o, nil, err
	}
	ground := groundOf(c, o, key, progress)
	ground.Sealer, err = diskSealer(c)
	return o, withUpgrades(c, b, ground, made), err
}

// prepareServed is prepareGround for a server, whose sessions are in memory alone where the engine cannot save them.
func prepareServed(ctx context.Context, version string, c config.Config, e *engines, b ondisk.Base, progress io.Writer) (session.Options, *ondisk.Ground, error) {
	c.Sandbox.Engine, c.Packages.Set = b.Engine, b.Packages
	engine, err := e.of(c)
	if err != nil {
		return session.Options{}, nil, err
	}
	if _, saves := engine.(sandbox.Saver); saves {
		return prepareGround(ctx, version, c, e, b, progress)
	}
	o, err := optionsOf(ctx, c, e, b, progress)
	if err != nil {
		return o, nil, err
	}
	key := snapshot.Key{Engine: engine.Name(), Environment: o.Env.Key, Limits: snapshot.LimitsOf(o.Limits), Layers: o.Packages != nil}
	ground := groundOf(c, o, key, progress)
	ground.Sealer, err = diskSealer(c)
	return o, ground, err
}

// makerOf says which cove makes snapshots with that engine.
func makerOf(engine sandbox.Saver, version string) (snapshot.Maker, error) {
	runtime, err := engine.Runtime()
	if err != nil {
		return snapshot.Maker{}, err
	}
	build, err := engine.Build()
	return snapshot.Maker{Cove: version, Runtime: runtime, Build: build}, err
}

// groundOf is the ground of sessions that are opened with o.
func groundOf(c config.Config, o session.Options, key snapshot.Key, progress io.Writer) *ondisk.Ground {
	return &ondisk.Ground{
		Key: key, Python: o.Env.Version,
		Start: func(ctx context.Context, from *snapshot.Snapshot, reseed bool) (ondisk.Live, error) {
			return asLive(startNamed(ctx, c, o, from, reseed, progress))
		},
		Join: func(ctx context.Context, running sandbox.Sandbox, from *snapshot.Snapshot) (ondisk.Live, error) {
			joined := o
			joined.Running = running
			if from != nil {
				joined.Checkpoint = from.Checkpoint()
			}
			return asLive(session.Open(ctx, joined))
		},
	}
}

// optionsOf returns the options of sessions that stand on b.
func optionsOf(ctx context.Context, c config.Config, e *engines, b ondisk.Base, progress io.Writer) (session.Options, error) {
	engine, err := e.of(c)
	if err != nil {
		return session.Options{}, err
	}
	env, err := environment(ctx, c, b.Environment, progress)
	if err != nil {
		return session.Options{}, err
	}
	packages, installed, err := installing(ctx, c, env, b.Installed, progress)
	if err != nil {
		return session.Options{}, err
	}
	o := session.Options{Engine: engine, Env: env, Limits: b.Limits.Sandbox(), Packages: packages, Installed: installed, Kernels: b.Kernels, Parked: b.Parked, Volumes: volumesOf(c, b.Volumes)}
	o.Prepared = func(ctx context.Context, spec sandbox.Spec) sandbox.Prepared {
		return e.booted.claim(ctx, engine, spec)
	}
	return o, nil
}

// volumes is the folder of the server's volumes.
func volumes(c config.Config) string { return filepath.Join(c.Folders.Server, "volumes") }

func volumesOf(c config.Config, all []ondisk.Volume) (mounts []sandbox.VolumeMount) {
	for _, v := range all {
		mounts = append(mounts, sandbox.VolumeMount{Folder: filepath.Join(volumes(c), v.Folder), Sub: v.Sub, Target: v.Path, Most: int64(c.Limits.Volume)})
	}
	return mounts
}

// asLive keeps a nil session from becoming a Live that is not nil.
func asLive(s *session.Live, err error) (ondisk.Live, error) {
	if err != nil {
		return nil, withDoctor(err)
	}
	return s, nil
}

func startNamed(ctx context.Context, c config.Config, o session.Options, from *snapshot.Snapshot, reseed bool, progress io.Writer) (*session.Live, error) {
	if from == nil {
		s, err := openWarm(ctx, c, o, progress)
		return s, ofImage(o.Env, err)
	}
	o.Checkpoint, o.Reseed = from.Checkpoint(), reseed
	return session.Open(ctx, o)
}

// environment returns the one with that key, or the present one for the set of packages when key is "".
func environment(ctx context.Context, c config.Config, key string, progress io.Writer) (env *pyenv.Environment, err error) {
	base, digest := image.CutKey(key)
	base, layer := debs.CutKey(base)
	if base != "" {
		env, err = pyenv.Open(c.Folders.Data, base)
	} else {
		env, err = pyenv.Ensure(ctx, pyenv.Options{
			Data: c.Folders.Data, Ahead: c.Folders.Ahead, Set: pyenv.Set(c.Packages.Set), Python: c.Packages.Python, Progress: progress, Terminal: isTerminal(progress), Needed: needed(c),
		})
	}
	if err != nil {
		return nil, err
	}
	data, err := libdata.Open(filepath.Join(c.Folders.Data, libdata.Folder))
	if err != nil {
		return nil, err
	}
	env.Plain, env.Data = !c.Session.PlotStyle, data.Root()
	if digest != "" || c.Image != "" {
		return inImage(ctx, c, env, key, digest, progress)
	}
	return withSystemPackages(ctx, c, env, key, layer, progress)
}

// needed lists the environments of the sessions that wait on disk.
func needed(c config.Config) func() []string {
	return func() []string {
		var keys []string
		for _, store := range sessionStores(c) {
			sessions, _ := store.List() // what cannot be read cannot be used either
			for _, s := range sessions {
				base, _ := image.CutKey(s.Environment)
				base, _ = debs.CutKey(base)
				keys = append(keys, base)
			}
		}
		return keys
	}
}

// serverSessions is where `cove serve` keeps its sessions.
func serverSessions(c config.Config) ondisk.Store {
	return ondisk.Store{Dir: filepath.Join(c.Folders.Server, "sessions")}
}

// sessionStores are all sessions that wait on this machine's disk, as far as the settings know.
func sessionStores(c config.Config) []ondisk.Store {
	return []ondisk.Store{{Dir: c.Folders.Sessions}, serverSessions(c)}
}
