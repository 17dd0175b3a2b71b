package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/llm/model/choose"
	"cove/internal/server/auth"
	"cove/internal/sessions/ondisk"
)

// ServerAbout is what a server that listens says of itself.
type ServerAbout struct {
	Address  string        `json:"address"`           // as clients on this machine reach it, such as http://127.0.0.1:8700
	Outside  []string      `json:"outside,omitempty"` // as other machines may reach it
	Key      string        `json:"key,omitempty"`     // the first key, when it was just made
	Page     string        `json:"page,omitempty"`    // the web page's address, with a code where one was wanted
	Engine   string        `json:"engine"`
	Python   string        `json:"python"`
	Packages string        `json:"packages"` // the set
	Ready    int           `json:"sandboxes_kept_ready"`
	Models   []string      `json:"models"`             // the default first
	NoModel  string        `json:"no_model,omitempty"` // why there is none
	Database string        `json:"database"`           // without a password
	Folder   string        `json:"folder"`
	Config   string        `json:"config,omitempty"`
	Metrics  string        `json:"metrics,omitempty"`
	Debug    string        `json:"debug,omitempty"`
	Version  string        `json:"version"`
	Sessions ondisk.Survey `json:"sessions"` // on the disk
}

// Server is a server that listens.
type Server interface {
	About() ServerAbout
	// Serve answers requests. When soft ends it takes no more, lets running work end and pauses every session; when hard ends it stops at once. It
	// returns nil when it ended because of soft.
	Serve(soft, hard context.Context) error
}

// ServerOptions are what Program.Serve needs beside the settings.
type ServerOptions struct {
	Progress io.Writer // for what takes long
	Log      io.Writer
	Code     bool // make a code that signs a browser in, for the address of the page
}

// configFlag lets a command read another config file.
type configFlag struct {
	Config string `placeholder:"FILE" help:"Read the settings from this file instead."`
}

// settings are those of the file that was named, or else the usual ones.
func (f configFlag) settings(p *Program) (config.Config, error) {
	c, err := p.Config, p.ConfigErr
	if f.Config != "" {
		c, err = config.Load(func(name string) string {
			if name == "COVE_CONFIG" {
				return f.Config
			}
			return p.Getenv(name)
		})
	}
	return c, err
}

type serveCmd struct {
	ownSignals
	configFlag
	Listen   []string `placeholder:"ADDRESS" help:"Where to listen, such as :8700; repeatable (default: ${listen})."`
	Database string   `placeholder:"DATABASE" help:"The path of an SQLite file, or postgres://... (default: cove.db in the data folder)."`
	Model    string   `placeholder:"PROVIDER/NAME" help:"The default model, as for cove ask."`
	Engine   string   `placeholder:"NAME" hidden:""`
	Packages string   `placeholder:"SET" help:"Python environment: standard, standard-2024 or minimal (default: ${packages})."`
	JSON     bool     `name:"json" help:"Say where the server is as one JSON object, and log as JSON."`
	Quiet    bool     `short:"q" help:"Say nothing but a first key; log warnings and errors alone."`
}

// Help is the long help.
func (serveCmd) Help() string {
	return `Two APIs: cove's own below /api/v1, and OpenAI's Responses API with the code_interpreter tool below /v1. The address and,
the first time, a key are printed on standard output; the log goes to standard error. Every setting is in cove config.

Ctrl-C or SIGTERM lets running work end, pauses every session and leaves; a second one leaves at once. What was paused goes on
with the next server.

Examples:

    cove serve
    cove serve --listen :8700 --database postgres://cove@db/cove --config cove.toml
    COVE_METRICS_LISTEN=127.0.0.1:9100 cove serve --json`
}

