package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/machine/process"
)

// startFlags say how a process starts.
type startFlags struct {
	Dir   string   `short:"w" placeholder:"DIR" help:"Folder in the session to begin in; relative to the workspace (default: the workspace)."`
	Env   []string `short:"e" sep:"none" placeholder:"NAME=VALUE" help:"Set a variable. Repeatable; NAME alone takes the value that it has here."`
	Root  bool     `help:"Run it as root, who may change the system of the sandbox; a session that this makes has a root then."`
	Label string   `placeholder:"TEXT" help:"A word of yours, which cove session ps shows."`
	networkFlags
	Timeout *config.Duration `placeholder:"TIME" help:"Kill it, with all that it has started, after so long (default: never)."`
}

func (f startFlags) start(p *Program) (process.Start, error) {
	s := process.Start{Dir: f.Dir, Label: f.Label, Root: f.Root}
	if f.Timeout != nil {
		s.Timeout = time.Duration(*f.Timeout)
	}
	var err error
	s.Env, err = environment(f.Env, p.Getenv)
	return s, err
}

// environment reads NAME=VALUE, and NAME for the value that it has here.
func environment(texts []string, getenv func(string) string) (map[string]string, error) {
	env := map[string]string{}
	for _, one := range texts {
		name, value, ok := strings.Cut(one, "=")
		if !ok {
			value = getenv(name)
		}
		env[name] = value
	}
	return env, process.CheckEnvironment(env)
}

type sessionExec struct {
	machineFlags
	Command []string `arg:"" optional:"" help:"The program and its arguments, after --."`
	startFlags
	Detach bool `short:"d" help:"Start it, say its id, and leave it running."`
	TTY    bool `short:"t" name:"tty" help:"Give it a terminal, as cove session shell does."`
	JSON   bool `name:"json" help:"With --detach: print the process as one JSON object."`
	ownSignals
}

// Help is the long help.
func (sessionExec) Help() string {
	return `Runs a program in the session, as the user that code runs as, with the same files and packages. What comes in on a pipe is its input;
its output and its exit status are passed on. Ctrl-C is sent to it; a second one kills it. On a server it goes on when this command is killed or
loses its connection, and cove session logs follows it; here the session goes back to what was saved of it when this command is killed.

A line for the shell is bash -c 'LINE'. Without --server the session is saved when the command ends, unless cove session resume has brought
it into memory; what still runs then goes on when the session is next used.

Examples:

    cove session exec lab -- python -m http.server 8000
    cove session exec lab -- bash -c 'ls -l | head'
    cove session exec box --root --allow-net mirror.example.com -- sh -c 'apt-get update && apt-get install -y jq'
    tar c src | cove session exec lab -- tar x
    cove session exec lab --detach --label worker -- python worker.py`
}

func (c *sessionExec) run(ctx context.Context, p *Program) (int, error) {
	if len(c.Command) == 0 {
		return 0, problem.New(problem.Usage, "say what to run").WithHint("cove session exec " + c.Name + " -- python --version")
	}
	start, err := c.start(p)
	if err != nil {
		return 0, err
	}
	start.Args = c.Command
	if c.TTY && !c.Detach {
		return attached{p: p, work: machineWork{machineFlags: c.machineFlags, network: c.networkFlags, root: c.Root, command: "cove session exec", fresh: true}}.run(ctx, start)
	}
	_, tty := terminal.Descriptor(p.In)
	start.Input = !tty && !c.Detach
	if c.TTY {
		start.Terminal = &process.Size{Columns: 80, Rows: 24}
	}
	start.Followed = !c.Detach
	if err := start.Check(); err != nil {
		return 0, err
	}
	return p.onMachine(ctx, machineWork{machineFlags: c.machineFlags, network: c.networkFlags, root: c.Root, command: "cove session exec", fresh: true, listens: true, do: func(ctx context.Context, m machine) (int, error) {
		info, err := m.StartProcess(ctx, start)
		if err != nil {
			return 0, err
		}
		switch {
		case c.Detach && c.JSON:
			return 0, p.printJSON(shownProcess(info))
		case c.Detach:
			_, err := fmt.Fprintln(p.Out, info.ID)
			return 0, err
		}
		if start.Input {
			go feed(ctx, p, m, info.ID)
		}
		return p.accompany(ctx, m, info.ID)
	}})
}

// feed passes on the input of a command until its end. What cannot be passed on shows in how the process ends.
func feed(ctx context.Context, p *Program, m machine, id string) {
	buf := make([]byte, 256<<10)
	for {
		n, err := p.In.Read(buf)
		if n > 0 {
			if _, err := m.WriteProcess(ctx, id, bytes.NewReader(buf[:n]), false); err != nil {
				return
			}
		}
		if err != nil {
			_, _ = m.WriteProcess(ctx, id, bytes.NewReader(nil), true)
			return
		}
	}
}

