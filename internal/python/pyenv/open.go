package pyenv

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"cove/internal/core/problem"
)

// Open returns the environment with that key from cove's data folder, also one that Ensure would not choose any more, because the
// recipe is a newer one now. It never builds.
//
// Problems: environment_missing, environment_damaged, environment_changed (the Python below it).
func Open(data, key string) (*Environment, error) {
	s := shelf{dir: filepath.Join(data, "pyenv")}
	dir := filepath.Join(s.dir, key)
	missing := problem.New(problem.EnvironmentMissing, "the Python environment "+dir+" is not there any more")
	if key == "" || filepath.Base(key) != key {
		return nil, missing
	}
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return nil, missing.WithCause(err)
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, problem.New(problem.EnvironmentDamaged, "the Python environment "+dir+" is damaged").WithCause(err)
	}
	if now, err := stampOf(m.Python.Path); err != nil || now != m.Python {
		return nil, problem.New(problem.EnvironmentChanged,
			fmt.Sprintf("the Python that %s was built on, %s, was changed or removed since", dir, m.Python.Path))
	}
	s.touch(dir)
	return s.environment(key, m), nil
}

func (s shelf) environment(key string, m manifest) *Environment {
	dir := filepath.Join(s.dir, key)
	return &Environment{Dir: dir, Python: filepath.Join(dir, "bin", "python"), Base: m.Base, Version: m.Version, Packages: m.Packages, Key: key, Set: m.Set}
}
