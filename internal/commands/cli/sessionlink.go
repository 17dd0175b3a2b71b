package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/client"
)

type sessionLink struct {
	machineFlags
	To    string        `arg:"" optional:"" help:"A port, or the path of a file. Without one, the links of the session are listed."`
	Write bool          `help:"The link writes the file, and does not read it."`
	Open  bool          `help:"The port's own name is open to all who know it."`
	Wakes bool          `help:"Who comes by the link loads a session that is paused."`
	For   time.Duration `placeholder:"DURATION" default:"24h" help:"How long the link lives; 0 is without an end."`
	Rm    string        `placeholder:"ID" help:"Withdraw this link."`
	JSON  bool          `name:"json" help:"Print JSON."`
}

// Help is the long help.
func (sessionLink) Help() string {
	return `Makes a link by which somebody without a key reaches one port of a session on a server, or reads or writes one file of it. The link ends with its time, with the
key that made it, or when it is withdrawn.

Examples:

    cove session link lab 8000
    cove session link lab report.html --for 168h
    cove session link lab inbox.csv --write
    cove session link lab
    cove session link lab --rm lnk_06f1k3t3y4m0v8s2k5r7w9x1z4`
}

func (c *sessionLink) run(ctx context.Context, p *Program) (int, error) {
	w := machineWork{machineFlags: c.machineFlags, command: "cove session link"}
	w.do = func(ctx context.Context, m machine) (int, error) {
		remote, ok := m.(remoteMachine)
		if !ok {
			return 0, problem.New(problem.Usage, "links are for sessions on a server").WithHint("name it with --server; a port of a session here is reached with `cove session port`")
		}
		switch {
		case c.Rm != "":
			return 0, remote.DeleteLink(ctx, remote.session, c.Rm)
		case c.To == "":
			return 0, c.list(ctx, p, remote)
		}
		return 0, c.make(ctx, p, remote)
	}
	return p.onMachine(ctx, w)
}

func (c *sessionLink) make(ctx context.Context, p *Program, m remoteMachine) error {
	if c.For < 0 {
		return problem.New(problem.Usage, "a link lives for some time, or with 0 without an end")
	}
	seconds := int64(c.For.Round(time.Second) / time.Second)
	n := client.NewLink{Purpose: "read", Path: c.To, Open: c.Open, Wakes: c.Wakes, Seconds: &seconds}
	if port, err := strconv.Atoi(c.To); err == nil {
		n.Purpose, n.Path, n.Port = "port", "", port
	} else if c.Write {
		n.Purpose = "write"
	}
	made, err := m.CreateLink(ctx, m.session, n)
	if err != nil {
		return err
	}
	if c.JSON {
		return p.printJSON(made)
	}
	base := m.Base()
	if made.URL != "" {
		fmt.Fprintln(p.Out, made.URL)
		notef(p.Err, "or, where names do not lead to the server, %s%s", base, made.At)
	} else {
		fmt.Fprintln(p.Out, base+made.At)
	}
	notef(p.Err, "%s, %s; `cove session link %s --rm %s` withdraws it", lang.Text(whatFor(made.SessionLink)), lang.Text(until(made.Expires)), c.Name, made.ID)
	return nil
}

func whatFor(l api.SessionLink) string {
	switch l.Purpose {
	case "port":
		return fmt.Sprintf("anyone with this link can reach port %d", l.Port)
	case "write":
		return "anyone with this link can write " + oneLine(l.Path) + " (PUT)"
	}
	return "anyone with this link can read " + oneLine(l.Path)
}

func until(at *time.Time) string {
	if at == nil {
		return "without an end"
	}
	return "until " + at.Local().Format("2006-01-02 15:04")
}

func (c *sessionLink) list(ctx context.Context, p *Program, m remoteMachine) error {
	all, err := m.Links(ctx, m.session)
	if err != nil {
		return err
	}
	if c.JSON {
		return p.printJSON(all)
	}
	if len(all) == 0 {
		notef(p.Err, "the session has no links")
		return nil
	}
	w := newRows(p.Out, false)
	w.head("ID", "FOR", "TO", "UNTIL")
	for _, l := range all {
		to := oneLine(l.Path)
		if l.Port != 0 {
			to = strconv.Itoa(l.Port)
		}
		more := ""
		if l.Open {
			more += ", open"
		}
		if l.Wakes {
			more += ", wakes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.ID, l.Purpose+more, to, strings.TrimPrefix(lang.Text(until(l.Expires)), "until "))
	}
	return w.Flush()
}
