package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
)

// PackageDesk lists and changes packages: an installer with the standing packages of a project and of the user.
type PackageDesk interface {
	// Environment is what code has without any installation.
	Environment() BaseEnvironment
	// Standing returns what sessions begin with: those of the project that cove was started in, or with global those of sessions outside of any project.
	Standing(global bool) (Standing, error)
	// Add puts requirements among the standing packages and installs them. When anything is refused, the provision says so and nothing is changed;
	// with an error nothing is changed either. The same holds for Remove and Lock.
	Add(ctx context.Context, asked []require.Requirement, global bool, told func(installation.Progress)) (installation.Provision, error)
	// Remove takes distributions, whose names are normalized, out of the standing packages. A name that is not there is a problem of kind NotFound.
	Remove(ctx context.Context, names []string, global bool, told func(installation.Progress)) (installation.Provision, error)
	// Lock resolves the standing packages as their file has them now; with upgrade to the newest versions instead of those that are locked.
	Lock(ctx context.Context, global, upgrade bool, told func(installation.Progress)) (installation.Provision, error)
	// Layers lists what is installed for any session, last used first.
	Layers() ([]layer.Used, error)
}

// BaseEnvironment is a Python environment as `cove packages ls` shows it.
type BaseEnvironment struct {
	Name     string            `json:"name"`     // standard, standard-2024, minimal
	Python   string            `json:"python"`   // its version
	Packages map[string]string `json:"packages"` // distribution to version
}

// Standing is what sessions begin with besides the environment.
type Standing struct {
	File         string            `json:"file"`         // where requirements are; "" when there is no such file
	Lock         string            `json:"lock"`         // the file with their versions
	Requirements []string          `json:"requirements"` // PEP 508
	Packages     map[string]string `json:"packages"`     // distribution to version, all that the requirements take
}

type packagesCmd struct {
	Resolve packagesResolve `cmd:"" help:"Say what package a module comes from, and why."`
	Ls      packagesLs      `cmd:"" help:"List what code has: the environment, what the project adds, what was installed."`
	Add     packagesAdd     `cmd:"" help:"Add packages that every session of this project begins with."`
	Rm      packagesRm      `cmd:"" help:"Take packages out of those of this project."`
	Lock    packagesLock    `cmd:"" help:"Resolve the packages of this project again, and write down their versions."`
}

// Help is the long help.
func (packagesCmd) Help() string {
	return `Packages that code imports and that are missing are installed before the code runs: from wheels, on the host, by rules that the
settings of [packages] change (cove config shows them). Code may ask for a version with %pip install "name<2", with PEP 723
metadata, or with a comment "# requirements: name<2".

A project can have packages that its sessions begin with: cove-packages.txt in its folder, one requirement a line, and
cove-packages.lock with the versions and hashes of all that these take. Both are meant to be kept with the project.

Examples:

    cove packages resolve cv2 yaml google.cloud.storage
    cove packages add 'polars<2' duckdb
    cove packages ls`
}

// deskFlags are the flags of every command that changes packages.
type deskFlags struct {
	Global     bool   `help:"For sessions outside of any project, instead of this project."`
	Packages   string `placeholder:"SET" help:"Python environment: standard, standard-2024 or minimal (default: ${packages})."`
	Offline    bool   `help:"Use only what was downloaded before."`
	AllowBuild bool   `help:"Build packages that have no wheel from source, in a sandbox of their own that reaches the package index alone."`
	Quiet      bool   `short:"q" help:"Say nothing but what went wrong."`
	JSON       bool   `name:"json" help:"Print what changed as one JSON object."`
}

func (p *Program) desk(ctx context.Context, set string, quiet bool, change func(*config.Config)) (PackageDesk, error) {
	if p.ConfigErr != nil {
		return nil, p.ConfigErr
	}
	c := p.Config
	c.Packages.Set = cmp.Or(set, c.Packages.Set)
	change(&c)
	if err := c.Validate(); err != nil {
		return nil, err
	}
	progress := p.Err
	if quiet {
		progress = io.Discard
	}
	return p.Packages(ctx, c, lang.Lines(progress))
}

// deskWork does one thing to the standing packages.
type deskWork func(ctx context.Context, d PackageDesk, told func(installation.Progress)) (installation.Provision, error)

// change does the work and tells what it changed. verb is what happened to the file.
func (f deskFlags) change(ctx context.Context, p *Program, work deskWork) error {
	d, err := p.desk(ctx, f.Packages, f.Quiet, func(c *config.Config) {
		installFlags{Offline: f.Offline, AllowBuild: f.AllowBuild}.install(c)
	})
	if err != nil {
		return err
	}
	before, err := d.Standing(f.Global)
	if err != nil {
		return err
	}
	var live *terminal.Live
	if !f.Quiet && !f.JSON {
		live = p.live
	}
	var large announcement
	provision, err := work(ctx, d, func(step installation.Progress) {
		if line := large.announce(&step); line != "" && !f.Quiet && !f.JSON {
			fmt.Fprintln(p.Err, line)
		}
		live.Progress(progressText(step))
	})
	live.Over()
	if err == nil {
		err = refusals(provision)
	}
	if err != nil {
		return err
	}
	after, err := d.Standing(f.Global)
	if err != nil {
		return err
	}
	return f.tell(p, changed{Standing: after, Changes: changes(before.Packages, after.Packages), provision: provision, same: slices.Equal(before.Requirements, after.Requirements)})
}

