package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"cove/internal/config"
	"cove/internal/named"
	"cove/internal/problem"
	"cove/internal/sandbox"
)

// sessionFlags are the flags of every command that can work in a session with a name.
type sessionFlags struct {
	Session  string `placeholder:"NAME" help:"Work in the session of this name, which keeps variables, imports and files for later commands; made when needed. See cove session --help."`
	Undoable bool   `help:"Keep a snapshot of the session from before each execution, for cove session undo."`
	existing bool
	trial    bool
}

// check finds the mistakes that can be found before anything starts.
func (f sessionFlags) check(cfg config.Config) error {
	if f.Session == "" {
		if f.Undoable {
			return problem.New(problem.Usage, "--undoable needs a session with a name").WithHint("add --session NAME")
		}
		return nil
	}
	if err := named.CheckName(f.Session); err != nil {
		return err
	}
	if !cfg.Saves() {
		return problem.New(problem.EngineCannotSave, "the engine "+cfg.Sandbox.Engine+" cannot save a session").
			WithHint("use --engine gvisor, or leave --session out")
	}
	return nil
}

// farewell says what leaving the REPL does.
func (f sessionFlags) farewell() string {
	if f.Session == "" {
		return "Ctrl-D leaves"
	}
	return "Ctrl-D leaves and keeps session " + f.Session
}

func (p *Program) store(cfg config.Config) named.Store {
	if cfg.Folders.Sessions == "" {
		return named.Store{Dir: filepath.Join(cfg.Folders.Data, "sessions")}
	}
	return named.Store{Dir: cfg.Folders.Sessions}
}

func (p *Program) openNamed(ctx context.Context, name string, o opening, progress io.Writer) (*named.LeasedSession, error) {
	return p.store(o.cfg).Open(ctx, name, p.namedOptions(name, o, progress))
}

func (p *Program) namedOptions(name string, o opening, progress io.Writer) named.Options {
	opts := named.Options{
		Prepare: p.Prepare(o.cfg, progress),
		Base: named.Base{Engine: o.cfg.Sandbox.Engine, Packages: o.cfg.Packages.Set,
			Limits: named.LimitsOf(limitsOf(o.cfg))},
		Packages: o.flags.Packages, Root: o.cfg.Sandbox.Root, Existing: o.session.existing, Trial: o.session.trial,
		Undoable: o.session.Undoable, Depth: o.cfg.Session.UndoDepth, Room: int64(o.cfg.Session.PointsDisk),
		Command: o.command,
	}
	if name == o.session.Session {
		opts.Command += " --session " + name
	}
	if o.flags.Memory != nil {
		opts.Memory = int64(*o.flags.Memory)
	}
	if o.flags.CPUs != nil {
		opts.CPUs = *o.flags.CPUs
	}
	return opts
}

// limitsOf are the limits of a sandbox with these settings.
func limitsOf(c config.Config) sandbox.Limits {
	l := sandbox.Limits{Memory: int64(c.Sandbox.Memory), CPUs: c.Sandbox.CPUs}
	if c.Sandbox.Root {
		l.System = int64(c.Sandbox.System)
	}
	return l
}

type sessionCmd struct {
	Ls      sessionLs      `cmd:"" help:"List the sessions, the one used last first."`
	Show    sessionShow    `cmd:"" help:"Show everything about a session."`
	Pause   sessionPause   `cmd:"" help:"Save a session that is in memory, and free the memory."`
	Resume  sessionResume  `cmd:"" help:"Load a session into memory, where commands find it at once; or check that it can be restored."`
	Keep    sessionKeep    `cmd:"" hidden:""`
	Salvage sessionSalvage `cmd:"" hidden:""`
	Exec    sessionExec    `cmd:"" help:"Run a program in a session."`
	Shell   sessionShell   `cmd:"" help:"Open a shell in a session, on this terminal."`
	Ps      sessionPs      `cmd:"" help:"List the processes of a session."`
	Logs    sessionOutput  `cmd:"" help:"Show what a process of a session has written."`
	Kill    sessionKill    `cmd:"" help:"Send a signal to a process of a session."`
	Cp      sessionCp      `cmd:"" help:"Copy files into a session, or out of one."`
	Port    sessionPort    `cmd:"" help:"Reach a server in a session from this machine."`
	Link    sessionLink    `cmd:"" help:"Make a link to a port or a file of a session on a server, for somebody without a key."`
	Fork    sessionFork    `cmd:"" help:"Make a second, independent session from one."`
	Undo    sessionUndo    `cmd:"" help:"Return to before the last execution that was run with --undoable."`
	Rm      sessionRm      `cmd:"" help:"Delete sessions with all their snapshots."`
}

