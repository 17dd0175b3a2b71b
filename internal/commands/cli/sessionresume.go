package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/http/client"
	"cove/internal/sessions/ondisk"
)

// keeperLog is the file in a session's folder for what the process says that keeps it in memory.
const keeperLog = "keeper.log"

type sessionResume struct {
	Name string `arg:"" complete:"session" help:"The session; on a server, its name or id."`
	serverFlags
	For   *config.Duration `placeholder:"TIME" help:"Pause it again after so long without use; 0 means never (default: ${session_idle})."`
	Check bool             `help:"Restore it, say how long that took, and leave it as it was."`
	JSON  bool             `name:"json" help:"Print the session, or the result of --check, as one JSON object."`
	sandboxFlags
}

// Help is the long help.
func (sessionResume) Help() string {
	return `A process in the background keeps the session in memory from then on, until it is paused. Commands with --session find it there,
answer sooner, and leave it there instead of saving it. When it has not been used for some seconds it is saved all the same, in
case that the process dies; it stays in memory. Paused sessions need not be resumed to be used. On a server the session
stays in memory until nobody has used it for the time that it has, which --for changes, or until its place is needed.

Examples:

    cove session resume lab
    cove session resume lab --for 8h
    cove session resume lab --check`
}

// keeping is what `cove session resume` tells of.
type keeping struct {
	ondisk.Info
	Fresh   bool     `json:"resumed"` // false: it was in memory already
	Seconds float64  `json:"seconds"`
	Notices []string `json:"notices,omitempty"`
}

func (c *sessionResume) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.config(p)
	if err != nil {
		return 0, err
	}
	base, key, err := c.remote(cfg)
	if err != nil {
		return 0, err
	}
	if base != "" {
		return 0, c.remotely(ctx, p, base, key)
	}
	flags := sessionFlags{Session: c.Name, existing: true}
	if err := flags.check(cfg); err != nil {
		return 0, err
	}
	if c.For != nil && *c.For < 0 {
		return 0, problem.New(problem.Usage, "--for must not be below 0")
	}
	if c.Check {
		flags.trial = true
		return 0, c.check(ctx, p, opening{cfg: cfg, flags: c.sandboxFlags, session: flags, command: "cove session resume"})
	}
	if err := possible(cfg); err != nil {
		return 0, err
	}
	return 0, c.resume(ctx, p, cfg)
}

func (c *sessionResume) resume(ctx context.Context, p *Program, cfg config.Config) error {
	k, begun := keeping{}, time.Now()
	store := p.store(cfg)
	var err error
	k.Info, k.Fresh, err = store.Resume(ctx, c.Name, func(ctx context.Context) (err error) {
		k.Notices, err = p.Launch(ctx, c.keepArgs(cfg), filepath.Join(store.Dir, c.Name, keeperLog))
		return err
	})
	if err != nil {
		return err
	}
	k.Seconds = time.Since(begun).Seconds()
	if !k.Fresh && c.differs(k.Info) {
		k.Notices = append(k.Notices, "--for, --memory and --cpus count only when a session is brought into memory; `cove session pause "+c.Name+"` comes first")
	}
	for _, text := range k.Notices {
		if !c.JSON {
			fmt.Fprintln(p.Err, "cove: "+lang.Text(oneLine(text)))
		}
	}
	if c.JSON {
		return p.printJSON(k)
	}
	already, until := "", "until `cove session pause "+c.Name+"`"
	if !k.Fresh {
		already = " already"
	}
	if k.Memory != nil && k.Memory.Idle > 0 {
		until = fmt.Sprintf("it is paused again %s, or by `cove session pause %s`", pausedWhen(k.Memory.Idle), c.Name)
	}
	_, err = lang.Fprintf(p.Out, "session %s is in memory%s; %s\n", c.Name, lang.Text(already), lang.Text(until))
	return err
}

