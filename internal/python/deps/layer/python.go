package layer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"cove/internal/core/problem"
)

// tagOf returns the tag of a CPython, as in the names of wheels: cp311. Bytecode is good for all of one tag. A virtual environment says
// it in a file, so that no Python has to be started.
func (s *Store) tagOf(ctx context.Context, python string) (string, error) {
	if tag, ok := s.tags.Load(python); ok {
		return tag.(string), nil
	}
	tag := configuredTag(filepath.Join(filepath.Dir(filepath.Dir(python)), "pyvenv.cfg"))
	if tag == "" {
		var err error
		if tag, err = askTag(ctx, python); err != nil {
			return "", err
		}
	}
	s.tags.Store(python, tag)
	return tag, nil
}

// configuredTag reads pyvenv.cfg, where uv writes version_info and Python's own venv writes version. It returns "" when it cannot say.
func configuredTag(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	is := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, "="); ok {
			is[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	version := is["version_info"]
	if version == "" {
		version = is["version"]
	}
	parts := strings.Split(version, ".")
	if len(parts) < 3 || is["implementation"] != "" && is["implementation"] != "CPython" {
		return ""
	}
	return asTag(parts[0] + parts[1])
}

// askTag asks the interpreter itself.
func askTag(ctx context.Context, python string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-I", "-S", "-c", "import sys; print(sys.implementation.cache_tag)")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	digits, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "cpython-")
	if tag := asTag(digits); err == nil && ok && tag != "" {
		return tag, nil
	}
	return "", problem.New(problem.EnvironmentDamaged, fmt.Sprintf("the Python at %s does not run", python)).
		WithHint("run \"cove doctor\"").WithCause(err)
}

func asTag(digits string) string {
	if regexp.MustCompile(`^3[0-9]{1,2}$`).MatchString(digits) {
		return "cp" + digits
	}
	return ""
}

// cacheTag is the part of a compiled file's name that goes with a tag: cpython-311.
func cacheTag(tag string) string { return "cpython-" + strings.TrimPrefix(tag, "cp") }
