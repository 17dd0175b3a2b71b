package deps

import (
	"strings"

	"cove/internal/python/deps/gateway"
	"cove/internal/python/pyenv"
)

// Fit picks the wheel of a version that fits an environment best, as Provide does. ok is false when there is none.
func Fit(env *pyenv.Environment, project gateway.Project, version string) (best gateway.File, ok bool, err error) {
	major, rest, _ := strings.Cut(env.Version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	i := &Installer{options: Options{Env: env}, python: major + "." + minor}
	t, err := i.tags()
	if err != nil {
		return gateway.File{}, false, err
	}
	best, ok = i.best(t, project, version)
	return best, ok, nil
}
