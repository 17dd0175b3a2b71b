// Package cli is cove's command line: one file per command. It talks to a person or to a pipe; what it needs of the
// rest of the program comes in through Program, so that a test can stand in for all of it.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"cove/internal/config"
	"cove/internal/hub"
	"cove/internal/model"
	"cove/internal/model/choose"
	"cove/internal/named"
	"cove/internal/problem"
	"cove/internal/sandbox"
)

// The exit codes of cove's own, as the GNU tools timeout and env have them.
const (
	exitUncaught    = 1
	exitTimeout     = 124
	exitFailure     = 125
	exitInterrupted = 130
	exitMemory      = 137
	exitBrokenPipe  = 141
)

// Program is what the command line works with.
type Program struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Version  string

	Config    config.Config
	ConfigErr error // what Load said; the commands that need no settings work nevertheless

	// Signals delivers interrupts and requests to end; nil means that none ever come.
	Signals <-chan os.Signal
	// Open starts a sandbox with a session in it. Progress is said to progress, which may be io.Discard.
	Open func(ctx context.Context, c config.Config, progress io.Writer) (hub.Live, error)
	// Prepare finds what a session with a name stands on; see named.Options. Progress is as for Open.
	Prepare func(c config.Config, progress io.Writer) named.Prepare
	// Outlook says what becomes of the command line's and the server's sessions on the disk with this cove. It changes nothing.
	Outlook func(ctx context.Context, c config.Config) (local, server named.Survey, err error)
	// Served returns the address of the server that uses the settings' folder on this machine, "" where none does.
	Served func(config.Config) string
	// Salvage writes the files of a snapshot to w; see Salvage.
	Salvage func(ctx context.Context, c config.Config, what Salvage, w io.Writer) error
	// Launch starts cove with these arguments as a process in the background that writes to the file log, and waits until that calls Report,
	// whose notices it returns.
	Launch func(ctx context.Context, args []string, log string) (notices []string, err error)
	// Report tells Launch in the process that started this one that it is ready, or why it ends.
	Report func(notices []string, err error)
	// Packages prepares what `cove packages` works with, building the environment when it is missing. Progress is as for Open.
	Packages func(ctx context.Context, c config.Config, progress io.Writer) (PackageDesk, error)
	// Explain says what modules mean for the environment of these settings. It builds nothing, and returns nil where there is no environment yet.
	Explain func(config.Config) Explain
	// Reach asks the package index for a sign of life and says which it is. known is false where that cannot be told yet.
	Reach func(ctx context.Context, c config.Config) (index string, known bool, err error)
	// Tools returns the tool servers of the settings. What they have to say goes to the log.
	Tools func(c config.Config, log *slog.Logger) (ToolServers, error)
	// NewModel connects to a model.
	NewModel func(choose.Choice) (model.Model, error)
	// Engine makes the engine that the settings name, without checking it.
	Engine func(config.Config) (sandbox.Engine, error)
	// Serve makes a server with these settings and has it listen. Progress is as for Open.
	Serve func(ctx context.Context, c config.Config, o ServerOptions) (Server, error)
	// Records opens the database that these settings name, making it when it is missing.
	Records func(ctx context.Context, c config.Config, o RecordsOptions) (*Records, error)
	// Restore reads what Records.Backup wrote into a database and a folder that have nothing in them.
	Restore func(ctx context.Context, c config.Config, r io.Reader) error
	// PlotlyScript is the path of plotly.js in the Python environment, or "".
	PlotlyScript func(config.Config) string
}

// command is one subcommand. The int is the exit code when there is no error.
type command interface {
	run(ctx context.Context, p *Program) (int, error)
}

