package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Records are the database of this machine, with or without a server that uses it at the same time.
type Records struct {
	// Hub is a hub of this process on that database. It has the sessions alone that are attached to it, and has ended what killed commands left.
	Hub      *hub.Hub
	Store    hub.Store
	Accounts *auth.Accounts
	Audit    audit.Log
	// Backup writes the database and the stored files as one archive.
	Backup func(ctx context.Context, w io.Writer) error
	// MCP is the hub to clients of the Model Context Protocol, where RecordsOptions.Sessions was set. Who calls must be in the context of a request.
	MCP http.Handler
	// API is the hub as a server's interface, where RecordsOptions.Sessions was set. Who calls must be in the context of a request.
	API http.Handler
	// Ahead makes, beside what else is done, what the first session for such a client needs.
	Ahead func(ctx context.Context)
	// Lost is closed when other processes have taken this one for dead; nil: that cannot be.
	Lost  <-chan struct{}
	Close func() error
}

// RecordsOptions say how the database is opened.
type RecordsOptions struct {
	Command string          // that works with the hub, for others who ask; "": the hub is not needed and nil
	Tools   hub.ToolServers // that code of the hub's turns may call; nil: none
	Models  hub.Models      // that the hub's turns ask; nil: none
	Scratch bool            // open a database in memory instead, which is gone when it is closed
	Reads   bool            // the hub is used to read only, and opens although it cannot be recorded that the command uses it
	Log     *slog.Logger    // of the hub; nil: none
	// Sessions has the hub make sessions for clients, beside those that are attached to it: they are with those that have a name. It gets what making them ready has to say. nil: it makes none.
	Sessions io.Writer
}

// day is the form of a day in records of usage.
const day = "2006-01-02"

// wantsKey is the next step where a server does not take the key.
const wantsKey = "set COVE_KEY, or give --key; `cove key create` on the server's machine makes one"

// serverFlags are the flags of commands that can work on a server.
type serverFlags struct {
	Server *string `placeholder:"URL" help:"Work on this cove server instead of this machine (default: COVE_SERVER). Empty: on this machine."`
	Key    string  `name:"key" placeholder:"KEY" help:"The key for it (default: COVE_KEY, which other users of this machine do not see)."`
}

// remote returns the server's address and key, or "" to work on this machine.
func (f serverFlags) remote(c config.Config) (base, key string, err error) {
	base, key = c.Remote.Server, c.Remote.Key
	if f.Server != nil {
		base = *f.Server
	}
	if f.Key != "" {
		key = f.Key
	}
	if base != "" && key == "" {
		return "", "", problem.New(problem.KeyMissing, "there is no key for the server "+oneLine(base)).
			WithHint(wantsKey)
	}
	return base, key, nil
}

// onRecords reads the settings of f and has use work on their database.
func (p *Program) onRecords(ctx context.Context, f configFlag, use func(*Records) error) (err error) {
	c, err := f.settings(p)
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return err
	}
	r, err := p.Records(ctx, c, RecordsOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(withList(err), r.Close()) }()
	return use(r)
}

// withList adds to a problem about something that is not there which command lists what is.
func withList(err error) error {
	listed := map[string]string{"project_not_found": "project", "user_not_found": "user", "key_not_found": "key"}
	if p := problem.Of(err); p != nil && p.Hint == "" && listed[p.Code] != "" {
		return p.WithHint("`cove " + listed[p.Code] + " ls` lists them")
	}
	return err
}

// limited refuses a --limit that lets nothing through.
func limited(n int) error {
	if n < 1 {
		return problem.New(problem.Usage, "--limit must be at least 1")
	}
	return nil
}

// since reads a day, or a number of days back from today.
func since(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(day, text); err == nil {
		return at, nil
	}
	var d config.Duration
	if err := d.UnmarshalText([]byte(text)); err != nil {
		return time.Time{}, problem.New(problem.Usage, fmt.Sprintf("%q is neither a day such as 2026-11-21 nor a time such as 7d", text))
	}
	return now.Add(-time.Duration(d)), nil
}

// printLine writes v as JSON on one line.
func (p *Program) printLine(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
