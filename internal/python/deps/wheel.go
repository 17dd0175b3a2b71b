package deps

import (
	"cmp"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cove/internal/core/problem"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/require"
)

// tags rank the compatibility tags of wheels, as python-abi-platform, from the best, 0, down:
// https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/
type tags map[string]int

// tagsOf returns the tags of a CPython ("3.11") on platforms, the best first.
func tagsOf(python string, platforms []string) tags {
	_, text, _ := strings.Cut(python, ".")
	minor, err := strconv.Atoi(text)
	if err != nil {
		return tags{}
	}
	out := tags{}
	add := func(interpreter, abi string, platforms ...string) {
		for _, platform := range platforms {
			tag := interpreter + "-" + abi + "-" + platform
			if _, there := out[tag]; !there {
				out[tag] = len(out)
			}
		}
	}
	own := fmt.Sprintf("cp3%d", minor)
	add(own, own, platforms...)
	add(own, "abi3", platforms...)
	add(own, "none", platforms...)
	for older := minor - 1; older >= 2; older-- {
		add(fmt.Sprintf("cp3%d", older), "abi3", platforms...)
	}
	generic := []string{fmt.Sprintf("py3%d", minor), "py3"}
	for older := minor - 1; older >= 0; older-- {
		generic = append(generic, fmt.Sprintf("py3%d", older))
	}
	for _, interpreter := range generic {
		add(interpreter, "none", platforms...)
	}
	add(own, "none", "any")
	for _, interpreter := range generic {
		add(interpreter, "none", "any")
	}
	return out
}

// platformsOf returns the platform tags that fit a Python executable, the best first: its own C library decides.
func platformsOf(python string) ([]string, error) {
	machine, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("no wheels are known for %s", runtime.GOARCH)
	}
	loader, err := interpreterOf(python)
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", python, err)
	}
	if strings.Contains(filepath.Base(loader), "musl") {
		// musl 1.2 is from 2020; every distribution that has a Python of use here has it.
		return []string{"musllinux_1_2_" + machine, "musllinux_1_1_" + machine, "linux_" + machine}, nil
	}
	minor, err := glibcMinor(loader)
	if err != nil {
		return nil, fmt.Errorf("look for the version of the C library: %w", err)
	}
	oldest := map[string]int{"x86_64": 5, "aarch64": 17}[machine]
	legacy := map[int]string{5: "manylinux1", 12: "manylinux2010", 17: "manylinux2014"}
	var out []string
	for ; minor >= oldest; minor-- {
		out = append(out, fmt.Sprintf("manylinux_2_%d_%s", minor, machine))
		if old := legacy[minor]; old != "" {
			out = append(out, old+"_"+machine)
		}
	}
	return append(out, "linux_"+machine), nil
}

// interpreterOf returns the real path of the loader that an executable names.
func interpreterOf(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name := make([]byte, p.Filesz)
			if _, err := p.ReadAt(name, 0); err != nil {
				return "", err
			}
			return filepath.EvalSymlinks(strings.TrimRight(string(name), "\x00"))
		}
	}
	return "", fmt.Errorf("%s names no loader", path)
}

