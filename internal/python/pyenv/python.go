package pyenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"cove/internal/core/problem"
)

// Interpreter is a Python that an environment can be built on.
type Interpreter struct {
	Path    string // the real executable: no shim, no virtual environment, no symbolic link
	Base    string // its prefix, sys.base_prefix
	Version string // "3.11.7"
	stamp   stamp
}

// stamp identifies an executable without starting it.
type stamp struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // nanoseconds since 1970
}

func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, err
	}
	return stamp{Path: path, Size: info.Size(), Modified: info.ModTime().UnixNano()}, nil
}

// FindPython returns a Python that a set has wheels for. explicit is a path or a name
// and must be usable; when it is empty the PATH is searched, and what cannot be
// used there (version managers' shims for versions that are not active, broken
// installations, other versions) is passed over.
func FindPython(ctx context.Context, set Set, explicit string) (Interpreter, error) {
	if err := set.check(); err != nil {
		return Interpreter{}, err
	}
	if explicit != "" {
		return explicitPython(ctx, set, explicit)
	}
	var passed, names []string
	for _, minor := range known[set].pythons {
		names = append(names, fmt.Sprintf("python3.%d", minor))
	}
	for _, name := range append(names, "python3") {
		for _, path := range onPath(name) {
			python, err := probe(ctx, path, set)
			if err == nil {
				return python, nil
			}
			if ctx.Err() != nil {
				return Interpreter{}, canceled(ctx)
			}
			passed = append(passed, path+": "+err.Error())
		}
	}
	p := problem.New(problem.PythonNotFound, "no Python between "+set.pythons()+" was found").
		WithHint("install one (Debian, Ubuntu: apt install python3-venv), or set COVE_PYTHON to its path")
	if len(passed) > 0 {
		p = p.WithCause(errors.New("passed over " + strings.Join(passed, "; ")))
	}
	return Interpreter{}, p
}

func explicitPython(ctx context.Context, set Set, explicit string) (Interpreter, error) {
	hint := "set COVE_PYTHON to a Python between " + set.pythons() + ", or unset it to let cove search"
	path, err := exec.LookPath(explicit)
	if err != nil {
		return Interpreter{}, problem.New(problem.PythonUnusable, fmt.Sprintf("there is no Python at %q", explicit)).
			WithHint(hint).WithCause(err)
	}
	python, err := probe(ctx, path, set)
	if err != nil {
		if ctx.Err() != nil {
			return Interpreter{}, canceled(ctx)
		}
		return Interpreter{}, problem.New(problem.PythonUnusable, fmt.Sprintf("the Python at %s cannot be used", path)).
			WithHint(hint).WithCause(err)
	}
	return python, nil
}

// pythons is which Pythons a set has wheels for, in words.
func (s Set) pythons() string {
	oldest, newest := s.span()
	return fmt.Sprintf("3.%d and 3.%d", oldest, newest)
}

// onPath returns every executable of that name on the PATH, in order.
func onPath(name string) []string {
	var found []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			found = append(found, path)
		}
	}
	return found
}

const probeScript = `import json, os, struct, sys, sysconfig
print(json.dumps({
    "path": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
    "base": os.path.realpath(sys.base_prefix),
    "version": "%d.%d.%d" % sys.version_info[:3],
    "major": sys.version_info[0], "minor": sys.version_info[1],
    "kind": sys.implementation.name, "bits": struct.calcsize("P") * 8,
    "free": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "final": sys.version_info[3] == "final",
}))`

// probe asks the program at path what it is. Its error is a clause that says why it cannot be used.
func probe(ctx context.Context, path string, set Set) (Interpreter, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-I", "-c", probeScript)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return Interpreter{}, fmt.Errorf("does not run: %s", describeFailure(err))
	}
	var is struct {
		Path, Base, Version, Kind string
		Major, Minor, Bits        int
		Free, Final               bool
	}
	if err := json.Unmarshal(out, &is); err != nil {
		return Interpreter{}, errors.New("does not answer like a Python")
	}
	oldest, newest := set.span()
	switch {
	case is.Major != 3 || is.Minor < oldest:
		return Interpreter{}, fmt.Errorf("is Python %s, older than 3.%d", is.Version, oldest)
	case is.Minor > newest || !is.Final:
		return Interpreter{}, fmt.Errorf("is Python %s, newer than the packages support", is.Version)
	case is.Kind != "cpython":
		return Interpreter{}, fmt.Errorf("is %s, not CPython", is.Kind)
	case is.Bits != 64:
		return Interpreter{}, fmt.Errorf("is a %d-bit program", is.Bits)
	case is.Free:
		return Interpreter{}, errors.New("is a free-threaded build, which many packages do not support")
	}
	s, err := stampOf(is.Path)
	if err != nil {
		return Interpreter{}, fmt.Errorf("says it is %s, which cannot be read", is.Path)
	}
	return Interpreter{Path: is.Path, Base: is.Base, Version: is.Version, stamp: s}, nil
}

// describeFailure returns a failed command's first words on stderr, or its exit.
func describeFailure(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if first, _, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n"); first != "" {
			return first
		}
	}
	return err.Error()
}

func canceled(ctx context.Context) error {
	return problem.New(problem.GivenUp, "preparing the Python environment was cancelled").
		WithHint("no incomplete files were kept; run the command again to start over").WithCause(context.Cause(ctx))
}