// refusals is the error of a provision that refuses something.
func refusals(p installation.Provision) error {
	var all []error
	for _, r := range p.Refused {
		all = append(all, problem.Received(problem.Denied, r.Code, refusalText(r)).WithHint(r.Hint))
	}
	return errors.Join(all...)
}

// changed is what became of the standing packages.
type changed struct {
	Standing
	Changes   []packageChange
	provision installation.Provision
	same      bool // the requirements are what they were
}

type packageChange struct {
	Name string `json:"name"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// changes compares versions of distributions, by name.
func changes(before, after map[string]string) []packageChange {
	names := maps.Clone(before)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, after)
	list := []packageChange{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before[name] != after[name] {
			list = append(list, packageChange{name, before[name], after[name]})
		}
	}
	return list
}

func (c packageChange) String() string {
	switch {
	case c.From == "":
		return "+ " + c.Name + " " + c.To
	case c.To == "":
		return "- " + c.Name + " " + c.From
	}
	return "~ " + c.Name + " " + c.From + " -> " + c.To
}

func (f deskFlags) tell(p *Program, c changed) error {
	if f.JSON {
		return p.printJSON(map[string]any{
			"file": c.File, "lock": c.Lock, "requirements": notNone(c.Requirements), "packages": notNilStrings(c.Packages), "changes": c.Changes,
			"notes": notNone(c.provision.Notes), "seconds": c.provision.Seconds, "cached": c.provision.Cached,
		})
	}
	for _, one := range c.Changes {
		if f.Quiet {
			break
		}
		if _, err := fmt.Fprintln(p.Out, oneLine(one.String())); err != nil {
			return err
		}
	}
	if f.Quiet {
		return nil
	}
	for _, note := range c.provision.Notes {
		fmt.Fprintln(p.Err, "cove: "+lang.Text(oneLine(note)))
	}
	switch {
	case len(c.Changes) == 0 && c.same:
		fmt.Fprintln(p.Err, "cove: "+lang.Sprintf("nothing changed; %s", standingText(c.Standing)))
	case len(c.Changes) == 0:
		fmt.Fprintln(p.Err, "cove: "+lang.Sprintf("no version changed; %s", standingText(c.Standing)))
	default:
		notef(p.Err, "%s (%s)", standingText(c.Standing), cost(c.provision))
	}
	return nil
}

func standingText(s Standing) string {
	if s.File == "" {
		return lang.Text("there are no standing packages")
	}
	return lang.Sprintf("%s: %s, %s in all", oneLine(s.File), count(len(s.Requirements), "requirement"), count(len(s.Packages), "package"))
}

// count says how many there are, in the language of the process.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return lang.Text(fmt.Sprintf("%d %s", n, noun))
}

func notNilStrings(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

type packagesAdd struct {
	Packages []string `arg:"" name:"package" help:"What to add, with versions where they matter: duckdb, 'polars[excel]<2'."`
	deskFlags
}

// Help is the long help.
func (packagesAdd) Help() string {
	return `Resolves and installs the packages together with those that are there already, writes the requirements to cove-packages.txt and
the versions of all that they take to cove-packages.lock: in the project's folder, which is the nearest one above with such a file,
or else the present one. Sessions that are made below that folder have them from their start. A package that you name is installed even
when it is little known. Nothing is written when anything fails.

Examples:

    cove packages add 'polars<2' duckdb
    cove packages add --global cowsay`
}

func (c *packagesAdd) run(ctx context.Context, p *Program) (int, error) {
	var asked []require.Requirement
	for _, text := range c.Packages {
		r, err := require.Parse(text)
		if err != nil {
			return 0, err
		}
		asked = append(asked, r)
	}
	return 0, c.change(ctx, p, func(ctx context.Context, d PackageDesk, told func(installation.Progress)) (installation.Provision, error) {
		return d.Add(ctx, asked, c.Global, told)
	})
}

type packagesRm struct {
	Packages []string `arg:"" name:"package" help:"Their names."`
	deskFlags
}

// Help is the long help.
func (packagesRm) Help() string {
	return `What only these needed goes too. Layers that are not used any more are removed from the disk later.

Example:

    cove packages rm duckdb`
}

func (c *packagesRm) run(ctx context.Context, p *Program) (int, error) {
	var names []string
	for _, name := range c.Packages {
		names = append(names, require.Normalize(name))
	}
	return 0, c.change(ctx, p, func(ctx context.Context, d PackageDesk, told func(installation.Progress)) (installation.Provision, error) {
		return d.Remove(ctx, names, c.Global, told)
	})
}

type packagesLock struct {
	Upgrade bool `short:"U" help:"Take the newest versions instead of those that are locked."`
	deskFlags
}

// Help is the long help.
func (packagesLock) Help() string {
	return `Reads cove-packages.txt, which may be edited by hand, and writes cove-packages.lock; prints what changed. Versions that are locked
stay as they are where they still fit.

Examples:

    cove packages lock
    cove packages lock --upgrade`
}

func (c *packagesLock) run(ctx context.Context, p *Program) (int, error) {
	return 0, c.change(ctx, p, func(ctx context.Context, d PackageDesk, told func(installation.Progress)) (installation.Provision, error) {
		return d.Lock(ctx, c.Global, c.Upgrade, told)
	})
}