type grammar struct {
	Run      runCmd      `cmd:"" help:"Run Python in a sandbox."`
	Ask      askCmd      `cmd:"" help:"Ask a question; a model writes Python, cove runs it in a sandbox, you get the answer."`
	Eval     evalCmd     `cmd:"" help:"Measure how good a model's answers are: tasks with checks, and the figures that come of them."`
	Batch    batchCmd    `cmd:"" help:"Run many cells, or ask many questions, on a server."`
	Repl     replCmd     `cmd:"" help:"Talk to a sandboxed Python, line by line."`
	Chat     chatCmd     `cmd:"" help:"A conversation with a model that runs Python in a sandbox."`
	Session  sessionCmd  `cmd:"" help:"List, fork, undo and remove the sessions that --session made."`
	Check    checkCmd    `cmd:"" help:"Look at a program or notebook: mistakes, slow forms, a profile, documentation, benchmarks."`
	Packages packagesCmd `cmd:"" help:"Say what names mean; list, add and lock packages."`
	Data     dataCmd     `cmd:"" help:"Fetch data that libraries download when it is used, such as NLTK's and spaCy's."`
	History  historyCmd  `cmd:"" help:"List what was asked before."`
	Show     showCmd     `cmd:"" help:"Show a conversation, a turn or an execution: the question, the code, what it printed, the answer."`
	Search   searchCmd   `cmd:"" help:"Find words in what was asked, answered, run and printed."`
	Rerun    rerunCmd    `cmd:"" help:"Run the code of a conversation, a turn or an execution again, and say what differs."`
	Export   exportCmd   `cmd:"" help:"Write a conversation as a notebook, as Markdown or as a program."`
	Serve    serveCmd    `cmd:"" help:"Serve cove's API and OpenAI's to applications and other users."`
	Open     openCmd     `cmd:"" help:"Print the address of the server's page, with a code that signs a browser in."`
	MCP      mcpCmd      `cmd:"" name:"mcp" help:"The Model Context Protocol: on standard input and output, and in the settings of other programs."`
	Tools    toolsCmd    `cmd:"" help:"List the tool servers whose tools code may call, and say what is wrong with those that cannot be used."`
	Key      keyCmd      `cmd:"" help:"Make, list and revoke the keys of a server."`
	User     userCmd     `cmd:"" help:"Add, list and remove the users of a server."`
	Project  projectCmd  `cmd:"" help:"Add and list projects, their members and quotas."`
	Usage    usageCmd    `cmd:"" help:"Show what a project used, day by day."`
	Audit    auditCmd    `cmd:"" help:"Show who did what on a server."`
	Backup   backupCmd   `cmd:"" help:"Write the database and the stored files into one archive."`
	Restore  restoreCmd  `cmd:"" help:"Bring the archive of a backup into an empty folder."`
	Doctor   doctorCmd   `cmd:"" help:"Say what this machine can do, with a fix for each thing that it cannot."`
	Config   configCmd   `cmd:"" help:"Show every setting, what it means and its value."`
	Version  versionCmd  `cmd:"" help:"Show the version."`
}

// Main runs the command line args (without the program's name) and returns the exit code.
func Main(ctx context.Context, args []string, p *Program) int {
	cmd, code, err := parse(args, p)
	if cmd == nil && err == nil {
		return code
	}
	if err == nil {
		code, err = carryOut(ctx, p, cmd)
	}
	if err == nil {
		return code
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitBrokenPipe
	}
	p.report(err)
	if wantsJSON(args) {
		_ = lines{p.Out}.failure(err)
	}
	if problem.Of(err).Kind == problem.Canceled {
		return exitInterrupted
	}
	if args[0] == "check" && problem.Has(err, problem.Usage) { // as linters have it
		return exitUsage
	}
	return exitFailure
}

