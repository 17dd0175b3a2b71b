// Package build makes wheels of source distributions, whose build runs code that nobody has looked at. It happens in sandboxes that are thrown away: one that
// resolves, because the metadata of a source distribution is made by running it, and one for each distribution that is built, so that none has a hand in another's wheel.
//
// These sandboxes have no network. A port of their own loopback interface is forwarded to the gateway (guestlink.Forward), so that they reach the package index, under the gateway's rules,
// and nothing else. They see the Python environment, uv and the host's /usr, and with it the compilers of this machine.
//
// What comes out is believed only as far as it is checked here: versions have to be those of the index and satisfy what was asked for, sources are fetched by hash on the host, and a
// wheel has to bear the name and version that were to be built. That it is well-formed, package layer checks.
package build

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/python/deps"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
	"cove/internal/python/pyenv"
)

// Options configure a Builder.
type Options struct {
	Engine sandbox.Engine
	Limits sandbox.Limits // of each sandbox
	Data   string         // cove's data folder; build/ below it is the builder's
	// UV returns the path of uv.
	UV      func(ctx context.Context) (string, error)
	Timeout time.Duration // of one Build; 0 is 15 minutes
	// Largest bounds a wheel and a source distribution, in bytes, and Download all that one sandbox fetches; 0 is 512 MiB and 4 GiB.
	Largest, Download int64
}

// Builder is a deps.Builder. It is safe for concurrent use.
type Builder struct{ options Options }

var _ deps.Builder = (*Builder)(nil)

// mostPackages bounds a closure.
const mostPackages = 1000

// New returns a builder; nothing is started before it is used.
func New(o Options) *Builder {
	if o.Timeout == 0 {
		o.Timeout = 15 * time.Minute
	}
	if o.Largest == 0 {
		o.Largest = 512 << 20
	}
	if o.Download == 0 {
		o.Download = 4 << 30
	}
	return &Builder{options: o}
}

// Build resolves requirements, builds what has no wheel that fits the environment, and returns the wheels of the closure but for what the environment has at the
// same version. What it built is in the folder dir, under the wheels' file names. told may be nil.
//
// Problems: build_unavailable (no sandbox to build in), build_failed, build_timeout, resolve_failed, canceled, disk_full, those of gateway.Project and gateway.Fetch, and those of starting a sandbox.
func (b *Builder) Build(ctx context.Context, g *gateway.Gateway, env *pyenv.Environment, r deps.Resolution, dir string, told func(installation.Progress)) ([]layer.Wheel, error) {
	if !b.options.Engine.Isolates() {
		return nil, problem.New(problem.BuildUnavailable, "packages are built from source in a sandbox only, and the engine "+b.options.Engine.Name()+" has none").
			WithHint("use the engine gvisor, or a package that has wheels")
	}
	if told == nil {
		told = func(installation.Progress) {}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.options.Timeout, tooSlow(b.options.Timeout))
	defer cancel()
	told(installation.Progress{Phase: "resolve"})
	pins, err := b.resolve(ctx, g, env, r)
	if err != nil {
		return nil, ended(ctx, err)
	}
	var wheels []layer.Wheel
	for _, p := range pins {
		w, err := b.supply(ctx, g, env, p, dir, told)
		if err != nil {
			return nil, ended(ctx, err)
		}
		wheels = append(wheels, w)
	}
	return wheels, nil
}

// pin is one distribution of a closure.
type pin struct{ name, version string }

func (p pin) String() string { return p.name + " " + p.version }

// supply returns the index's wheel of a distribution, or builds one.
func (b *Builder) supply(ctx context.Context, g *gateway.Gateway, env *pyenv.Environment, p pin, dir string, told func(installation.Progress)) (layer.Wheel, error) {
	project, err := g.Project(ctx, p.name)
	if err != nil {
		return layer.Wheel{}, err
	}
	file, found, err := deps.Fit(env, project, p.version)
	if err != nil {
		return layer.Wheel{}, err
	}
	if found {
		return layer.Wheel{Name: p.name, Version: p.version, File: file.Name, SHA256: file.SHA256, Size: file.Size}, nil
	}
	source, found := sourceOf(project, p.version)
	if !found {
		return layer.Wheel{}, problem.New(problem.NoWheel, fmt.Sprintf("%s has neither a wheel nor a source distribution that may be used here", p)).
			WithHint("ask for another version")
	}
	told(installation.Progress{Phase: "build", Packages: []installation.Package{{Name: p.name, Version: p.version}}})
	return b.build(ctx, g, env, p, source, dir)
}

// sourceOf returns the source distribution of a version, of several the gzipped one.
func sourceOf(project gateway.Project, version string) (source gateway.File, found bool) {
	for _, f := range project.Files {
		if f.Wheel || f.Withheld != "" || require.Compare(f.Version, version) != 0 {
			continue
		}
		if !found || filepath.Ext(f.Name) == ".gz" {
			source, found = f, true
		}
	}
	return source, found
}

// build makes a wheel in a sandbox of its own.
func (b *Builder) build(ctx context.Context, g *gateway.Gateway, env *pyenv.Environment, p pin, source gateway.File, dir string) (layer.Wheel, error) {
	room, err := b.open(ctx, g, env)
	if err != nil {
		return layer.Wheel{}, err
	}
	defer room.close(ctx)
	if err := b.bring(ctx, room, g, p, source); err != nil {
		return layer.Wheel{}, err
	}
	said := newTail()
	code, err := room.uv(ctx, said, said, "build", "--wheel", "--no-sources", "--out-dir", outFolder, inFolder+"/"+source.Name)
	if err != nil {
		return layer.Wheel{}, err
	}
	if code != 0 {
		if fault := indexFault(g, said.String()); fault != nil {
			return layer.Wheel{}, fault
		}
		return layer.Wheel{}, failed(p.String(), said.String())
	}
	return b.collect(ctx, room, env, p, dir)
}

// tooSlow is the cause of a build's end by its time limit.
func tooSlow(limit time.Duration) error {
	return problem.New(problem.BuildTimeout, fmt.Sprintf("building from source took longer than %s", limit)).
		WithHint("use a package or version that has wheels")
}

// ended prefers the reason why a context ended to what that led to.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if p, ok := errors.AsType[*problem.Error](context.Cause(ctx)); ok {
		return p
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return problem.New(problem.BuildTimeout, "building from source took too long").
			WithHint("use a package or version that has wheels, or raise packages.timeout (COVE_PACKAGES_TIMEOUT)").WithCause(err)
	}
	return problem.New(problem.GivenUp, "building from source was cancelled").WithHint("no incomplete files were kept").WithCause(ctx.Err())
}
