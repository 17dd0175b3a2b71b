package deps

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/require"
	"cove/internal/python/pyenv"
)

// LockedWheels returns the wheels of pins that fit this machine best, and what fetches them. The rules for what code asks for do not apply: cove's own locks
// name these, with their hashes.
func (i *Installer) LockedWheels(ctx context.Context, pins []pyenv.Pin) ([]layer.Wheel, layer.Fetch, error) {
	t, err := i.tags()
	if err != nil {
		return nil, nil, err
	}
	g, err := i.openGateway(ctx, gateway.Rules{})
	if err != nil {
		return nil, nil, err
	}
	wheels := make([]layer.Wheel, len(pins))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for at, pin := range pins {
		group.Go(func() error {
			project, err := g.Project(ctx, pin.Name)
			if err != nil {
				return fmt.Errorf("look for a wheel of %s: %w", pin.Name, err)
			}
			project.Files = slices.DeleteFunc(project.Files, func(f gateway.File) bool { return !slices.Contains(pin.SHA256, f.SHA256) })
			best, ok := i.best(t, project, pin.Version)
			if !ok {
				return i.noWheel(pin.Name + " " + pin.Version)
			}
			wheels[at] = layer.Wheel{Name: require.Normalize(pin.Name), Version: pin.Version, File: best.Name, SHA256: best.SHA256, Size: best.Size}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(wheels, func(a, b layer.Wheel) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.File, b.File))
	})
	return wheels, fetchThrough(g), nil
}

// Unfit returns the first of these wheels, by their file names, that a Python ("3.11") at a path cannot use, because its machine is another or its C library too
// old; "" when it can use all.
func Unfit(path, python string, files []string) (string, error) {
	executable, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	platforms, err := platformsOf(executable)
	if err != nil {
		return "", err
	}
	t := tagsOf(python, platforms)
	for _, file := range files {
		if _, _, ok := t.rank(file); !ok {
			return file, nil
		}
	}
	return "", nil
}
