package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cove/internal/code/advice"
	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/python/kernel"
)

// The exit codes of cove check beside those of cove's own.
const (
	exitFindings = 1
	exitUsage    = 2
)

// mostChecked bounds the files of one command.
const mostChecked = 200

type checkCmd struct {
	ownSignals
	Files   []string `arg:"" optional:"" name:"file" help:"Python programs, modules and notebooks (.ipynb)."`
	Args    []string `kong:"-"`
	Profile bool     `help:"Run the program, and say what time and memory its lines take."`
	Measure bool     `help:"Run the slow forms that are found beside the faster ones; without a file, all that are known."`
	Docs    bool     `help:"Write the reference of the module as Markdown instead. Nothing of it runs."`
	OpenAPI bool     `name:"openapi" help:"Write the OpenAPI document of the module's FastAPI or Flask application instead."`
	Bench   bool     `help:"Measure how long the program runs instead; with --against or --sizes to compare."`
	Against string   `placeholder:"FILE" help:"With --bench: another program to measure beside it."`
	Sizes   []int    `placeholder:"N,N,..." help:"With --bench: run the program with each of these as its first argument, and as N in its environment; says and plots how the time grows."`
	Runs    int      `default:"5" placeholder:"N" help:"With --bench: how often each is run (default: 5)."`
	FailOn  string   `default:"warning" enum:"note,warning,error,never" placeholder:"SEVERITY" help:"The least severity that gives exit code 1: note, warning, error, or never (default: warning)."`
	Ignore  []string `placeholder:"RULE" help:"Leave out findings of this rule, or of all whose names begin so. Repeatable."`
	File    []string `short:"f" sep:"none" placeholder:"PATH" help:"Put this file or folder into the workspace: what the program reads or imports. Repeatable."`
	Out     string   `short:"o" placeholder:"FILE" help:"Where --docs and --openapi write (without: standard output), and --bench the plot (without: NAME-growth.png)."`
	JSON    bool     `name:"json" help:"Print what was found as one JSON object."`
	sandboxFlags
	networkFlags
	installFlags
}

// Help is the long help.
func (checkCmd) Help() string {
	return `Looks at code in a sandbox: for mistakes (Ruff, and mypy where the code has types) and for slow forms of pandas, NumPy and Python, each with the
faster form. The tools are installed when they are first used. The code runs with --profile, --bench and --openapi alone. A line with
the comment "# noqa" or "# noqa: RULE" is left out. What is meant for the program comes after --.

Examples:

    cove check analysis.py
    cove check notebook.ipynb --measure
    cove check report.py -f data.csv --profile -- --year 2025
    cove check shop.py --docs -o api.md
    cove check sort.py --bench --sizes 1000,10000,100000
    cove check old.py --bench --against new.py

Exit code: 0 nothing of the severity --fail-on or above it was found; 1 something was; 2 the command line is wrong;
125 cove itself failed, or the program that was to be measured did.`
}

func (c *checkCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.config(p)
	if err != nil {
		return 0, err
	}
	c.install(&cfg)
	if err := c.usage(); err != nil {
		return 0, err
	}
	i := p.interruptible(ctx)
	defer i.stop()
	code, err := c.check(i, p, cfg)
	if signalled := i.exitCode(); signalled != 0 && err != nil {
		return signalled, nil
	}
	return code, err
}