func (c *serveCmd) config(ctx context.Context, p *Program) (config.Config, error) {
	cfg, err := c.settings(p)
	if err != nil {
		return cfg, err
	}
	for _, f := range []struct {
		given string
		into  *string
	}{{c.Database, &cfg.Store.Database}, {c.Model, &cfg.Models.Default}, {c.Engine, &cfg.Sandbox.Engine}, {c.Packages, &cfg.Packages.Set}} {
		if f.given != "" {
			*f.into = f.given
		}
	}
	if len(c.Listen) > 0 {
		cfg.Serve.Listen = c.Listen
	}
	if c.JSON {
		cfg.Log.Format = "json"
	}
	if c.Quiet {
		cfg.Log.Level = "warn"
	}
	if err := cfg.Validate(); err != nil {
		return cfg, err
	}
	if _, _, err := auth.ParseText(cfg.Serve.FirstKey); cfg.Serve.FirstKey != "" && err != nil {
		return cfg, problem.New(problem.ConfigInvalid, "serve.first_key (COVE_FIRST_KEY) is not the text of a key").
			WithHint("take a key that this command prints: COVE_DATABASE=/tmp/new.db cove key create --name first")
	}
	for _, name := range append(config.List{cfg.Models.Default}, cfg.Models.Serve...) {
		if _, err := choose.Parse(cfg, name); name != "" && problem.Is(err, problem.Invalid) {
			return cfg, choose.Suggest(ctx, cfg, name, err) // a key that is missing is no reason not to run code
		}
	}
	return cfg, nil
}

func (c *serveCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.config(ctx, p)
	if err != nil {
		return 0, err
	}
	i := p.ending(ctx)
	defer i.stop()
	progress := p.Err
	if c.Quiet || c.JSON {
		progress = io.Discard
	}
	s, err := p.Serve(i.soft, cfg, ServerOptions{Progress: lang.Lines(progress), Log: p.Err, Code: c.JSON || !c.Quiet && isTerminalFile(p.Out)})
	if err != nil {
		if i.soft.Err() != nil && problem.Of(err).Kind != problem.Internal {
			return i.exitCode(), nil
		}
		return 0, err
	}
	if err := c.tell(p, s.About()); err != nil {
		return 0, err
	}
	if !c.Quiet && !c.JSON {
		said := make(chan struct{})
		stop := context.AfterFunc(i.soft, func() {
			defer close(said)
			notef(p.Err, "stopping: running code may finish, then sessions are paused (Ctrl-C again stops at once)")
		})
		defer func() {
			if !stop() {
				<-said
			}
		}()
	}
	return 0, s.Serve(i.soft, i.hard)
}

// tell says what there is and how to try it.
func (c *serveCmd) tell(p *Program, a ServerAbout) error {
	switch {
	case c.JSON:
		return lines{p.Out}.write(record{"type": "serving", "address": a.Address, "outside": append([]string{}, a.Outside...), "page": a.Page, "key": a.Key, "engine": a.Engine, "python": a.Python, "packages": a.Packages,
			"sandboxes_kept_ready": a.Ready, "models": append([]string{}, a.Models...), "database": a.Database, "folder": a.Folder, "version": a.Version, "metrics": a.Metrics, "debug": a.Debug, "sessions": a.Sessions})
	case c.Quiet && a.Key == "":
		return nil
	case c.Quiet: // it is not kept, and would be lost
		_, err := fmt.Fprintln(p.Out, a.Key)
		return err
	}
	_, err := io.WriteString(p.Out, welcome(a))
	return err
}

