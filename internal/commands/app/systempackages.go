package app

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"cove/internal/core/config"
	"cove/internal/machine/image"
	"cove/internal/machine/sandbox"
	"cove/internal/python/debs"
	"cove/internal/python/pyenv"
)

// systemKept is how long a layer of system packages is kept that neither a sandbox nor a saved session has. Each change of the machine's own packages makes another one.
const systemKept = 7 * 24 * time.Hour

// systemPackages is the store of layers of this machine's user or server.
func systemPackages(c config.Config) debs.Store {
	return debs.Store{Dir: filepath.Join(c.Folders.Data, debs.Folder), Size: int64(c.Sandbox.System)}
}

// withSystemPackages returns an environment as it is used with the layer that its key names. Where there is no key yet, it is the layer that the settings ask for, made when it is missing. What has
// begun without a layer goes on without.
func withSystemPackages(ctx context.Context, c config.Config, env *pyenv.Environment, key, digest string, progress io.Writer) (*pyenv.Environment, error) {
	if digest == "" && (key != "" || len(c.Packages.System) == 0) {
		return env, nil
	}
	if c.Sandbox.Engine == "local" {
		_, _ = fmt.Fprintln(progress, "cove: the engine local runs code on this machine itself: it has no system packages but the machine's own (packages.system).")
		return env, nil
	}
	layer, err := layerOf(ctx, c, digest, progress)
	if err != nil {
		return nil, err
	}
	with := *env
	with.Layer, with.Key = layer.Root(), debs.Key(env.Key, layer.Digest)
	return &with, nil
}

// layerOf returns the layer with that digest, or the one that the settings ask for where there is no digest. A session whose layer was made beside other libraries of the machine cannot be restored in
// any case, and is carried over to the present one.
func layerOf(ctx context.Context, c config.Config, digest string, progress io.Writer) (*debs.Layer, error) {
	store := systemPackages(c)
	if digest == "" {
		return ensureSystemPackages(ctx, c, store, progress)
	}
	layer, err := store.Open(digest)
	if err == nil && store.IsStale(layer) && len(c.Packages.System) > 0 {
		return ensureSystemPackages(ctx, c, store, progress)
	}
	return layer, err
}

// ensureSystemPackages makes the layer that the settings ask for, unless it is there. Installing takes a root, which sandboxes of gVisor alone have, whatever engine the layer is for.
func ensureSystemPackages(ctx context.Context, c config.Config, store debs.Store, progress io.Writer) (*debs.Layer, error) {
	asked := c.Packages.System
	c.Sandbox.Engine = "gvisor"
	engine, err := newEngine(c)
	if err != nil {
		return nil, err
	}
	store.Maker = debs.Apt{Engine: engine, Limits: sandbox.Limits{Memory: int64(c.Sandbox.Memory), CPUs: c.Sandbox.CPUs, Workspace: int64(c.Sandbox.System) + (1 << 30), System: int64(c.Sandbox.System)}}
	return store.Ensure(ctx, asked, progress)
}

// sweepSystemPackages removes layers that nobody needs.
func sweepSystemPackages(c config.Config, environments []string) error {
	var needed []string
	for _, key := range environments {
		base, _ := image.CutKey(key)
		if _, digest := debs.CutKey(base); digest != "" {
			needed = append(needed, digest)
		}
	}
	return systemPackages(c).Sweep(context.Background(), needed, systemKept)
}
