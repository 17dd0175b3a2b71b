package pyenv_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
)

// fakePython answers what it is as a Python would, and can do nothing else.
func fakePython(t *testing.T, path, answer string) {
	t.Helper()
	answer = strings.ReplaceAll(answer, "SELF", path)
	script := fmt.Sprintf("#!/bin/sh\ncase \"$2\" in -c) echo '%s'; exit 0;; esac\necho 'cannot do that' >&2\nexit 1\n", answer)
	testneeds.Program(t, path, script)
}

const usable = `{"path": "SELF", "base": "/usr", "version": "3.12.4", "major": 3, "minor": 12, "kind": "cpython", "bits": 64, "free": false, "final": true}`

func TestExplicitPython(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, from, to string // what differs from a usable Python
		want           string // in the cause; "" when it is usable
	}{
		{name: "usable"},
		{"too old", `3.12.4", "major": 3, "minor": 12`, `3.9.2", "major": 3, "minor": 9`, "older than 3.10"},
		{"python 2", `3.12.4", "major": 3, "minor": 12`, `2.7.18", "major": 2, "minor": 7`, "older than 3.10"},
		{"too new", `3.12.4", "major": 3, "minor": 12`, `3.15.0", "major": 3, "minor": 15`, "newer than"},
		{"preview", `"final": true`, `"final": false`, "newer than"},
		{"pypy", "cpython", "pypy", "not CPython"},
		{"32 bit", "64", "32", "32-bit"},
		{"free-threaded", `"free": false`, `"free": true`, "free-threaded"},
		{"vanished", "SELF", "/nonexistent/python", "cannot be read"},
		{"not a python", usable, "hello", "does not answer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "python")
			fakePython(t, path, strings.Replace(usable, tt.from, tt.to, 1))
			got, err := pyenv.FindPython(context.Background(), pyenv.Standard, path)
			if tt.want == "" {
				if err != nil || got.Path != path || got.Version != "3.12.4" || got.Base != "/usr" {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			p := problem.Of(err)
			if p == nil || p.Code != "python_unusable" || !strings.Contains(p.Error(), tt.want) || !strings.Contains(p.Hint, "COVE_PYTHON") {
				t.Errorf("got %+v, %v; want a cause with %q", got, err, tt.want)
			}
		})
	}
	t.Run("of 2024", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "python")
		fakePython(t, path, strings.Replace(usable, `3.12.4", "major": 3, "minor": 12`, `3.14.0", "major": 3, "minor": 14`, 1))
		if _, err := pyenv.FindPython(context.Background(), pyenv.Standard, path); err != nil {
			t.Errorf("Python 3.14 is refused: %v", err)
		}
		_, err := pyenv.FindPython(context.Background(), pyenv.Standard2024, path)
		if p := problem.Of(err); err == nil || p.Code != "python_unusable" || !strings.Contains(p.Hint, "between 3.10 and 3.13") {
			t.Errorf("for the packages of 2024, Python 3.14 gives %v", err)
		}
	})
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		_, err := pyenv.FindPython(context.Background(), pyenv.Standard, "/nonexistent/python3")
		if p := problem.Of(err); p == nil || p.Code != "python_unusable" || p.Kind != problem.Invalid {
			t.Errorf("a missing Python gave %v", err)
		}
	})
	t.Run("broken", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "python")
		testneeds.Program(t, path, "#!/bin/sh\necho 'version not installed' >&2\nexit 127\n")
		_, err := pyenv.FindPython(context.Background(), pyenv.Standard, path)
		if p := problem.Of(err); p == nil || !strings.Contains(p.Error(), "version not installed") {
			t.Errorf("a broken Python gave %v", err)
		}
	})
}

func TestSearchPassesOverBrokenPythons(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	broken := "#!/bin/sh\necho 'shim: not installed' >&2\nexit 127\n"
	testneeds.Program(t, filepath.Join(first, "python3.13"), broken)
	t.Setenv("PATH", first)
	_, err := pyenv.FindPython(context.Background(), pyenv.Standard, "")
	p := problem.Of(err)
	if p == nil || p.Code != "python_not_found" || !strings.Contains(p.Error(), "shim: not installed") || p.Hint == "" {
		t.Errorf("a search that finds only a broken Python gave %v", err)
	}

	fakePython(t, filepath.Join(second, "python3.13"), usable)
	t.Setenv("PATH", first+":"+second)
	got, err := pyenv.FindPython(context.Background(), pyenv.Standard, "")
	if err != nil || got.Path != filepath.Join(second, "python3.13") {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNoUVAndNoPip(t *testing.T) {
	dir := t.TempDir()
	fakePython(t, filepath.Join(dir, "python3"), usable)
	t.Setenv("PATH", dir)
	_, err := pyenv.Ensure(context.Background(), pyenv.Options{Data: t.TempDir(), Set: pyenv.Minimal})
	p := problem.Of(err)
	if p == nil || p.Code != "uv_not_found" || !strings.Contains(p.Hint, "python3-venv") {
		t.Errorf("without uv and pip: %v", err)
	}
}