// glibcMinor returns the N of glibc 2.N, from the newest version of symbols that the C library beside the loader defines.
func glibcMinor(loader string) (int, error) {
	f, err := elf.Open(filepath.Join(filepath.Dir(loader), "libc.so.6"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	versions, err := f.DynamicVersions()
	if err != nil {
		return 0, err
	}
	newest := 0
	for _, v := range versions {
		if text, ok := strings.CutPrefix(v.Name, "GLIBC_2."); ok {
			text, _, _ = strings.Cut(text, ".")
			if n, err := strconv.Atoi(text); err == nil {
				newest = max(newest, n)
			}
		}
	}
	if newest == 0 {
		return 0, fmt.Errorf("%s/libc.so.6 has no versions", filepath.Dir(loader))
	}
	return newest, nil
}

// rank returns how well a wheel fits by its file name, the lower the better, and its build number; ok says whether it fits at all.
func (t tags) rank(file string) (rank, build int, ok bool) {
	stem, isWheel := strings.CutSuffix(file, ".whl")
	parts := strings.Split(stem, "-")
	if !isWheel || len(parts) != 5 && len(parts) != 6 {
		return 0, 0, false
	}
	if len(parts) == 6 {
		digits := strings.TrimRightFunc(parts[2], func(r rune) bool { return r < '0' || r > '9' })
		build, _ = strconv.Atoi(digits) // no number is 0
	}
	last := parts[len(parts)-3:]
	for _, interpreter := range strings.Split(last[0], ".") {
		for _, abi := range strings.Split(last[1], ".") {
			for _, platform := range strings.Split(last[2], ".") {
				if n, there := t[interpreter+"-"+abi+"-"+platform]; there && (!ok || n < rank) {
					rank, ok = n, true
				}
			}
		}
	}
	return rank, build, ok
}

// fits says whether a file is a wheel that can be used here.
func (i *Installer) fits(t tags, f gateway.File) bool {
	if !f.Wheel || f.Withheld != "" || !(require.Requirement{Name: "python", Specifier: f.RequiresPython}).Allows(i.options.Env.Version) {
		return false
	}
	_, _, ok := t.rank(f.Name)
	return ok
}

// tags returns the tags of the environment's Python on this machine.
func (i *Installer) tags() (tags, error) {
	python, err := filepath.EvalSymlinks(i.options.Env.Python)
	if err != nil {
		return nil, fmt.Errorf("locate the environment's Python: %w", err)
	}
	if _, err := os.Stat(python); err != nil {
		return nil, err
	}
	platforms, err := platformsOf(python)
	if err != nil {
		return nil, problem.New(problem.PlatformUnknown, "the wheels that fit this machine cannot be determined").WithHint("run \"cove doctor\"").WithCause(err)
	}
	return tagsOf(i.python, platforms), nil
}

// choice are wheels, and from when the oldest of what is known about them is, if an index could not be asked.
type choice struct {
	versions map[string]string // of what the wheels are for
	wheels   []layer.Wheel
	trouble  error
	asOf     time.Time
	old      []string // distributions whose wheels hold extension modules from before NumPy 2
	ended    []string // projects that are not kept up any more, with the index's word for it
}

// choose picks the best wheel of every distribution that the environment does not have at that version.
func (i *Installer) choose(ctx context.Context, g *gateway.Gateway, versions map[string]string) (choice, error) {
	t, err := i.tags()
	if err != nil {
		return choice{}, err
	}
	var missing []string
	for _, name := range sortedKeys(versions) {
		if i.options.Env.Packages[name] != versions[name] {
			missing = append(missing, name)
		}
	}
	c := choice{wheels: make([]layer.Wheel, len(missing))}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for at, name := range missing {
		group.Go(func() error {
			project, err := g.Project(ctx, name)
			if err != nil {
				return fmt.Errorf("choose a wheel of %s: %w", name, err)
			}
			best, ok := i.best(t, project, versions[name])
			if !ok {
				return i.noWheel(name + " " + versions[name])
			}
			mu.Lock()
			defer mu.Unlock()
			c.wheels[at] = layer.Wheel{Name: name, Version: versions[name], File: best.Name, SHA256: best.SHA256, Size: best.Size}
			if predates(best) {
				c.old = append(c.old, name)
			}
			if project.Status == "archived" || project.Status == "deprecated" {
				c.ended = append(c.ended, fmt.Sprintf("%s is marked as %s on the index", name, project.Status))
			}
			if project.Trouble != nil && !project.Stale.IsZero() && (c.trouble == nil || project.Stale.Before(c.asOf)) {
				c.trouble, c.asOf = project.Trouble, project.Stale
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return choice{}, err
	}
	slices.Sort(c.ended)
	slices.Sort(c.old)
	return c, nil
}

// best returns the wheel of a version that fits best.
func (i *Installer) best(t tags, project gateway.Project, version string) (gateway.File, bool) {
	fitting := slices.DeleteFunc(slices.Clone(project.Files), func(f gateway.File) bool {
		return require.Compare(f.Version, version) != 0 || !i.fits(t, f)
	})
	if len(fitting) == 0 {
		return gateway.File{}, false
	}
	return slices.MinFunc(fitting, func(a, b gateway.File) int {
		ra, ba, _ := t.rank(a.Name)
		rb, bb, _ := t.rank(b.Name)
		return cmp.Or(ra-rb, bb-ba, strings.Compare(a.Name, b.Name))
	}), true
}

func (i *Installer) noWheel(what string) *problem.Error {
	return problem.New(problem.NoWheel, fmt.Sprintf("%s has no wheel for Python %s on this machine", what, i.python)).
		WithHint("--allow-build (packages.build) builds it from source in a throw-away sandbox; or use another package")
}