// remotely is resume on a server.
func (c *sessionResume) remotely(ctx context.Context, p *Program, base, key string) error {
	usual := p.Config.Sandbox
	if err := localFlags(map[string]bool{
		"--check": c.Check, "--memory": c.Memory != nil, "--cpus": c.CPUs != nil, "--packages": c.Packages != "", "--engine": c.Engine != usual.Engine, "--root": c.Root, "--image": c.Image != "",
		"--timeout": c.Timeout != usual.Timeout, "--max-output": c.MaxOutput != usual.MaxOutput,
	}); err != nil {
		return err
	}
	if c.For != nil && *c.For <= 0 {
		return problem.New(problem.Usage, "--for must be above 0: a server keeps no session in memory for ever").WithHint("for example --for 8h")
	}
	from := &remoteSessions{client: client.New(base, key)}
	defer from.client.Close()
	begun := time.Now()
	s, fresh, err := from.resume(ctx, c.Name, c.For)
	if err != nil {
		return err
	}
	if c.JSON {
		out := map[string]any{"resumed": fresh, "seconds": time.Since(begun).Seconds()}
		if shown, ok := s.shown().(map[string]any); ok {
			maps.Copy(out, shown)
		}
		return p.printJSON(out)
	}
	already := ""
	if !fresh {
		already = " already"
	}
	_, err = lang.Fprintf(p.Out, "session %s is in memory%s; it is paused again %s, or by `cove session pause %s`\n", oneLine(c.Name), lang.Text(already), lang.Text(pausedWhen(float64(s.server.Idle))), oneLine(c.Name))
	return err
}

// differs says whether a session in memory is kept in another way than is asked for.
func (c *sessionResume) differs(s ondisk.Info) bool {
	return c.Memory != nil && int64(*c.Memory) != s.Limits.Memory || c.CPUs != nil && *c.CPUs != s.Limits.CPUs ||
		c.For != nil && s.Memory != nil && time.Duration(*c.For).Seconds() != s.Memory.Idle
}

// keepArgs is the command line of the process in the background.
func (c *sessionResume) keepArgs(cfg config.Config) []string {
	idle := cfg.Session.Idle
	if c.For != nil {
		idle = *c.For
	}
	args := []string{"session", "keep", c.Name, "--for", idle.String(), "--engine", c.Engine}
	if c.Packages != "" {
		args = append(args, "--packages", c.Packages)
	}
	if c.Memory != nil {
		args = append(args, "--memory", c.Memory.String())
	}
	if c.CPUs != nil {
		args = append(args, "--cpus", fmt.Sprint(*c.CPUs))
	}
	return args
}

// pausedWhen says after how many seconds without use a session in memory is paused.
func pausedWhen(idle float64) string {
	if idle == 0 {
		return "never by itself"
	}
	return "after " + config.Duration(idle*float64(time.Second)).String() + " without use"
}

func (c *sessionResume) check(ctx context.Context, p *Program, o opening) error {
	begun := time.Now()
	b, err := p.open(ctx, o, nil, &outFolder{})
	if err != nil {
		return err
	}
	took := time.Since(begun)
	if err := b.discard(); err != nil {
		return err
	}
	if c.JSON {
		return p.printJSON(map[string]any{"name": c.Name, "seconds": took.Seconds()})
	}
	_, err = lang.Fprintf(p.Out, "session %s was restored in %s and left as it was\n", c.Name, took.Round(time.Millisecond))
	return err
}

// sessionKeep is the process in the background.
type sessionKeep struct {
	ownSignals
	Name string          `arg:""`
	For  config.Duration `default:"${session_idle}"`
	sandboxFlags
}

func (c *sessionKeep) run(ctx context.Context, p *Program) (int, error) {
	told := false
	tell := func(notices []string, err error) {
		if !told {
			told = true
			p.Report(notices, err)
		}
	}
	err := c.keep(ctx, p, func(notices []string) { tell(notices, nil) })
	tell(nil, err)
	return 0, err
}

func (c *sessionKeep) keep(ctx context.Context, p *Program, ready func(notices []string)) error {
	cfg, err := c.config(p)
	if err != nil {
		return err
	}
	flags := sessionFlags{Session: c.Name, existing: true}
	if err := flags.check(cfg); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.Signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return p.store(cfg).Keep(ctx, c.Name, ondisk.KeepOptions{
		Options: p.namedOptions(c.Name, opening{cfg: cfg, flags: c.sandboxFlags, session: flags, command: ondisk.Keeping}, io.Discard),
		Idle:    time.Duration(c.For), Ready: ready, Log: slog.New(slog.NewTextHandler(p.Err, nil)),
	})
}