// usage says what is wrong with the flags together.
func (c *checkCmd) usage() error {
	instead := []string{}
	for _, f := range []struct {
		name string
		set  bool
	}{{"--docs", c.Docs}, {"--openapi", c.OpenAPI}, {"--bench", c.Bench}} {
		if f.set {
			instead = append(instead, f.name)
		}
	}
	wrong := func(text, hint string) error { return problem.New(problem.Usage, text).WithHint(hint) }
	switch {
	case len(instead) > 1:
		return wrong(strings.Join(instead, " and ")+" exclude each other", "run the command once for each")
	case len(instead) == 1 && (c.Profile || c.Measure):
		return wrong(instead[0]+" does not go with --profile and --measure", "run the command once for each")
	case len(c.Files) == 0 && (!c.Measure || c.Profile):
		return wrong("there is nothing to check", "give a file; see `cove check --help`")
	case len(c.Files) > mostChecked:
		return wrong(fmt.Sprintf("one command checks at most %d files", mostChecked), "give fewer files at a time")
	case len(instead) == 1 && len(c.Files) != 1:
		return wrong(instead[0]+" takes one file", "run the command once for each file")
	case !c.Bench && (c.Against != "" || len(c.Sizes) > 0):
		return wrong("--against and --sizes are for --bench", "add --bench")
	case c.Out != "" && len(instead) == 0:
		return wrong("--out is for --docs, --openapi and --bench", "redirect standard output to keep the findings: cove check FILE > findings.txt")
	case len(c.Args) > 0 && !c.Profile && !c.Bench:
		return wrong("the program does not run, so it can have no arguments", "what comes after -- is for --profile and --bench")
	}
	return nil
}

// sources reads the files that are to be checked.
func (c *checkCmd) sources() ([]advice.Source, error) {
	var all []advice.Source
	for _, name := range c.Files {
		src, err := readSource(name)
		if err != nil {
			return nil, err
		}
		all = append(all, src)
	}
	return all, nil
}

func readSource(name string) (advice.Source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return advice.Source{}, unreadable(name, err)
	}
	if !info.Mode().IsRegular() {
		return advice.Source{}, problem.New(problem.Usage, name+" is not an ordinary file; cove check takes programs and notebooks").WithHint("name the files, such as folder/*.py")
	}
	f, err := os.Open(name)
	if err != nil {
		return advice.Source{}, unreadable(name, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, advice.MaxNotebook+1))
	if err != nil {
		return advice.Source{}, problem.New(problem.InputUnreadable, name+" cannot be read").WithCause(err)
	}
	if len(text) > advice.MaxNotebook {
		return advice.Source{}, problem.New(problem.CodeTooBig, fmt.Sprintf("%s is longer than %s, the most that is checked", name, config.Size(advice.MaxNotebook)))
	}
	if !isNotebook(name) {
		program, err := programText(name, text)
		if err != nil {
			return advice.Source{}, err
		}
		text = []byte(program)
	}
	return advice.ReadSource(name, text)
}

func (c *checkCmd) check(i *interruption, p *Program, cfg config.Config) (code int, err error) {
	sources, err := c.sources()
	if err != nil {
		return 0, err
	}
	var against *advice.Source
	if c.Against != "" {
		other, err := readSource(c.Against)
		if err != nil {
			return 0, err
		}
		against = &other
	}
	inputs, out, err := p.prepare(i.soft, fileFlags{File: c.File, Out: p.Config.Folders.Out}, c.networkFlags)
	if err != nil {
		return 0, err
	}
	s, err := p.open(i.soft, opening{cfg: cfg, flags: c.sandboxFlags, network: c.networkFlags, command: "cove check"}, inputs, out)
	if err != nil {
		return 0, err
	}
	defer s.settle(i.hard, &code, &err)
	defer s.killed(i.hard)()

	installs := &runView{p: p, quiet: c.Quiet, live: p.live}
	defer installs.live.Over()
	checker := &advice.Checker{Session: s, Timeout: time.Duration(cfg.Sandbox.Timeout), Told: func(e kernel.Event) {
		if e, ok := e.(kernel.Install); ok {
			installs.install(e)
		}
	}}
	switch {
	case c.Docs:
		return 0, c.document(i.soft, p, checker, sources[0])
	case c.OpenAPI:
		text, err := checker.OpenAPI(i.soft, sources[0])
		if err != nil {
			return 0, err
		}
		return 0, c.write(p, string(text))
	case c.Bench:
		return 0, c.benchmark(i.soft, p, checker, sources[0], against)
	case len(sources) == 0:
		return 0, c.measure(i.soft, p, checker)
	}
	return c.look(i.soft, p, checker, sources)
}

