package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/server/hub"
	"cove/internal/sessions/ondisk"
)

// sessionFlags are the flags of every command that can work in a session with a name.
type sessionFlags struct {
	Session  string `placeholder:"NAME" complete:"session" help:"Work in the session of this name, which keeps variables, imports and files for later commands; made when needed. See cove session --help."`
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
	if err := ondisk.CheckName(f.Session); err != nil {
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

func (p *Program) store(cfg config.Config) ondisk.Store {
	if cfg.Folders.Sessions == "" {
		return ondisk.Store{Dir: filepath.Join(cfg.Folders.Data, "sessions")}
	}
	return ondisk.Store{Dir: cfg.Folders.Sessions}
}

func (p *Program) openNamed(ctx context.Context, name string, o opening, progress io.Writer) (*ondisk.LeasedSession, error) {
	return p.store(o.cfg).Open(ctx, name, p.namedOptions(name, o, progress))
}

func (p *Program) namedOptions(name string, o opening, progress io.Writer) ondisk.Options {
	opts := ondisk.Options{
		Prepare: p.Prepare(o.cfg, progress),
		Base: ondisk.Base{Engine: o.cfg.Sandbox.Engine, Packages: o.cfg.Packages.Set,
			Limits: ondisk.LimitsOf(limitsOf(o.cfg))},
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

type sessionLs struct {
	serverFlags
	JSON bool `name:"json" help:"Print the sessions as one JSON array."`
}

// Help is the long help.
func (sessionLs) Help() string {
	return `States: new, nothing was saved yet; running, a command uses it now or it is in memory; paused, it is files and no process; lost, the last
command died before it saved, and the next goes on from what was saved before; broken, it cannot be used.

A session whose name begins with ses_ is that of a conversation, for --continue, of which those of the five that were used last are kept
(the setting session.conversations); or one that a program has made by cove mcp, which is kept for a week. With --server they are the sessions of the key's project; one without a name is shown by its id.

Examples:

    cove session ls --json
    cove session ls --server https://cove.example.com`
}

func (c *sessionLs) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.onSessions(c.serverFlags, func(from sessions) error {
		all, err := from.List(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			shown := make([]any, 0, len(all))
			for _, s := range all {
				shown = append(shown, s.shown())
			}
			return p.printJSON(shown)
		}
		if len(all) == 0 {
			notef(p.Err, "there are no sessions; `cove run --session NAME ...` makes one")
			return nil
		}
		rows := make([][]string, 0, len(all))
		for _, s := range all {
			rows = append(rows, []string{oneLine(cmp.Or(s.Name, s.ID)), stateWord(s.State), dateTime(s.Used), s.size(), fmt.Sprint(s.Executions), oneLine(s.python())})
		}
		if err := p.table([]string{"NAME", "STATE", "LAST USED", "SIZE", "EXECUTIONS", "PYTHON"}, 0, rows); err != nil {
			return err
		}
		for _, s := range all {
			if s.State == ondisk.Broken {
				fmt.Fprintln(p.Err, "cove: "+lang.Text(oneLine(s.Reason)))
			}
		}
		return nil
	})
}

// size is what a session takes on the disk; what was not saved yet takes nothing that could be told.
func (s sessionView) size() string {
	if s.Disk == 0 {
		return "-"
	}
	return humanSize(s.Disk)
}

// stateWord is the word for a state of a session or of a turn.
func stateWord[S ~string](s S) string {
	switch string(s) {
	case string(ondisk.New):
		return lang.Text("new")
	case string(ondisk.Running): // hub.TurnRunning too
		return lang.Text("running")
	case string(ondisk.Paused):
		return lang.Text("paused")
	case string(ondisk.Lost): // hub.TurnLost too
		return lang.Text("lost")
	case string(ondisk.Broken):
		return lang.Text("broken")
	case string(hub.TurnWaiting):
		return lang.Text("waiting")
	case string(hub.TurnFailed):
		return lang.Text("failed")
	case string(hub.TurnCanceled):
		return lang.Text("stopped")
	}
	return string(s)
}

func dateTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

type sessionShow struct {
	Name string `arg:"" complete:"session" help:"The session; on a server, its name or id."`
	serverFlags
	JSON bool `name:"json" help:"Print it as one JSON object."`
}

// Help is the long help.
func (sessionShow) Help() string {
	return `Example:

    cove session show lab`
}

func (c *sessionShow) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.onSessions(c.serverFlags, func(from sessions) error {
		s, err := from.Show(ctx, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return p.printJSON(s.shown())
		}
		w := newRows(p.Out, false)
		for _, row := range append(details(s.Info), s.onServer()...) {
			fmt.Fprintf(w, "%s\t%s\n", lang.Text(row[0]), lang.Phrase(oneLine(row[1])))
		}
		return w.Flush()
	})
}
