package app

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/python/deps"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
	"cove/internal/python/pyenv"
)

// packageDesk is what `cove packages` works with.
type packageDesk struct {
	installer *deps.Installer
	env       *pyenv.Environment
	c         config.Config
}

func newPackageDesk(ctx context.Context, c config.Config, progress io.Writer) (cli.PackageDesk, error) {
	c.Packages.System = nil // it starts no sandbox that would have them
	env, err := environment(ctx, c, "", progress)
	if err != nil {
		return nil, err
	}
	i, err := newPackages(c, env, progress)
	if err != nil {
		return nil, err
	}
	return &packageDesk{i, env, c}, nil
}

// files are the standing packages of the project around the present folder, which begins one where there is none; with global those that hold elsewhere.
func (d *packageDesk) files(global bool) (*deps.Standing, error) {
	if global {
		return deps.StandingIn(filepath.Join(d.c.Folders.Data, "packages"))
	}
	s, err := deps.FindStanding(".", d.c.Folders.Data)
	if err != nil || s.Project {
		return s, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return deps.StandingIn(here)
}

func (d *packageDesk) Environment() cli.BaseEnvironment {
	return cli.BaseEnvironment{Name: string(d.env.Set), Python: d.env.Version, Packages: d.env.Packages}
}

func (d *packageDesk) Standing(global bool) (cli.Standing, error) {
	s, err := d.files(global)
	if err != nil {
		return cli.Standing{}, err
	}
	out := cli.Standing{File: filepath.Join(s.Dir, deps.StandingFile), Lock: filepath.Join(s.Dir, deps.LockFile), Packages: s.Locked}
	if _, err := os.Stat(out.File); errors.Is(err, fs.ErrNotExist) {
		out.File, out.Lock = "", ""
	}
	for _, r := range s.Requirements {
		out.Requirements = append(out.Requirements, r.String())
	}
	return out, nil
}

func (d *packageDesk) Add(ctx context.Context, asked []require.Requirement, global bool, told func(installation.Progress)) (installation.Provision, error) {
	s, err := d.files(global)
	if err != nil {
		return installation.Provision{}, err
	}
	return s.Add(ctx, d.installer, asked, told)
}

func (d *packageDesk) Remove(ctx context.Context, names []string, global bool, told func(installation.Progress)) (installation.Provision, error) {
	s, err := d.files(global)
	if err != nil {
		return installation.Provision{}, err
	}
	return s.Remove(ctx, d.installer, names, told)
}

func (d *packageDesk) Lock(ctx context.Context, global, upgrade bool, told func(installation.Progress)) (installation.Provision, error) {
	s, err := d.files(global)
	if err != nil {
		return installation.Provision{}, err
	}
	if upgrade {
		return s.Lock(ctx, d.installer, told)
	}
	return s.Add(ctx, d.installer, nil, told)
}

func (d *packageDesk) Layers() ([]layer.Used, error) { return d.installer.Store().Layers() }

// explain says what modules mean for the present environment, or returns nil where it is not built yet.
func explain(c config.Config) cli.Explain {
	if i := presentPackages(c); i != nil {
		return i.Explain
	}
	return nil
}

// reach asks the package index for a sign of life. known is false where there is no environment yet, and so nothing to ask with.
func reach(ctx context.Context, c config.Config) (index string, known bool, err error) {
	i := presentPackages(c)
	if i == nil {
		return "", false, nil
	}
	index, err = i.Reach(ctx)
	return index, true, err
}

// presentPackages returns what the environment that was built last installs with, or nil where there is none.
func presentPackages(c config.Config) *deps.Installer {
	built := pyenv.Built(c.Folders.Data, pyenv.Set(c.Packages.Set))
	if len(built) == 0 {
		return nil
	}
	newest := slices.MaxFunc(built, func(a, b string) int { return changedAt(a).Compare(changedAt(b)) })
	env, err := pyenv.Open(c.Folders.Data, filepath.Base(newest))
	if err != nil {
		return nil
	}
	i, err := newPackages(c, env, io.Discard)
	if err != nil {
		return nil
	}
	return i
}

func changedAt(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