// look checks all files and shows what was found.
func (c *checkCmd) look(ctx context.Context, p *Program, checker *advice.Checker, sources []advice.Source) (int, error) {
	v := checkView{p: p, colour: p.colours(p.Out)}
	reports := []advice.Report{}
	found := false
	for _, src := range sources {
		r, err := checker.Check(ctx, src, advice.Options{Measure: c.Measure, Profile: c.Profile, Args: c.Args, Ignore: c.Ignore})
		if err != nil {
			return 0, err
		}
		found = found || c.FailOn != "never" && r.Worst() != "" && r.Worst().AtLeast(advice.Severity(c.FailOn))
		reports = append(reports, r)
		if !c.JSON {
			if err := v.report(r); err != nil {
				return 0, err
			}
		}
	}
	var err error
	if c.JSON {
		err = p.printJSON(map[string]any{"files": reports})
	} else {
		err = v.total(reports)
	}
	if found {
		return exitFindings, err
	}
	return 0, err
}

// document writes the reference of a module.
func (c *checkCmd) document(ctx context.Context, p *Program, checker *advice.Checker, src advice.Source) error {
	ref, err := checker.Document(ctx, src)
	if err != nil {
		return err
	}
	if c.JSON {
		return p.printJSON(ref)
	}
	if err := c.write(p, ref.Markdown); err != nil {
		return err
	}
	if !c.Quiet {
		notef(p.Err, "%s, %d without a docstring", described(ref.Described), ref.Undocumented)
	}
	return nil
}

func described(n int) string {
	if n == 1 {
		return lang.Text("1 public class or function")
	}
	return lang.Sprintf("%d public classes and functions", n)
}

// write puts a text where --out says.
func (c *checkCmd) write(p *Program, text string) error {
	if c.Out == "" || c.Out == "-" {
		if _, tty := terminal.Descriptor(p.Out); tty {
			text = cleaned(text)
		}
		_, err := io.WriteString(p.Out, text)
		return err
	}
	return c.save(p, c.Out, []byte(text))
}

func (c *checkCmd) save(p *Program, name string, content []byte) error {
	size, err := writeWhole(name, 0o666, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
	if err == nil && !c.Quiet {
		lang.Fprintf(p.Err, "saved %s  %s\n", oneLine(name), humanSize(size))
	}
	return err
}

// cleaned takes control sequences of terminals out of a text with several lines.
func cleaned(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(oneLine(line), " ")
	}
	return strings.Join(lines, "\n")
}

func (c *checkCmd) measure(ctx context.Context, p *Program, checker *advice.Checker) error {
	rules := slices.DeleteFunc(advice.SlowForms(), func(rule string) bool {
		return slices.ContainsFunc(c.Ignore, func(i string) bool { return i != "" && strings.HasPrefix(rule, i) })
	})
	measured, err := checker.Measure(ctx, rules)
	if err != nil {
		return err
	}
	if c.JSON {
		return p.printJSON(map[string]any{"measured": measured})
	}
	return checkView{p: p, colour: p.colours(p.Out)}.measured(measured)
}

// benchmark measures a program and shows how long it takes.
func (c *checkCmd) benchmark(ctx context.Context, p *Program, checker *advice.Checker, src advice.Source, against *advice.Source) error {
	b, err := checker.Benchmark(ctx, src, advice.Comparison{Against: against, Sizes: c.Sizes, Args: c.Args, Runs: c.Runs})
	if err != nil {
		return err
	}
	if c.JSON {
		err = p.printJSON(b)
	} else {
		err = checkView{p: p, colour: p.colours(p.Out)}.benchmark(b)
	}
	if err != nil || b.Plot == nil || c.Out == "" && c.JSON {
		return err
	}
	name := c.Out
	if name == "" {
		base := filepath.Base(src.Name)
		name = strings.TrimSuffix(base, filepath.Ext(base)) + "-growth.png"
	}
	return c.save(p, name, b.Plot)
}
