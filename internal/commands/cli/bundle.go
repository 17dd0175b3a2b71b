package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"cove/internal/commands/bundle"
	"cove/internal/commands/terminal"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
)

type bundleCmd struct {
	Make    bundleMakeCmd    `cmd:"" default:"withargs" help:"Write a bundle."`
	Install bundleInstallCmd `cmd:"" help:"Install a bundle on this machine, without a network."`
}

// Help is the long help.
func (bundleCmd) Help() string {
	return `On a machine with a network:

    cove bundle cove.tar

On one without, that has the same processor, the same minor version of Python and a system that is not older:

    tar -xf cove.tar cove
    ./cove bundle install cove.tar

A bundle has this program and the wheels of the Python environment: about 400 MB. Packages beyond the environment come from an index or a folder of
wheels that can be reached there (packages.index, UV_FIND_LINKS).`
}

type bundleMakeCmd struct {
	configFlag
	Packages string `placeholder:"SET" help:"Python environment: standard, standard-2024 or minimal (default: ${packages})."`
	JSON     bool   `name:"json" help:"Say what was written as one JSON object."`
	File     string `arg:"" help:"The bundle to write (.tar), which must not exist; - is standard output."`
}

func (c *bundleMakeCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.settings(p)
	if err != nil {
		return 0, err
	}
	if c.Packages != "" {
		cfg.Packages.Set = c.Packages
	}
	if err := cfg.Validate(); err != nil {
		return 0, err
	}
	i := p.interruptible(ctx)
	defer i.stop()
	sum := sha256.New()
	var about bundle.About
	fill := func(w io.Writer) error {
		var err error
		about, err = p.Bundle(i.hard, cfg, io.MultiWriter(w, sum), lang.Lines(p.Err))
		return err
	}
	if c.File == "-" {
		if _, tty := terminal.Descriptor(p.Out); tty {
			return 0, problem.New(problem.Usage, "a bundle cannot be written to a terminal").WithHint("give a file, or pipe it somewhere")
		}
		return 0, fill(p.Out)
	}
	if err := absent(c.File); err != nil {
		return 0, err
	}
	size, err := writeWhole(c.File, 0o644, fill)
	if err != nil {
		return 0, err
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	if c.JSON {
		return 0, p.printJSON(record{"file": c.File, "bytes": size, "sha256": digest, "version": about.Cove, "platform": about.Platform, "python": about.Python, "packages": about.Set})
	}
	_, err = lang.Fprintf(p.Out, "%s, %s, for %s and Python %s; SHA-256 %s\n", c.File, humanSize(size), about.Platform, about.Python, digest)
	return 0, err
}

type bundleInstallCmd struct {
	configFlag
	Bin  string `placeholder:"FOLDER" help:"Where the program goes, where this one is not in your PATH (default: ~/.local/bin; as root /usr/local/bin)."`
	File string `arg:"" help:"The bundle; - is standard input."`
}

func (c *bundleInstallCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.settings(p)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return 0, err
	}
	from, done, err := p.source(c.File)
	if err != nil {
		return 0, err
	}
	defer done()
	to, err := c.target(p)
	if err != nil {
		return 0, err
	}
	i := p.interruptible(ctx)
	defer i.stop()
	about, err := p.Unbundle(i.hard, cfg, from, to, lang.Lines(p.Err))
	if err != nil {
		return 0, err
	}
	cfg.Packages.Set = about.Set
	live, err := p.Open(i.hard, cfg, lang.Lines(p.Err)) // makes the warm interpreter, and shows that all is there
	if err != nil {
		return 0, err
	}
	if err := live.Close(context.WithoutCancel(ctx)); err != nil {
		return 0, err
	}
	name := "cove"
	if to != "" {
		lang.Fprintf(p.Out, "cove %s is installed as %s\n", about.Cove, to)
		if found, err := exec.LookPath("cove"); err != nil || found != to {
			name = to
		}
	}
	if def := p.Config.Packages.Set; about.Set != def {
		lang.Fprintf(p.Out, "The bundle has the %s packages, and the settings say %s: use --packages %s, or set COVE_PACKAGES=%s\n", about.Set, def, about.Set, about.Set)
	}
	_, err = lang.Fprintf(p.Out, "Python runs in a sandbox here. Try it: %s run -c 'print(1+1)'\n", name)
	return 0, err
}

// target is the file that the program is installed as, or "" where the one that runs has a place in the PATH already.
func (c *bundleInstallCmd) target(p *Program) (string, error) {
	if c.Bin != "" {
		dir, err := filepath.Abs(c.Bin)
		return filepath.Join(dir, "cove"), err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if found, err := exec.LookPath("cove"); err == nil {
		a, errA := os.Stat(found)
		b, errB := os.Stat(self)
		if errors.Join(errA, errB) == nil && os.SameFile(a, b) {
			return "", nil
		}
	}
	dir := "/usr/local/bin"
	if os.Geteuid() != 0 {
		home := p.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", problem.New(problem.Usage, "HOME is not set, so that there is no place for the program").WithHint("--bin names one")
		}
		dir = filepath.Join(home, ".local", "bin")
	}
	return filepath.Join(dir, "cove"), nil
}
