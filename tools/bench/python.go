package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/python/pyenv"
)

// newPython is the standard environment's interpreter, started afresh for each execution.
func newPython(shop *workshop, env *pyenv.Environment) Subject {
	fonts := fontFolder(shop)
	return bare{&oneShot{
		id: "python3", title: "python3 -c, no isolation", note: "a new process for each execution, nothing is kept", shop: shop,
		argv:    func(code string) []string { return []string{env.Python, "-c", code} },
		env:     matplotlibEnv(fonts),
		check:   func(context.Context) error { return fillFonts(fonts, env) },
		version: func(context.Context) string { return env.Version },
	}}
}

// fontFolder is where matplotlib of all subjects finds its list of fonts, as it does in cove: without it the first import
// would search the disk for fonts.
func fontFolder(shop *workshop) string { return filepath.Join(shop.run, "matplotlib") }

func matplotlibEnv(fonts string) []string { return []string{"MPLCONFIGDIR=" + fonts, "MPLBACKEND=agg"} }

func fillFonts(fonts string, env *pyenv.Environment) error {
	source := env.Variables(env.Dir, "")["COVE_FONTCACHE"]
	if source == "" {
		return os.MkdirAll(fonts, 0o755)
	}
	err := os.CopyFS(fonts, os.DirFS(source))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("copy the list of fonts: %w", err)
	}
	return nil
}

// newBubblewrap is the same in namespaces of its own, with the host's files read-only.
func newBubblewrap(shop *workshop, env *pyenv.Environment, install bool) Subject {
	fonts := fontFolder(shop)
	return bare{&oneShot{
		id: "bubblewrap", title: "bubblewrap", shop: shop,
		note: "namespaces on the host's own Linux kernel, the host's files readable; a new process for each execution, nothing is kept",
		argv: func(code string) []string {
			return []string{"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",
				"--bind", fonts, fonts, // matplotlib searches for fonts again when it cannot write here
				"--unshare-all", "--die-with-parent", "--new-session", env.Python, "-c", code}
		},
		env: matplotlibEnv(fonts),
		check: func(ctx context.Context) error {
			if err := fillFonts(fonts, env); err != nil {
				return err
			}
			return provide(ctx, shop, install, "bwrap", "bubblewrap")
		},
		version: func(ctx context.Context) string {
			out, _ := shop.do(ctx, shop.command("bwrap", "--version"))
			return strings.TrimSpace(out)
		},
	}}
}

// provide makes sure that a program is on the PATH. With install, and as root where there is apt-get, it installs the
// distribution's packages.
func provide(ctx context.Context, shop *workshop, install bool, program string, packages ...string) error {
	if _, err := exec.LookPath(program); err == nil {
		return nil
	}
	names := strings.Join(packages, " ")
	missing := problem.New(codePeerMissing, program+" is not installed")
	if !install {
		return missing.WithHint("on Debian and Ubuntu: `apt-get install " + names + "`, or `cove bench --install-peers` as root")
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return missing.WithHint("it can only be installed by root, where there is apt-get: install " + names + " by hand")
	}
	fmt.Fprintln(shop.progress, "  Installing "+names)
	args := append([]string{"install", "-y", "-q", "--no-install-recommends"}, packages...)
	for _, args := range [][]string{args, {"update", "-q"}, args} {
		cmd := shop.command(apt, args...)
		// What the packages start must outlive the run, so it is not marked as a part of it.
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		// Half an installation is worse than a late answer to Ctrl-C.
		if _, err = shop.do(context.WithoutCancel(ctx), cmd); err != nil {
			continue
		}
		if _, err = exec.LookPath(program); err == nil {
			return nil
		}
	}
	return missing.WithHint("its installation failed: try `apt-get install " + names + "`").WithCause(err)
}
