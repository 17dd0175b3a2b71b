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

	"cove/internal/commands/bundle"
	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/llm/model/choose"
	"cove/internal/machine/image"
	"cove/internal/machine/sandbox"
	"cove/internal/server/hub"
	"cove/internal/sessions/ondisk"
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
	Build    Build

	Config    config.Config
	ConfigErr error // what Load said; the commands that need no settings work nevertheless

	atEnd []func() // what is done when the command is over

	live *terminal.Live // the last line of the terminal that Err is; nil: it is none

	// Signals delivers interrupts and requests to end; nil means that none ever come.
	Signals <-chan os.Signal
	// Open starts a sandbox with a session in it. Progress is said to progress, which may be io.Discard.
	Open func(ctx context.Context, c config.Config, progress io.Writer) (hub.Live, error)
	// Prepare finds what a session with a name stands on; see ondisk.Options. Progress is as for Open.
	Prepare func(c config.Config, progress io.Writer) ondisk.Prepare
	// Outlook says what becomes of the command line's and the server's sessions on the disk with this cove. It changes nothing.
	Outlook func(ctx context.Context, c config.Config) (local, server ondisk.Survey, err error)
	// Served returns the address of the server that uses the settings' folder on this machine, "" where none does.
	Served func(config.Config) string
	// Salvage writes the files of a snapshot to w; see Salvage.
	Salvage func(ctx context.Context, c config.Config, what Salvage, w io.Writer) error
	// Launch starts cove with these arguments as a process in the background that writes to the file log, and waits until that calls Report,
	// whose notices it returns.
	Launch func(ctx context.Context, args []string, log string) (notices []string, err error)
	// Report tells Launch in the process that started this one that it is ready, or why it ends.
	Report func(notices []string, err error)
	// Images is where images are kept.
	Images func(c config.Config) image.Store
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
	// Models lists the model that is named, "" for the default, and the others that its provider has. silent says why that does not say which.
	Models func(ctx context.Context, c config.Config, named string) (list []hub.ModelInfo, silent, err error)
	// Engine makes the engine that the settings name, without checking it.
	Engine func(config.Config) (sandbox.Engine, error)
	// Serve makes a server with these settings and has it listen. Progress is as for Open.
	Serve func(ctx context.Context, c config.Config, o ServerOptions) (Server, error)
	// Records opens the database that these settings name, making it when it is missing.
	Records func(ctx context.Context, c config.Config, o RecordsOptions) (*Records, error)
	// Restore reads what Records.Backup wrote into a database and a folder that have nothing in them.
	Restore func(ctx context.Context, c config.Config, r io.Reader) error
	// Verify does as Restore would, in a temporary folder that it removes.
	Verify func(ctx context.Context, c config.Config, r io.Reader) (Verified, error)
	// Encryption is that of the data which these settings name.
	Encryption func(c config.Config) Encryption
	// Bundle writes an archive with all that a machine without a network needs, and returns what it says of itself. Progress is as for Open.
	Bundle func(ctx context.Context, c config.Config, w io.Writer, progress io.Writer) (bundle.About, error)
	// Unbundle installs what such an archive has: the Python environment, and the program as the file to, where that is not "". Progress is as for Open.
	Unbundle func(ctx context.Context, c config.Config, r io.Reader, to string, progress io.Writer) (bundle.About, error)
	// PlotlyScript is the path of plotly.js in the Python environment, or "".
	PlotlyScript func(config.Config) string
}

// command is one subcommand. The int is the exit code when there is no error.
type command interface {
	run(ctx context.Context, p *Program) (int, error)
}

type grammar struct {
	Run        runCmd        `cmd:"" section:"work" help:"Run Python in a sandbox."`
	Ask        askCmd        `cmd:"" section:"work" help:"Ask a question; a model writes Python, cove runs it in a sandbox, you get the answer."`
	Eval       evalCmd       `cmd:"" section:"work" help:"Measure how good a model's answers are: tasks with checks, and the figures that come of them."`
	Batch      batchCmd      `cmd:"" section:"work" help:"Run many cells, or ask many questions, on a server."`
	Repl       replCmd       `cmd:"" section:"work" help:"Talk to a sandboxed Python, line by line."`
	Chat       chatCmd       `cmd:"" section:"work" help:"A conversation with a model that runs Python in a sandbox."`
	Models     modelsCmd     `cmd:"" section:"work" help:"List the models that can be asked, the default first."`
	Session    sessionCmd    `cmd:"" section:"things" help:"List, fork, undo and remove the sessions that --session made."`
	Check      checkCmd      `cmd:"" section:"work" help:"Look at a program or notebook: mistakes, slow forms, a profile, documentation, benchmarks."`
	Packages   packagesCmd   `cmd:"" section:"things" help:"Say what names mean; list, add and lock packages."`
	Image      imageCmd      `cmd:"" section:"things" help:"Fetch, list and remove the images that sessions begin from."`
	Data       dataCmd       `cmd:"" section:"things" help:"Fetch data that libraries download when it is used, such as NLTK's and spaCy's."`
	History    historyCmd    `cmd:"" section:"past" help:"List what was asked before."`
	Show       showCmd       `cmd:"" section:"past" help:"Show a conversation, a turn or an execution: the question, the code, what it printed, the answer."`
	Search     searchCmd     `cmd:"" section:"past" help:"Find words in what was asked, answered, run and printed."`
	Rerun      rerunCmd      `cmd:"" section:"past" help:"Run the code of a conversation, a turn or an execution again, and say what differs."`
	Export     exportCmd     `cmd:"" section:"past" help:"Write a conversation as a notebook, as Markdown or as a program."`
	Serve      serveCmd      `cmd:"" section:"server" help:"Serve cove's API and OpenAI's to applications and other users."`
	Open       openCmd       `cmd:"" section:"server" help:"Print the address of the server's page, with a code that signs a browser in."`
	MCP        mcpCmd        `cmd:"" section:"server" name:"mcp" help:"The Model Context Protocol: on standard input and output, and in the settings of other programs."`
	Tools      toolsCmd      `cmd:"" section:"things" help:"List the tool servers whose tools code may call, and say what is wrong with those that cannot be used."`
	Key        keyCmd        `cmd:"" section:"server" help:"Make, list and revoke the keys of a server."`
	User       userCmd       `cmd:"" section:"server" help:"Add, list and remove the users of a server."`
	Project    projectCmd    `cmd:"" section:"server" help:"Add and list projects, their members and quotas."`
	Usage      usageCmd      `cmd:"" section:"server" help:"Show what a project used, day by day."`
	Audit      auditCmd      `cmd:"" section:"server" help:"Show who did what on a server."`
	Encryption encryptionCmd `cmd:"" section:"server" help:"Encrypt what is kept with a key of yours, and say what is encrypted."`
	Backup     backupCmd     `cmd:"" section:"server" help:"Write the database and the stored files into one archive, also in a bucket."`
	Restore    restoreCmd    `cmd:"" section:"server" help:"Bring the archive of a backup into an empty folder, also from a bucket."`
	Bundle     bundleCmd     `cmd:"" section:"machine" help:"Take cove to a machine without a network: write an archive with all that it needs there, and install one."`
	Doctor     doctorCmd     `cmd:"" section:"machine" help:"Say what this machine can do, with a fix for each thing that it cannot."`
	Config     configCmd     `cmd:"" section:"machine" help:"Show every setting, what it means and its value."`
	Completion completionCmd `cmd:"" section:"machine" help:"Print what makes a shell complete cove's commands."`
	Man        manCmd        `cmd:"" section:"machine" help:"Write the manual pages."`
	Version    versionCmd    `cmd:"" section:"machine" help:"Show the version."`
}

