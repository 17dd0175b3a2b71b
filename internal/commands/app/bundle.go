package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"cove/internal/commands/bundle"
	"cove/internal/core/config"
	"cove/internal/core/durable"
	"cove/internal/core/problem"
	"cove/internal/python/deps"
	"cove/internal/python/deps/layer"
	"cove/internal/python/pyenv"
)

// ownBundle is what this program's bundles say of the program.
func ownBundle(version string) bundle.About {
	return bundle.About{Cove: version, Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// bundleOf writes a bundle: this program, and the wheels of the environment of the settings, from the index that the environment came from.
func bundleOf(version string) func(context.Context, config.Config, io.Writer, io.Writer) (bundle.About, error) {
	return func(ctx context.Context, c config.Config, w io.Writer, progress io.Writer) (bundle.About, error) {
		a := ownBundle(version)
		self, err := os.Executable()
		if err != nil {
			return a, fmt.Errorf("find the program itself: %w", err)
		}
		c.Packages.System = nil // they are in no bundle
		env, err := environment(ctx, c, "", progress)
		if err != nil {
			return a, err
		}
		a.Set, a.Python = string(env.Set), minorOf(env.Version)
		if a.Recipe, err = env.Set.Recipe(); err != nil {
			return a, err
		}
		dir, done, err := bundleFolder(c)
		if err != nil {
			return a, err
		}
		defer done()
		wheels, err := fetchWheels(ctx, c, env, dir, progress)
		if err != nil {
			return a, err
		}
		sources := []bundle.Source{{Name: bundle.Program, Path: self}}
		for _, wheel := range wheels {
			sources = append(sources, bundle.Source{Name: bundle.WheelName(wheel.File), Path: filepath.Join(dir, wheel.File)})
		}
		return a, bundle.Write(ctx, w, a, sources)
	}
}

func minorOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}

// fetchWheels brings everything that an environment is built from into dir.
func fetchWheels(ctx context.Context, c config.Config, env *pyenv.Environment, dir string, progress io.Writer) ([]layer.Wheel, error) {
	pins, err := env.Pins()
	if err != nil {
		return nil, err
	}
	installer, err := newPackages(c, env, progress)
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(progress, "Fetching %d wheels for Python %s.\n", len(pins), minorOf(env.Version))
	wheels, fetch, err := installer.LockedWheels(ctx, pins)
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, wheel := range wheels {
		group.Go(func() error {
			f, err := os.OpenFile(filepath.Join(dir, filepath.Base(wheel.File)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return unwritableFolder(dir, err)
			}
			return errors.Join(fetch(ctx, wheel, f, nil), f.Close())
		})
	}
	return wheels, group.Wait()
}

const (
	bundleFolders   = ".bundle-*"
	bundleFolderAge = 24 * time.Hour
)

// bundleFolder makes a folder for the files of a bundle in the data folder, which has room for an environment, and removes what killed commands left there.
func bundleFolder(c config.Config) (dir string, done func(), err error) {
	if err := os.MkdirAll(c.Folders.Data, 0o755); err != nil {
		return "", nil, unwritableFolder(c.Folders.Data, err)
	}
	left, _ := filepath.Glob(filepath.Join(c.Folders.Data, bundleFolders))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > bundleFolderAge {
			_ = os.RemoveAll(path)
		}
	}
	if dir, err = os.MkdirTemp(c.Folders.Data, bundleFolders); err != nil {
		return "", nil, unwritableFolder(c.Folders.Data, err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

// unbundle installs a bundle: nothing of it before all of it is there and right.
func unbundle(version string) func(context.Context, config.Config, io.Reader, string, io.Writer) (bundle.About, error) {
	return func(ctx context.Context, c config.Config, r io.Reader, to string, progress io.Writer) (bundle.About, error) {
		dir, done, err := bundleFolder(c)
		if err != nil {
			return bundle.About{}, err
		}
		defer done()
		a, err := bundle.Unpack(ctx, r, ownBundle(version), dir)
		if err != nil {
			return a, err
		}
		python, err := fitting(ctx, c, a)
		if err != nil {
			return a, err
		}
		if _, err := pyenv.Ensure(ctx, pyenv.Options{
			Data: c.Folders.Data, Set: pyenv.Set(a.Set), Python: python, Wheels: dir, Progress: progress, Terminal: isTerminal(progress), Needed: needed(c),
		}); err != nil {
			return a, err
		}
		if to == "" {
			return a, nil
		}
		return a, placeProgram(filepath.Join(dir, bundle.Program), to)
	}
}

// fitting returns the Python that an unpacked bundle's environment can be built on, and says in words what does not fit.
func fitting(ctx context.Context, c config.Config, a bundle.About) (path string, err error) {
	recipe, err := pyenv.Set(a.Set).Recipe()
	if err != nil {
		return "", err
	}
	if recipe != a.Recipe {
		return "", problem.New(problem.BundleUnfit, "the bundle is for an environment that this cove does not build, although it has the same version").
			WithHint("use the program that is in it: tar -xf FILE cove, and then ./cove bundle install FILE")
	}
	python, err := pyenv.FindMinor(ctx, pyenv.Set(a.Set), c.Packages.Python, a.Python)
	if err != nil {
		return "", err
	}
	var wheels []string
	for _, f := range a.Files {
		if name := filepath.Base(f.Name); f.Name != bundle.Program {
			wheels = append(wheels, name)
		}
	}
	unfit, err := deps.Unfit(python.Path, a.Python, wheels)
	if err == nil && unfit != "" {
		err = problem.New(problem.BundleUnfit, "the system here is older than the one that the bundle was made on: "+python.Path+" cannot use "+unfit).
			WithHint("make the bundle on a machine with a system like this one's, or an older one")
	}
	return python.Path, err
}

// placeProgram puts the program into place, whole, where it is not there already.
func placeProgram(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return problem.New(problem.FileUnwritable, "cannot make the folder "+filepath.Dir(to)).WithCause(err).WithHint("--bin names another")
	}
	f, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := durable.Replace(to, 0o755, f); err != nil {
		return problem.New(problem.FileUnwritable, "cannot write "+to).WithCause(err).WithHint("--bin names another folder")
	}
	return nil
}
