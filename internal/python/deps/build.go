package deps

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
)

// built answers a question whose packages have no wheel by having wheels made, which are kept.
func (i *Installer) built(ctx context.Context, q question, told func(installation.Progress)) (p plan, cached bool, err error) {
	key := i.key(question{New: append([]string{"built:"}, q.New...), Old: q.Old, Pinned: q.Pinned})
	if old, ok := i.recall(key); ok && (i.options.Policy.Offline || old.fresh(q, i.now())) && i.complete(old) {
		return old, true, nil
	}
	unlock, err := locked(ctx, filepath.Join(i.dir, "locks", key[:2]))
	if err != nil {
		return plan{}, false, err
	}
	defer unlock()
	if old, ok := i.recall(key); ok && old.fresh(q, i.now()) && i.complete(old) {
		return old, true, nil
	}
	g, err := i.gateway(ctx)
	if err != nil {
		return plan{}, false, err
	}
	r, err := q.resolution()
	if err != nil {
		return plan{}, false, err
	}
	dir := filepath.Join(i.dir, "built", key)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return plan{}, false, unwritable(dir, err)
	}
	told(installation.Progress{Phase: "build"})
	wheels, err := i.options.Builder.Build(ctx, g, i.options.Env, r, dir, told)
	if err != nil {
		return plan{}, false, fmt.Errorf("build from source: %w", err)
	}
	p = plan{Made: i.now(), Versions: map[string]string{}, Built: dir}
	for _, w := range wheels {
		w.Name = require.Normalize(w.Name)
		if _, err := os.Stat(filepath.Join(dir, filepath.Base(w.File))); err == nil && !i.options.Policy.Build && !strings.HasSuffix(w.File, "-none-any.whl") {
			return plan{}, false, problem.New(problem.NoWheel, w.Name+" has no wheel, and building it takes a compiler").WithHint("allow it with --allow-build")
		}
		if _, twice := p.Versions[w.Name]; twice {
			return plan{}, false, problem.New(problem.BuildFailed, "building from source gave two wheels of "+w.Name)
		}
		p.Versions[w.Name] = w.Version
		if i.options.Env.Packages[w.Name] != w.Version {
			p.Wheels = append(p.Wheels, w)
		}
	}
	return p, false, i.remember(key, p)
}

// complete says whether what a plan built is still there, or in the layer already.
func (i *Installer) complete(p plan) bool {
	if _, err := os.Stat(p.Built); err == nil {
		return true
	}
	_, there := i.store.Find(layer.Closure{Environment: i.options.Env.Key, Python: i.options.Env.Python, Wheels: p.Wheels})
	return there
}

// resolution is the question as a Builder takes it.
func (q question) resolution() (Resolution, error) {
	var r Resolution
	for _, text := range append(append([]string{}, q.New...), q.Old...) {
		one, err := require.Parse(text)
		if err != nil {
			return Resolution{}, err
		}
		r.Requirements = append(r.Requirements, one)
	}
	for _, name := range sortedKeys(q.Pinned) {
		r.Constraints = append(r.Constraints, require.Requirement{Name: name, Specifier: "==" + q.Pinned[name]})
	}
	return r, nil
}