// Main runs the command line args (without the program's name) and returns the exit code.
func Main(ctx context.Context, args []string, p *Program) int {
	p.drawOnTerminal()
	defer p.live.Over()
	if len(args) > 0 && args[0] == completeWord {
		return p.complete(args[1:])
	}
	defer func() {
		for _, end := range p.atEnd {
			end()
		}
	}()
	out := p.watchOutput()
	return out.exitCode(p, p.perform(ctx, args))
}

// perform parses and carries out a command, and returns its exit code.
func (p *Program) perform(ctx context.Context, args []string) int {
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

// drawOnTerminal has what is awaited shown on the terminal that Err is. Then all that is written to terminals takes that away first.
func (p *Program) drawOnTerminal() {
	file := terminal.OpenFile(p.Err)
	if _, tty := terminal.Descriptor(file); !tty || p.Getenv("TERM") == "dumb" {
		return
	}
	p.live = terminal.NewLive(file, p.colours(file))
	p.Err = p.live.File(file)
	if out := terminal.OpenFile(p.Out); out != nil {
		if _, tty := terminal.Descriptor(out); tty {
			p.Out = p.live.File(out)
		}
	}
}

// signs is the live line, where what is awaited may be shown.
func (p *Program) signs(quiet bool) *terminal.Live {
	if quiet {
		return nil
	}
	return p.live
}

// parse returns the command to run, or nil when parsing itself did what was asked (help).
func parse(args []string, p *Program) (command, int, error) {
	var g grammar
	exited, exitCode := false, 0
	own, rest := splitArgs(args)
	if len(own) == 0 {
		own = []string{"--help"}
	}
	own = asCommand(own)
	parser, err := g.parser(own[0], append(grammarOptions(p), kong.Exit(func(code int) { exited, exitCode = true, code }))...)
	if err != nil {
		return nil, 0, fmt.Errorf("build the command line: %w", err)
	}
	speak(parser.Model.Node, defaults(p.Config))
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

// asCommand turns what other programs have as flags or as a command for help into what cove has.
func asCommand(args []string) []string {
	switch args[0] {
	case "--version", "-V":
		return append([]string{"version"}, args[1:]...)
	case "help":
		return append(args[1:len(args):len(args)], "--help")
	}
	return args
}

func grammarOptions(p *Program) []kong.Option {
	return []kong.Option{
		kong.Name("cove"),
		kong.Description("The code interpreter you own: Python in a sandbox, for you and for a language model."),
		kong.Writers(p.Out, p.Err),
		kong.Vars(defaults(p.Config)),
		kong.Help(help),
		kong.KindMapper(reflect.String, kong.MapperFunc(text)),
	}
}

// text reads an argument as it is. Kong's own way is through JSON, where the name of a file that is not UTF-8 is another name.
func text(ctx *kong.DecodeContext, target reflect.Value) error {
	t, err := ctx.Scan.PopValue("string")
	if err != nil {
		return err
	}
	said, ok := t.Value.(string)
	if !ok {
		return fmt.Errorf("expected a text, not %v", t.Value)
	}
	target.SetString(said)
	return nil
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
		fmt.Fprintln(p.Err, "cove: "+spoken(one))
		if hint := nextStep(one); hint != "" {
			fmt.Fprintln(p.Err, "  "+strings.ReplaceAll(lang.Text(hint), "\n", "\n  "))
		}
	}
}

// nextStep is the hint of a problem. What servers say about keys is meant for programs that write requests.
func nextStep(err error) string {
	p := problem.Of(err)
	if problem.Has(p, problem.Unauthenticated, problem.KeyExpired) {
		return wantsKey
	}
	if p.Hint == "" {
		return usualStep(err)
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

// notef tells a person something beside the output, in the language of the process.
func notef(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, "cove: "+lang.Sprintf(format, args...))
}
