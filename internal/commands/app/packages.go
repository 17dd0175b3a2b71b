package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/machine/sandbox"
	"cove/internal/python/deps"
	"cove/internal/python/deps/build"
	"cove/internal/python/deps/layer"
	"cove/internal/python/installation"
	"cove/internal/python/pyenv"
	"cove/internal/sessions/session"
)

const (
	// layersKept is how long a layer that nobody uses is kept; no sandbox lives so long without using one again.
	layersKept = 30 * 24 * time.Hour
	// sweepEvery is how often layers are looked through for that.
	sweepEvery = 24 * time.Hour
)

// newPackages returns what sessions with that environment install with. That is cheap: nothing is read or asked before something is wanted.
func newPackages(c config.Config, env *pyenv.Environment, progress io.Writer) (*deps.Installer, error) {
	o := deps.Options{
		Data: c.Folders.Data, Env: env, Policy: deps.PolicyOf(c), Index: c.Packages.Index,
		UV: func(ctx context.Context) (string, error) { return pyenv.UV(ctx, c.Folders.Data, progress) },
	}
	if o.Policy.Build || o.Policy.BuildKnown {
		engine, err := newEngine(c)
		if err != nil {
			return nil, err
		}
		o.Builder = build.New(build.Options{Engine: engine, Limits: sandbox.Limits{Memory: int64(c.Sandbox.Memory), CPUs: c.Sandbox.CPUs}, Data: c.Folders.Data, UV: o.UV})
	}
	return deps.New(o)
}

// installing returns what sessions with that environment install with, and what a session begins with of which that much is installed. In an image's own Python, nothing is installed.
func installing(ctx context.Context, c config.Config, env *pyenv.Environment, installed installation.State, progress io.Writer) (session.Packages, installation.State, error) {
	if env.Image != nil && env.Image.Own {
		return nil, installation.State{}, nil
	}
	packages, err := newPackages(c, env, progress)
	if err == nil && len(installed.Layers) == 0 {
		installed, err = standing(ctx, c, packages, progress)
	}
	return packages, installed, err
}

// standing returns what a new session begins with: the packages of the project that cove runs in.
func standing(ctx context.Context, c config.Config, packages *deps.Installer, progress io.Writer) (installation.State, error) {
	listed, err := deps.FindStanding(".", c.Folders.Data)
	if err != nil {
		return installation.State{}, err
	}
	told := false
	here, _ := os.Getwd()
	if _, tty := terminal.Descriptor(progress); tty && listed.Project && len(listed.Requirements) > 0 && listed.Dir != here {
		_, _ = fmt.Fprintf(progress, "cove: with the packages of %s, in a folder above this one\n", listed.File())
	}
	p, err := listed.Begin(ctx, packages, func(installation.Progress) {
		if !told {
			_, _ = fmt.Fprintf(progress, "Installing the packages of %s ...\n", listed.File())
		}
		told = true
	})
	if err != nil {
		return installation.State{}, listed.Blamed(err)
	}
	for _, note := range p.Notes {
		_, _ = fmt.Fprintln(progress, "cove:", note)
	}
	for _, r := range p.Refused {
		_, _ = fmt.Fprintf(progress, "cove: %s, which %s asks for, is not installed: %s\n", r.Name, listed.File(), r.Reason)
	}
	return p.State, nil
}

// sweepPackages removes layers that nobody has used for long, once a day.
func sweepPackages(c config.Config) error {
	dir := filepath.Join(c.Folders.Data, "packages")
	mark := filepath.Join(dir, ".swept")
	if info, err := os.Stat(mark); err == nil && time.Since(info.ModTime()) < sweepEvery {
		return nil
	}
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	store, err := layer.Open(filepath.Join(dir, "store"), deps.PolicyOf(c).Limits)
	if err != nil {
		return err
	}
	var needed, environments []string
	for _, sessions := range sessionStores(c) {
		all, err := sessions.List()
		if err != nil {
			return err // whose layers are needed is not known
		}
		for _, s := range all {
			if s.Unread {
				return fmt.Errorf("look for packages that nobody needs: session %s cannot be read: %s", s.Name, s.Reason)
			}
			needed, environments = append(needed, s.Installed.Layers...), append(environments, s.Environment)
		}
	}
	if err := store.Sweep(needed, layersKept); err != nil {
		return err
	}
	if err := sweepSystemPackages(c, environments); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o600)
}
