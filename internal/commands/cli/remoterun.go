package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/python/kernel"
)

// runner runs code and has the files that come of it: a session here, or one on a server.
type runner interface {
	fetcher
	Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error]
}

var (
	_, _ runner    = (*commandSession)(nil), (*remoteRun)(nil)
	_    completer = (*remoteRun)(nil)
)

// remoteRun is a session of a server in which one program runs.
type remoteRun struct {
	client  *client.Client
	session string
	err     io.Writer
	// approved says that somebody has looked at the code.
	approved bool
	tools    []string // servers whose tools it may call
	asks     *callAsker
	inputs   inputAsker
}

// strayLife is how long a session without a name lives on a server whose command was killed.
const strayLife = 24 * time.Hour

// codeFlags are the flags of commands that run code, here or on a server.
type codeFlags struct {
	fileFlags
	sessionFlags
	sandboxFlags
	networkFlags
	installFlags
	toolFlags
	displayFlags
	envFlags
	Approved bool `help:"With --server: say that somebody has looked at the code, where the rules of the server ask for that."`
}

// checkRemote finds the flags that are for this machine alone.
func (c *codeFlags) checkRemote(usual config.Config) error {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--undoable", c.Undoable}, {"--no-install", c.NoInstall}, {"--offline", c.Offline}, {"--allow-build", c.AllowBuild}, {"--credential", len(c.Credential) > 0},
		{"--max-output", c.MaxOutput != usual.Sandbox.MaxOutput}, {"--engine", c.Engine != usual.Sandbox.Engine},
	} {
		if f.given {
			return problem.New(problem.Usage, f.name+" is for this machine only; a server uses its own settings").WithHint("leave it out, or run on this machine: --server ''")
		}
	}
	return nil
}

// remotely runs the program on a server.
func (c *runCmd) remotely(i *interruption, p *Program, base, key string) (code int, err error) {
	if err := c.checkRemote(p.Config); err != nil {
		return 0, err
	}
	req, err := c.request(i.soft, p)
	if err != nil {
		return 0, err
	}
	inputs, out, err := p.prepare(i.soft, c.fileFlags, c.networkFlags)
	if err != nil {
		return 0, err
	}
	defer out.close()
	r := &remoteRun{client: client.New(base, key), err: p.Err}
	defer r.client.Close()
	if err := r.begin(i.soft, p, &c.codeFlags); err != nil {
		return 0, err
	}
	if c.Session == "" {
		defer r.end()
	}
	if err := sendInputs(i.soft, r.client, r.session, withProgram(inputs, c.Program, req), p.signs(c.Quiet)); err != nil {
		return 0, err
	}
	out.live = p.signs(c.Quiet)
	if c.Timeout != p.Config.Sandbox.Timeout {
		req.Timeout = time.Duration(c.Timeout)
	}
	req.Restart, req.Input = c.Restart, newAsker(p, c.Program == "-", c.JSON).input
	v := &runView{p: p, out: out, json: c.JSON, quiet: c.Quiet, plotly: p.plotly(p.Config), live: p.signs(c.Quiet || c.JSON), images: c.pictures(p, p.Out)}
	if err := c.program(i, v, r, req); err != nil {
		return 0, err
	}
	c.tellHidden(v, req, inputs)
	return v.finish(i, r)
}

// begin finds the session with the name that was given, or makes one.
func (r *remoteRun) begin(ctx context.Context, p *Program, c *codeFlags) (err error) {
	r.approved, r.tools = c.Approved, c.Tools
	r.asks = &callAsker{toolAsker: c.asker(p), approve: approving(r.client)}
	r.session, err = sessionFor(ctx, r.client, c.sessionFlags, c.sandboxFlags, c.networkFlags, strayLife, p.signs(c.Quiet))
	return err
}

