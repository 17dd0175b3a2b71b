package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/python/pyenv"
)

// installer is a program that installs into a folder, and the standard environment's interpreter that imports from there.
type installer struct {
	id, title string
	shop      *workshop
	env       *pyenv.Environment
	// find returns the command line but for the folder and the package.
	find func(ctx context.Context) ([]string, error)

	argv    []string
	ready   string // a folder that has the package
	version string
}

func newUVTarget(shop *workshop, env *pyenv.Environment) Subject {
	return &installer{id: "uv-target", title: "uv pip install --target", shop: shop, env: env, find: func(ctx context.Context) ([]string, error) {
		uv, err := pyenv.UV(ctx, filepath.Dir(shop.dir), shop.progress)
		return []string{uv, "pip", "install", "--quiet", "--only-binary", ":all:", "--python", env.Python, "--target"}, err
	}}
}

func newPipTarget(shop *workshop, env *pyenv.Environment) Subject {
	return &installer{id: "pip-target", title: "pip install --target", shop: shop, env: env, find: func(ctx context.Context) ([]string, error) {
		python, err := pythonWithPip(ctx, shop, env)
		return []string{python, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:", "--target"}, err
	}}
}

// pythonWithPip makes a virtual environment with pip on the standard environment's base, for this run.
func pythonWithPip(ctx context.Context, shop *workshop, env *pyenv.Environment) (string, error) {
	base, err := filepath.EvalSymlinks(env.Python)
	if err != nil {
		return "", fmt.Errorf("find the base Python: %w", err)
	}
	dir := filepath.Join(shop.run, "pip")
	if _, err := shop.do(ctx, shop.command(base, "-m", "venv", dir)); err != nil {
		return "", problem.New(codePip, "no virtual environment with pip can be made").
			WithHint("Debian, Ubuntu: `apt-get install python3-venv`").WithCause(err)
	}
	return filepath.Join(dir, "bin", "python"), nil
}

func (s *installer) About() About {
	return About{ID: s.id, Title: s.title, Version: s.version,
		Note: "into an empty folder on the host, without isolation, what it has in its cache; the import is in a new process with the standard environment"}
}

// Start fills the program's cache and the folder that has the package.
func (s *installer) Start(ctx context.Context) (err error) {
	if s.argv, err = s.find(ctx); err != nil {
		return err
	}
	version := s.argv[:1]
	if s.argv[1] == "-m" {
		version = s.argv[:3]
	}
	out, err := s.shop.do(ctx, s.shop.command(version[0], append(version[1:len(version):len(version)], "--version")...))
	if err != nil {
		return err
	}
	if words := strings.Fields(out); len(words) > 1 {
		s.version = words[1]
	}
	s.ready, err = s.shop.scratch()
	if err == nil {
		err = s.install(ctx, s.ready)
	}
	return err
}

func (s *installer) Stop(context.Context) error { return nil }

func (s *installer) install(ctx context.Context, dir string) error {
	args := append(append([]string{}, s.argv[1:]...), dir, wantedPackage)
	cmd := s.shop.command(s.argv[0], args...)
	cmd.Env = append(cmd.Env, "PIP_USER=0", "PYTHONPATH=", "PIP_ROOT_USER_ACTION=ignore")
	_, err := s.shop.do(ctx, cmd)
	return err
}

func (s *installer) Having(context.Context) (Live, error) { return s.importing(s.ready), nil }

func (s *installer) Lacking(_ context.Context, _ Readiness) (Live, func(context.Context) error, error) {
	dir, err := s.shop.scratch()
	if err != nil {
		return nil, nil, err
	}
	return disposable{s.importing(dir), dir}, func(ctx context.Context) error { return s.install(ctx, dir) }, nil
}

// importing is an interpreter that sees dir behind its own packages.
func (s *installer) importing(dir string) Live {
	return &program{shop: s.shop, argv: func(code string) []string {
		return []string{s.env.Python, "-c", fmt.Sprintf("import sys; sys.path.append(%q)\n", dir) + code}
	}}
}

// disposable goes with its folder.
type disposable struct {
	Live
	dir string
}

func (d disposable) Close(ctx context.Context) error {
	return errors.Join(d.Live.Close(ctx), os.RemoveAll(d.dir))
}