// parse returns the command to run, or nil when parsing itself did what was asked (help).
func parse(args []string, p *Program) (command, int, error) {
	var g grammar
	exited, exitCode := false, 0
	own, rest := splitArgs(args)
	if len(own) == 0 {
		own = []string{"--help"}
	}
	parser, err := g.parser(own[0],
		kong.Name("cove"),
		kong.Description("The code interpreter you own: Python in a sandbox, for you and for a language model."),
		kong.Writers(p.Out, p.Err),
		kong.Exit(func(code int) { exited, exitCode = true, code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Vars(defaults(p.Config)),
	)
	if err != nil {
		return nil, 0, fmt.Errorf("build the command line: %w", err)
	}
	kctx, err := parser.Parse(own)
	if exited {
		return nil, exitCode, nil
	}
	if err != nil {
		return nil, 0, usageProblem(own, err)
	}
	g.Run.Args = append(g.Run.Args, rest...)
	g.Check.Args = append(g.Check.Args, rest...)
	g.Session.Exec.Command = append(g.Session.Exec.Command, rest...)
	cmd, ok := kctx.Selected().Target.Addr().Interface().(command)
	if !ok {
		return nil, 0, fmt.Errorf("%s cannot be run", kctx.Command())
	}
	return cmd, 0, nil
}

// parser makes the parser of the command with that name alone, and that of the whole grammar where no command has it. To build the whole takes
// a quarter of the processor time of a small command; what a command parses, helps with and complains of is the same either way.
func (g *grammar) parser(name string, options ...kong.Option) (*kong.Kong, error) {
	all := reflect.ValueOf(g).Elem()
	for i := range all.NumField() {
		if field := all.Type().Field(i); strings.ToLower(field.Name) == name {
			one := kong.DynamicCommand(name, field.Tag.Get("help"), "", all.Field(i).Addr().Interface())
			return kong.New(&struct{}{}, append(options, one)...)
		}
	}
	return kong.New(g, options...)
}

// splitArgs takes what follows "--" of `cove run`, `cove check` and `cove session exec` away: it belongs to the program.
func splitArgs(args []string) (own, rest []string) {
	own = args[:min(len(args), 2)]
	if len(args) == 0 || args[0] != "run" && args[0] != "check" && !slices.Equal(own, []string{"session", "exec"}) {
		return args, nil
	}
	if at := slices.Index(args, "--"); at >= 0 {
		return args[:at], args[at+1:]
	}
	return args, nil
}

func usageProblem(args []string, err error) error {
	hint := "see `cove --help`"
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok && wrong.Context.Selected() != nil {
		hint = "see `" + wrong.Context.Selected().FullPath() + " --help`"
		if args[0] == "run" && strings.Contains(err.Error(), "un") {
			hint += "; what is meant for the program comes after --, as in `cove run analysis.py -- --year 2025`"
		}
	}
	return problem.New(problem.Usage, err.Error()).WithHint(hint)
}

// wantsJSON looks at the raw arguments, because a failure may come before they are understood.
func wantsJSON(args []string) bool {
	own, _ := splitArgs(args)
	return slices.Contains(own, "--json")
}

func defaults(c config.Config) map[string]string {
	return map[string]string{
		"out": c.Folders.Out, "timeout": c.Sandbox.Timeout.String(), "memory": c.Sandbox.Memory.String(), "cpus": fmt.Sprint(c.Sandbox.CPUs),
		"engine": c.Sandbox.Engine, "packages": c.Packages.Set, "max_output": c.Sandbox.MaxOutput.String(), "max_steps": fmt.Sprint(c.Turn.MaxSteps),
		"session_idle": c.Session.Idle.String(), "listen": c.Serve.Listen.String(), "data_most": c.Data.Most.String(),
	}
}

// report tells the person what went wrong and what to do.
func (p *Program) report(err error) {
	for _, one := range flatten(err) {
		fmt.Fprintln(p.Err, "cove: "+message(one))
		if hint := nextStep(one); hint != "" {
			fmt.Fprintln(p.Err, "  "+strings.ReplaceAll(hint, "\n", "\n  "))
		}
	}
}

// nextStep is the hint of a problem. What servers say about keys is meant for programs that write requests.
func nextStep(err error) string {
	p := problem.Of(err)
	if problem.Has(p, problem.Unauthenticated, problem.KeyExpired) {
		return wantsKey
	}
	return p.Hint
}

// flatten takes joined errors apart; each has its own hint.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// message is what a person is told: for a problem its sentence and its cause, without the way it took.
func message(err error) string {
	return strings.TrimSpace(problem.Of(err).Error())
}