// sessionFor finds the session of a server that the flags name, or makes one; one without a name lives for so long, 0: as the server says.
func sessionFor(ctx context.Context, c *client.Client, named sessionFlags, needs sandboxFlags, network networkFlags, stray time.Duration, live *terminal.Live) (id string, err error) {
	reaches := len(network.AllowNet)+len(network.DenyNet) > 0
	n := api.NewSession{Name: named.Session, Packages: needs.Packages, Root: needs.Root, Image: needs.Image}
	if named.Session == "" {
		n.Life = int64(stray / time.Second)
	} else if id, err = namedSession(ctx, c, named.Session); err != nil || id != "" {
		if err == nil && reaches {
			err = problem.New(problem.Usage, "the session is there already, with the network that it was made with").WithHint("leave --allow-net out, or take another name")
		}
		if err == nil && (needs.Root || needs.Image != "") {
			err = agrees(ctx, c, id, needs)
		}
		return id, err
	}
	if needs.Memory != nil {
		n.Memory = int64(*needs.Memory)
	}
	if needs.CPUs != nil {
		n.CPUs = *needs.CPUs
	}
	if reaches {
		n.Network = &api.Network{Allow: network.AllowNet, Deny: network.DenyNet}
	}
	if needs.Image != "" {
		live.Await(lang.Text("making a session; the server fetches the image where it is not there yet"))
		defer live.Over()
	}
	s, err := c.CreateSession(ctx, n)
	return s.ID, err
}

// agrees returns a problem where a session that is there was made without a root, or from another image.
func agrees(ctx context.Context, c *client.Client, id string, needs sandboxFlags) error {
	s, err := c.Session(ctx, id)
	switch {
	case err != nil:
		return err
	case needs.Root && !s.Root:
		return problem.New(problem.RootAbsent, "the session is there already, and was made without a root").WithHint("leave --root out, or take another name")
	case needs.Image != "" && (s.Image == nil || s.Image.Reference != needs.Image):
		return problem.New(problem.SessionImage, "the session is there already, and did not begin from this image").WithHint("leave --image out, or take another name")
	}
	return nil
}

// end deletes a session that nobody can come back to.
func (r *remoteRun) end() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := r.client.DeleteSession(ctx, r.session); err != nil && !problem.Has(err, problem.SessionNotFound) {
		notef(r.err, "the session %s is left on the server for a day: %s", r.session, oneLine(spoken(err)))
	}
}

// Execute implements runner. When ctx ends the execution is interrupted on the server, which then says how it ended.
func (r *remoteRun) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		following, leave := context.WithCancelCause(context.WithoutCancel(ctx))
		defer leave(nil)
		n := api.NewExecution{Code: req.Code, Timeout: req.Timeout.Seconds(), Args: req.Args, Env: req.Environment, Columns: req.Columns, Restart: req.Restart, Approved: r.approved, Servers: r.tools, Input: req.Input != nil}
		if r.asks != nil {
			n.AskBefore = r.asks.before
		}
		if req.Mode == kernel.Script {
			n.Program = req.Filename
		}
		if ctx.Err() != nil {
			yield(nil, context.Cause(ctx))
			return
		}
		e, events, err := r.client.Run(following, r.session, n)
		if problem.Has(err, problem.CodeUnapproved) {
			err = problem.Of(err).WithHint("look at the code, and add --approved")
		}
		if err != nil {
			yield(nil, err)
			return
		}
		defer context.AfterFunc(ctx, func() { r.interrupt(e.ID, leave) })()
		for event, err := range events {
			if gap, lost := errors.AsType[*client.Gap](err); lost {
				fmt.Fprintln(r.err, "cove: "+lang.Text(gap.Error()))
				continue
			}
			switch asks := event.(type) {
			case kernel.CallAsks:
				go r.asks.ask(following, e.ID, asks)
			case kernel.InputRequest:
				go r.inputs.answer(following, r, e.ID, asks, req.Input)
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// Complete is what may stand at the cursor of code, as a session here says it.
func (r *remoteRun) Complete(ctx context.Context, name, code string, cursor int) (matches []string, start, end int, err error) {
	c, err := r.client.Complete(ctx, r.session, name, code, cursor)
	return c.Matches, c.Start, c.End, err
}

// IsComplete says whether an input is complete, as a session here does.
func (r *remoteRun) IsComplete(ctx context.Context, name, code string) (string, error) {
	return r.client.IsComplete(ctx, r.session, name, code)
}

func (r *remoteRun) interrupt(execution string, leave context.CancelCauseFunc) {
	stopped := problem.New(problem.GivenUp, "the code was stopped before it ended")
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	if _, err := r.client.Interrupt(ctx, execution); err != nil {
		leave(stopped)
		return
	}
	time.AfterFunc(stopPatience, func() { leave(stopped) })
}

// Fetch implements fetcher.
func (r *remoteRun) Fetch(ctx context.Context, path string, w io.Writer) error {
	_, err := r.client.Download(ctx, r.session, path, w)
	return err
}
