package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/machine/process"
)

type sessionPs struct {
	machineFlags
	JSON bool `name:"json" help:"Print the processes as one JSON array."`
	ownSignals
}

// Help is the long help.
func (sessionPs) Help() string {
	return `Lists the processes that cove session exec, cove session shell and the API have started: those that run, and the last that have ended.

Example:

    cove session ps lab`
}

// processRow is a process as --json shows it.
type processRow struct {
	ID      string      `json:"id"`
	PID     int         `json:"pid"`
	State   string      `json:"state"` // running, ended
	Command []string    `json:"command"`
	Folder  string      `json:"folder"`
	Label   string      `json:"label,omitempty"`
	TTY     bool        `json:"tty"`
	Started time.Time   `json:"started_at"`
	Exit    *processEnd `json:"exit,omitempty"`
	Written int64       `json:"output_bytes"`
}

type processEnd struct {
	At     time.Time      `json:"at"`
	Code   int            `json:"code"`
	Signal string         `json:"signal,omitempty"`
	Reason process.Reason `json:"reason,omitempty"`
}

func shownProcess(i process.Info) processRow {
	row := processRow{ID: i.ID, PID: i.PID, State: "running", Command: i.Args, Folder: i.Dir, Label: i.Label, TTY: i.Terminal != nil, Started: i.Started, Written: i.Written}
	if i.Exit != nil {
		row.State, row.Exit = "ended", &processEnd{At: i.Exit.At, Code: i.Exit.Code, Signal: i.Exit.Signal, Reason: i.Exit.Reason}
	}
	return row
}

func (c *sessionPs) run(ctx context.Context, p *Program) (int, error) {
	return p.onMachine(ctx, machineWork{machineFlags: c.machineFlags, command: "cove session ps", do: func(ctx context.Context, m machine) (int, error) {
		all, err := m.Processes(ctx)
		if err != nil {
			return 0, err
		}
		rows := []processRow{}
		for _, i := range all {
			rows = append(rows, shownProcess(i))
		}
		if c.JSON {
			return 0, p.printJSON(rows)
		}
		if len(rows) == 0 {
			fmt.Fprintln(p.Err, "cove: "+lang.Text("the session has no processes; `cove session exec "+c.Name+" --detach -- COMMAND` starts one"))
			return 0, nil
		}
		w := newRows(p.Out, false)
		w.head("PROCESS", "STATE", "STARTED", "OUTPUT", "LABEL", "COMMAND")
		for i, row := range rows {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", row.ID, stateOf(all[i]), dateTime(row.Started), humanSize(row.Written), oneLine(row.Label), shortenedTo(oneLine(strings.Join(row.Command, " ")), 60))
		}
		return 0, w.Flush()
	}})
}

// stateOf says in a word or two how a process is.
func stateOf(i process.Info) string {
	switch {
	case i.Exit == nil:
		return lang.Text("running")
	case i.Exit.Reason != process.ByItself:
		return lang.Text("killed: " + string(i.Exit.Reason))
	case i.Exit.Signal != "":
		return i.Exit.Signal
	}
	return lang.Sprintf("exit %d", i.Exit.Code)
}

// findProcess finds the process with an id, or the newest with a label, those that run first.
func findProcess(ctx context.Context, m machine, which string) (process.Info, error) {
	all, err := m.Processes(ctx)
	if err != nil {
		return process.Info{}, err
	}
	var found *process.Info
	for _, i := range all {
		if i.ID == which {
			return i, nil
		}
		if i.Label == which && (found == nil || found.Exit != nil || i.Exit == nil) {
			found = &i
		}
	}
	if found == nil || which == "" {
		return process.Info{}, problem.New(problem.ProcessNotFound, fmt.Sprintf("the session has no process %q", which)).WithHint("`cove session ps NAME` lists them")
	}
	return *found, nil
}

type sessionOutput struct {
	machineFlags
	Process string `arg:"" help:"Its id, or its label."`
	Follow  bool   `short:"f" help:"Go on until it ends, and end with its exit status."`
	ownSignals
}

// Help is the long help.
func (sessionOutput) Help() string {
	return `Shows what a process has written, as far as it is kept: the last mebibyte. With --follow Ctrl-C leaves the process running.

Examples:

    cove session logs lab prc_06f1k3t3y4m0v8s2k5r7w9x1z4
    cove session logs lab worker --follow`
}

func (c *sessionOutput) run(ctx context.Context, p *Program) (int, error) {
	return p.onMachine(ctx, machineWork{machineFlags: c.machineFlags, command: "cove session logs", do: func(ctx context.Context, m machine) (int, error) {
		info, err := findProcess(ctx, m, c.Process)
		if err != nil {
			return 0, err
		}
		switch {
		case c.Follow:
			return p.show(ctx, m, info.ID, toTheEnd)
		case info.Written == 0:
			return 0, nil
		}
		return p.show(ctx, m, info.ID, info.Written)
	}})
}

type sessionKill struct {
	machineFlags
	Process string `arg:"" help:"Its id, or its label."`
	Signal  string `short:"s" default:"TERM" placeholder:"SIGNAL" help:"The signal, by name or number (default: TERM)."`
	All     bool   `help:"Send it to everything that the process has started, too, also what it has left behind."`
	ownSignals
}

// Help is the long help.
func (sessionKill) Help() string {
	return `Examples:

    cove session kill lab worker
    cove session kill lab worker --signal KILL --all`
}

func (c *sessionKill) run(ctx context.Context, p *Program) (int, error) {
	if _, err := process.ParseSignal(c.Signal); err != nil {
		return 0, err
	}
	return p.onMachine(ctx, machineWork{machineFlags: c.machineFlags, command: "cove session kill", do: func(ctx context.Context, m machine) (int, error) {
		info, err := findProcess(ctx, m, c.Process)
		if err != nil {
			return 0, err
		}
		return 0, m.SignalProcess(ctx, info.ID, c.Signal, c.All)
	}})
}