// Help is the long help.
func (sessionCmd) Help() string {
	return `A session keeps a Python between commands: cove run, repl and ask make it, or go on with it, when they are given
--session NAME. When such a command ends, the session is saved to files and no process stays behind; unless it was brought
into memory with cove session resume, where it stays for the next command.

What survives: variables, imports, functions, open files, threads, child processes in the sandbox, the workspace and /tmp.
What does not: connections to anything outside the sandbox; they end with an ordinary error. Clocks jump ahead. A session
needs the same release of gVisor, processor features and Python environment as when it was saved; else it starts anew with its files.

Examples:

    cove run --session lab -c 'x = [1, 2, 3]'
    cove run --session lab --undoable -c 'x.clear()'
    cove session undo lab
    cove session fork lab lab2
    cove session ls
    cove session rm lab lab2`
}

// printJSON writes v as indented JSON.
func (p *Program) printJSON(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// sessions is the store, for commands that start no sandbox.
func (p *Program) sessions() (named.Store, error) { return p.store(p.Config), p.ConfigErr }

type sessionLs struct {
	JSON bool `name:"json" help:"Print the sessions as one JSON array."`
}

// Help is the long help.
func (sessionLs) Help() string {
	return `States: new, nothing was saved yet; running, a command uses it now or it is in memory; paused, it is files and no process; lost, the last
command died before it saved, and the next goes on from what was saved before; broken, it cannot be used.

A session whose name begins with ses_ is that of a conversation, for --continue; those of the five conversations that were used last are kept
(the setting session.conversations).

Example:

    cove session ls --json`
}

func (c *sessionLs) run(_ context.Context, p *Program) (int, error) {
	store, err := p.sessions()
	if err != nil {
		return 0, err
	}
	all, err := store.List()
	if err != nil {
		return 0, err
	}
	if c.JSON {
		if all == nil {
			all = []named.Info{}
		}
		return 0, p.printJSON(all)
	}
	if len(all) == 0 {
		fmt.Fprintln(p.Err, "cove: there are no sessions; `cove run --session NAME ...` makes one")
		return 0, nil
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tLAST USED\tSIZE\tEXECUTIONS\tPYTHON")
	for _, s := range all {
		python := s.Python
		if python != "" {
			python += " " + s.Packages
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", s.Name, s.State, dateTime(s.Used), humanSize(s.Disk), s.Executions, oneLine(python))
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	for _, s := range all {
		if s.State == named.Broken {
			fmt.Fprintln(p.Err, "cove: "+oneLine(s.Reason))
		}
	}
	return 0, nil
}

func dateTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

type sessionShow struct {
	Name string `arg:"" help:"The session."`
	JSON bool   `name:"json" help:"Print it as one JSON object."`
}

// Help is the long help.
func (sessionShow) Help() string {
	return `Example:

    cove session show lab`
}

func (c *sessionShow) run(ctx context.Context, p *Program) (int, error) {
	store, err := p.sessions()
	if err != nil {
		return 0, err
	}
	info, err := store.Show(ctx, c.Name)
	if err != nil {
		return 0, err
	}
	if c.JSON {
		return 0, p.printJSON(info)
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	for _, row := range details(info) {
		fmt.Fprintf(w, "%s\t%s\n", row[0], oneLine(row[1]))
	}
	return 0, w.Flush()
}

// details is what people are shown of a session.
func details(s named.Info) [][2]string {
	rows := [][2]string{{"name", s.Name}, {"state", string(s.State)}}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, [2]string{name, value})
		}
	}
	add("reason", s.Reason)
	if s.Running != nil && s.State == named.Running {
		add("used by", s.Running.String())
	}
	if m := s.Memory; m != nil && s.State == named.Running {
		add("in memory", fmt.Sprintf("since %s, process %d", dateTime(m.Since), m.PID))
		add("paused when", pausedWhen(m.Idle))
		if m.Unsaved && s.Running == nil {
			add("not saved", fmt.Sprintf("%d executions", s.Executions-s.Head.Executions))
		}
	}
	add("id", s.ID)
	if s.ID != "" {
		add("created", dateTime(s.Created))
		add("last used", dateTime(s.Used))
		add("executions", fmt.Sprint(s.Executions))
		add("engine", s.Engine)
		add("python", strings.TrimSpace(s.Python+" "+s.Environment))
		add("installed", strings.Join(s.Installed.Requirements, ", "))
		add("memory", humanSize(s.Limits.Memory))
		add("cores", fmt.Sprint(s.Limits.CPUs))
		add("limits", fmt.Sprintf("%d processes, %d open files, %s in /tmp, %s in the workspace",
			s.Limits.Processes, s.Limits.OpenFiles, humanSize(s.Limits.Tmp), humanSize(s.Limits.Workspace)))
	}
	if s.Head.Snapshot != "" {
		add("snapshot", fmt.Sprintf("%s, %s, %s", s.Head.Snapshot, s.Head, humanSize(s.Head.Size)))
	}
	for n := len(s.Undo) - 1; n >= 0; n-- {
		add(fmt.Sprintf("undo %d", len(s.Undo)-n), s.Undo[n].String())
	}
	add("size on disk", humanSize(s.Disk))
	if s.Notice != nil {
		add("last notice", dateTime(s.Notice.Time)+": "+s.Notice.Text)
	}
	add("folder", s.Path)
	return rows
}

type sessionPause struct {
	Name string `arg:"" help:"The session."`
	JSON bool   `name:"json" help:"Print the session as one JSON object."`
}

// Help is the long help.
func (sessionPause) Help() string {
	return `Saves a session that cove session resume brought into memory, and ends the process that keeps it there. Any other session is
paused by itself when the command that uses it ends; then this only says so. It fails when a command uses the session at the moment.

Example:

    cove session pause lab`
}

func (c *sessionPause) run(ctx context.Context, p *Program) (int, error) {
	store, err := p.sessions()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	info, was, err := store.Pause(ctx, c.Name, "cove session pause")
	if err != nil {
		return 0, err
	}
	text := "session " + info.Name + " is paused already: it is files and no process"
	switch {
	case was:
		text = fmt.Sprintf("session %s is paused; that took %s", info.Name, time.Since(begun).Round(time.Millisecond))
	case info.State == named.New:
		text = "session " + info.Name + " has nothing to pause: nothing has run in it yet"
	case info.State == named.Lost:
		text = info.Reason
	}
	return 0, p.answer(c.JSON, info, text)
}

// answer says what became of a session.
func (p *Program) answer(asJSON bool, info named.Info, text string) error {
	if asJSON {
		return p.printJSON(info)
	}
	_, err := fmt.Fprintln(p.Out, text)
	return err
}

type sessionFork struct {
	From string `arg:"" help:"The session to go on from."`
	To   string `arg:"" help:"The name of the new one."`
	JSON bool   `name:"json" help:"Print the new session as one JSON object."`
}

// Help is the long help.
func (sessionFork) Help() string {
	return `The new session has the same variables and files and is independent from then on. Their random generators are given
different seeds. Until one of the two is saved again, they share the room on the disk.

Example:

    cove session fork lab lab2`
}

func (c *sessionFork) run(ctx context.Context, p *Program) (int, error) {
	store, err := p.sessions()
	if err != nil {
		return 0, err
	}
	info, err := store.Fork(ctx, c.From, c.To, "cove session fork", "")
	if err != nil {
		return 0, err
	}
	return 0, p.answer(c.JSON, info, fmt.Sprintf("session %s goes on from where %s is: %s", c.To, c.From, info.Head))
}

type sessionUndo struct {
	Name string `arg:"" help:"The session."`
	JSON bool   `name:"json" help:"Print the session as one JSON object."`
}

// Help is the long help.
func (sessionUndo) Help() string {
	return `Variables and files are again what they were. A snapshot to return to is kept from before each execution that is run with
--undoable; the setting session.undo_depth says how many. Executions that were run without it are undone together with the one before.
A session in memory is paused by this.

Example:

    cove run --session lab --undoable -c 'x.clear()'
    cove session undo lab`
}

func (c *sessionUndo) run(ctx context.Context, p *Program) (int, error) {
	store, err := p.sessions()
	if err != nil {
		return 0, err
	}
	info, err := store.Undo(ctx, c.Name, "cove session undo")
	if err != nil {
		return 0, err
	}
	return 0, p.answer(c.JSON, info, fmt.Sprintf("session %s is as it was at %s; it can be undone %d more times", c.Name, info.Head, len(info.Undo)))
}

type sessionRm struct {
	Names []string `arg:"" optional:"" name:"name" help:"The sessions."`
	All   bool     `help:"Delete every session."`
	JSON  bool     `name:"json" help:"Print what was deleted as one JSON object."`
}

// Help is the long help.
func (sessionRm) Help() string {
	return `Deletes without asking, and for good. A session that a command uses is not deleted.

Examples:

    cove session rm lab lab2
    cove session rm --all`
}

func (c *sessionRm) run(ctx context.Context, p *Program) (int, error) {
	store, err := p.sessions()
	if err != nil {
		return 0, err
	}
	if (len(c.Names) == 0) != c.All {
		return 0, problem.New(problem.Usage, "give the names of sessions, or --all").WithHint("`cove session ls` lists them")
	}
	names := c.Names
	if c.All {
		all, err := store.List()
		if err != nil {
			return 0, err
		}
		for _, s := range all {
			names = append(names, s.Name)
		}
	}
	removed := []string{}
	var failed []error
	for _, name := range names {
		if err := store.Remove(ctx, name, "cove session rm"); err != nil {
			failed = append(failed, err)
			continue
		}
		removed = append(removed, name)
	}
	if c.JSON {
		if err := p.printJSON(map[string]any{"removed": removed}); err != nil {
			return 0, err
		}
	}
	return 0, errors.Join(failed...)
}