// welcome is what a person reads when the server is ready.
func welcome(a ServerAbout) string {
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			name = lang.Text(name)
			fmt.Fprintf(&b, "  %s%s %s\n", name, strings.Repeat(" ", max(10-terminal.Width(name), 0)), lang.Text(value))
		}
	}
	lang.Fprintf(&b, "\n  cove %s serves on %s\n\n", a.Version, a.Address)
	base, curl := a.Address, "curl -sS $COVE_SERVER"
	socket, unix := strings.CutPrefix(a.Address, "unix:")
	if unix { // there are no addresses of what is behind a socket
		base, curl = "", "curl -sS --unix-socket "+socket+" http://localhost"
	}
	row("elsewhere", strings.Join(a.Outside, ", "))
	if slices.ContainsFunc(a.Outside, func(address string) bool { return strings.HasPrefix(address, "http://") }) {
		row("", "keys and data go over the network unencrypted: put a TLS proxy before it, or set serve.tls_cert and serve.tls_key")
	}
	row("page", a.Page)
	row("API", base+"/api/v1, explained at "+base+"/api/v1/docs")
	row("OpenAI", base+"/v1")
	models := strings.Join(a.Models[:min(len(a.Models), 4)], ", ")
	if more := len(a.Models) - 4; more > 0 {
		models += fmt.Sprintf(" and %d more", more)
	}
	if models == "" {
		models = noModels(a.Page, a.NoModel)
	}
	row("models", oneLine(models))
	engine := a.Engine + ", Python " + a.Python + ", " + a.Packages + " packages"
	if a.Ready > 0 {
		engine += fmt.Sprintf(", up to %d sandboxes kept ready", a.Ready)
	}
	row("engine", engine)
	if a.Sessions.Sessions > 0 {
		text, fix := outlookOf(a.Sessions)
		row("sessions", text)
		row("", fix)
	}
	row("database", a.Database)
	row("files", a.Folder)
	row("settings", a.Config)
	row("metrics", a.Metrics)
	row("pprof", a.Debug)
	key := "cove_..."
	if a.Key != "" {
		key = a.Key
		lang.Fprintf(&b, "\n  The first key. It is not shown again, and not kept:\n\n      %s\n", a.Key)
	} else {
		b.WriteString("\n  " + lang.Text("There are keys already; `cove key create --name NAME` makes another.") + "\n")
	}
	if strings.Contains(a.Page, "#") {
		b.WriteString("\n  " + lang.Text("The page's address signs one browser in, within 15 minutes; `cove open` prints another.") + "\n")
	} else if a.Page != "" {
		b.WriteString("\n  " + lang.Text("`cove open` prints an address of the page that signs a browser in.") + "\n")
	}
	server := "COVE_SERVER=" + a.Address + " "
	if unix {
		server = ""
	}
	lang.Fprintf(&b, "\n  Try it:\n\n      export %sCOVE_KEY=%s\n      %s/api/v1/sessions", server, key, curl)
	b.WriteString(` -H "Authorization: Bearer $COVE_KEY" -H 'Content-Type: application/json' -d '{}'
`)
	if len(a.Models) > 0 && !unix {
		b.WriteString("      cove ask \"What is the 1000th prime?\"\n")
	}
	b.WriteString("\n  " + lang.Text("Ctrl-C ends it.") + "\n\n")
	return b.String()
}

// noModels says that the server has no language model, what to do where it has a page or none, and why there is none where that is not that none was named.
func noModels(page, why string) string {
	text := "none yet: running code needs none, answering questions does. Set OPENAI_API_KEY or ANTHROPIC_API_KEY and start again"
	if page != "" {
		text = "none yet: running code needs none, answering questions does. Set OPENAI_API_KEY or ANTHROPIC_API_KEY and start again, or connect one in the page"
	}
	if why != "" {
		text += ". The reason: " + why
	}
	return text
}

// ending is interruptible for a program whose every signal means to end in good order, and at once when it comes again.
func (p *Program) ending(ctx context.Context) *interruption {
	hard, kill := context.WithCancel(ctx)
	soft, end := context.WithCancel(hard)
	i := &interruption{soft: soft, leave: hard, hard: hard}
	over, joined := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(joined)
		for {
			select {
			case <-over:
				return
			case s := <-p.Signals:
				if s == syscall.SIGHUP && !isTerminalFile(p.Out) {
					continue // of a terminal that it was started from and outlives
				}
				again := soft.Err() != nil
				i.note(s)
				end()
				if again {
					kill()
				}
			}
		}
	}()
	i.stop = func() {
		close(over)
		<-joined
		end()
		kill()
	}
	return i
}

func isTerminalFile(w io.Writer) bool {
	_, tty := terminal.Descriptor(w)
	return tty
}