// accompany passes on what a process writes until its end, and signals to the process, and returns its exit status.
func (p *Program) accompany(ctx context.Context, m machine, id string) (int, error) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	go func() {
		for signals := 0; ; signals++ {
			select {
			case s := <-p.Signals:
				n, _ := s.(syscall.Signal)
				if signals > 0 {
					n = syscall.SIGKILL
				}
				if m.SignalProcess(ctx, id, process.SignalName(int(n)), signals > 0) != nil && signals > 0 {
					leave()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return p.show(ctx, m, id, toTheEnd)
}

// toTheEnd is for show.
const toTheEnd = -1

// show passes on what a process has written and writes, up to a position or to its end, and returns its exit status.
func (p *Program) show(ctx context.Context, m machine, id string, until int64) (int, error) {
	for e, err := range m.FollowProcess(ctx, id, 0) {
		if err == nil {
			switch e.Kind {
			case process.Stdout, process.Terminal:
				_, err = p.Out.Write(e.Data)
			case process.Stderr:
				_, err = p.Err.Write(e.Data)
			case process.Gap:
				notef(p.Err, "the output before byte %d is not kept", e.At)
			case process.Ended:
				p.tellEnd(*e.Exit)
				return e.Exit.Status(), nil
			}
		}
		if err != nil || until != toTheEnd && e.Next() >= until {
			return 0, err
		}
	}
	return 0, problem.New(problem.GivenUp, "stopped before the process had ended")
}

// tellEnd says why cove ended a process.
func (p *Program) tellEnd(e process.Exit) {
	switch e.Reason {
	case process.ForTime:
		notef(p.Err, "the process was killed: its time was over")
	case process.ForMemory:
		notef(p.Err, "the process was killed: the session's memory was used up")
	}
}

type sessionShell struct {
	machineFlags
	startFlags
	Attach string `placeholder:"PROCESS" help:"Go on with a process that has a terminal, by its id or label, instead of starting a shell."`
	ownSignals
}

// Help is the long help.
func (sessionShell) Help() string {
	return `Opens a shell in the session, on this terminal: it is resized with it, Ctrl-C and Ctrl-Z reach what runs there, and full-screen programs work.
Leave it with exit or Ctrl-D. A shell whose terminal was closed here goes on in the session, and --attach goes on with it.

Examples:

    cove session shell lab
    cove session shell lab --server http://cove.example.com:8700
    cove session shell lab --attach prc_06f1k3t3y4m0v8s2k5r7w9x1z4`
}

func (c *sessionShell) run(ctx context.Context, p *Program) (int, error) {
	start, err := c.start(p)
	if err != nil {
		return 0, err
	}
	start.Args = []string{"bash"}
	return attached{p: p, to: c.Attach, work: machineWork{machineFlags: c.machineFlags, network: c.networkFlags, root: c.Root, command: "cove session shell", fresh: c.Attach == ""}}.run(ctx, start)
}

// attached is a process on this terminal.
type attached struct {
	p    *Program
	work machineWork
	to   string // the process that runs already, by its id or label
}

func (a attached) run(ctx context.Context, start process.Start) (int, error) {
	in, inTTY := terminal.Descriptor(a.p.In)
	out, outTTY := terminal.Descriptor(a.p.Out)
	if !inTTY || !outTTY {
		return 0, problem.New(problem.Usage, "this needs a terminal for its input and output").WithHint("`cove session exec NAME -- bash -c 'LINE'` runs a line without one")
	}
	size := func() process.Size {
		columns, rows, err := term.GetSize(out)
		if err != nil || columns < 1 || rows < 1 {
			columns, rows = 80, 24
		}
		return process.Size{Columns: min(columns, 2000), Rows: min(rows, 2000)}
	}
	first := size()
	start.Terminal = &first
	if err := start.Check(); err != nil {
		return 0, err
	}
	a.work.listens = true
	a.work.do = func(ctx context.Context, m machine) (int, error) {
		info, err := a.begin(ctx, m, start)
		if err != nil {
			return 0, err
		}
		before, err := term.MakeRaw(in)
		if err != nil {
			return 0, fmt.Errorf("set the terminal: %w", err)
		}
		defer func() { _ = term.Restore(in, before) }()
		ctx, leave := context.WithCancel(ctx)
		defer leave()
		go a.resize(ctx, m, info.ID, size)
		go a.listen(ctx, leave)
		go feed(ctx, a.p, m, info.ID)
		return a.p.show(ctx, m, info.ID, toTheEnd)
	}
	return a.p.onMachine(ctx, a.work)
}

// begin starts the process, or finds the one to attach to.
func (a attached) begin(ctx context.Context, m machine, start process.Start) (process.Info, error) {
	if a.to == "" {
		start.Followed = true
		return m.StartProcess(ctx, start)
	}
	info, err := findProcess(ctx, m, a.to)
	if err == nil && info.Terminal == nil {
		err = problem.New(problem.Usage, "that process has no terminal").WithHint("`cove session logs " + a.work.Name + " " + info.ID + " --follow` shows what it writes")
	}
	if err == nil {
		err = m.ResizeProcess(ctx, info.ID, *start.Terminal)
	}
	return info, err
}

// resize has the process's terminal be as large as this one.
func (a attached) resize(ctx context.Context, m machine, id string, size func() process.Size) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	for {
		select {
		case <-changed:
			_ = m.ResizeProcess(ctx, id, size()) // the process may have ended
		case <-ctx.Done():
			return
		}
	}
}

// listen leaves the process to itself when this command is to end. Ctrl-C is a character, for the process.
func (a attached) listen(ctx context.Context, leave func()) {
	for {
		select {
		case s := <-a.p.Signals:
			if s != os.Interrupt {
				leave()
			}
		case <-ctx.Done():
			return
		}
	}
}
