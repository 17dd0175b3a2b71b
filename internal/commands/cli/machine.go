package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"cove/internal/core/config"
	"cove/internal/core/ident"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/server/hub"
)

// machine is a session as a small computer, here or on a server.
type machine interface {
	machineProcesses
	machinePorts
	machineFiles
}

// machineFiles are the files of a session's machine. A relative path begins at the workspace.
type machineFiles interface {
	StatPath(ctx context.Context, path string) (filesystem.Entry, error)
	ListPath(ctx context.Context, path string, depth int) (entries []filesystem.Entry, more bool, err error)
	ReadPath(ctx context.Context, path string, w io.Writer) error
	WritePath(ctx context.Context, path string, r io.Reader, mode *uint32) error
}

type machineProcesses interface {
	StartProcess(ctx context.Context, start process.Start) (process.Info, error)
	Processes(ctx context.Context) ([]process.Info, error)
	WriteProcess(ctx context.Context, id string, r io.Reader, end bool) (int64, error)
	ResizeProcess(ctx context.Context, id string, size process.Size) error
	SignalProcess(ctx context.Context, id, signal string, all bool) error
	FollowProcess(ctx context.Context, id string, from int64) iter.Seq2[process.Event, error]
}

type machinePorts interface {
	Ports(ctx context.Context) ([]process.Port, error)
	DialPort(ctx context.Context, port int) (guestlink.Stream, error)
}

// machineFlags are the flags of commands that work with processes of a session.
type machineFlags struct {
	Name string `arg:"" complete:"session" help:"The session."`
	serverFlags
}

// machineWork is what a command does with a session.
type machineWork struct {
	machineFlags
	network networkFlags
	root    bool   // what it starts runs as root
	command string // shown to others who want the session at the same time
	fresh   bool   // make the session when there is none
	listens bool   // the work gives signals a meaning of its own; else the first ends it
	do      func(ctx context.Context, m machine) (int, error)
}

// onMachine does the work with the session on the server that is named, or with the one here, which is saved afterwards unless it stays in memory.
func (p *Program) onMachine(ctx context.Context, w machineWork) (code int, err error) {
	if p.ConfigErr != nil {
		return 0, p.ConfigErr
	}
	base, key, err := w.remote(p.Config)
	if err != nil {
		return 0, err
	}
	opening := p.interruptible(ctx)
	var m machine
	end := func() {}
	if base != "" && len(w.network.AllowNet) > 0 {
		return 0, problem.New(problem.Usage, "--allow-net is for sessions on this machine").WithHint("where a session on a server may connect to is said when it is made")
	}
	if base != "" {
		c := client.New(base, key)
		defer c.Close()
		var session string
		session, err = p.remoteSession(opening.soft, c, w)
		m = remoteMachine{Client: c, session: session}
	} else {
		m, end, err = p.localMachine(opening.soft, p.Config, w, &code, &err)
	}
	opening.stop()
	if err != nil {
		return opening.exitCode(), errors.Join(err)
	}
	defer end()
	if w.listens {
		return w.do(ctx, m)
	}
	i := p.interruptible(ctx)
	defer i.stop()
	code, err = w.do(i.soft, m)
	if signalled := i.exitCode(); signalled != 0 && err != nil {
		return signalled, nil
	}
	return code, err
}

// remoteSession finds the session with a name or an id on a server, or makes one.
func (p *Program) remoteSession(ctx context.Context, c *client.Client, w machineWork) (id string, err error) {
	name := w.Name
	if ident.Valid(ident.Session, name) {
		s, err := c.Session(ctx, name)
		return s.ID, err
	}
	if id, err = namedSession(ctx, c, name); err != nil || id != "" {
		return id, err
	}
	if !w.fresh {
		return "", problem.New(problem.SessionNotFound, fmt.Sprintf("the server has no session %q", name)).WithHint("`cove session exec` makes one")
	}
	s, err := c.CreateSession(ctx, api.NewSession{Name: name, Root: w.root})
	if err == nil {
		notef(p.Err, "made the session %s", oneLine(name))
	}
	return s.ID, err
}

// localMachine opens the session here. end saves it, and adds to what the command ends with.
func (p *Program) localMachine(ctx context.Context, cfg config.Config, w machineWork, code *int, failed *error) (m machine, end func(), err error) {
	flags := sessionFlags{Session: w.Name, existing: !w.fresh}
	if err := errors.Join(flags.check(cfg), possible(cfg), w.network.checkNetwork(p.Getenv)); err != nil {
		return nil, nil, err
	}
	if !cfg.Isolated() {
		fmt.Fprintln(p.Err, "cove: "+lang.Text("engine "+cfg.Sandbox.Engine+": there is no isolation, the code can do whatever you can do"))
	}
	cfg.Sandbox.Root = w.root
	_, known := p.store(cfg).Look(w.Name)
	session, err := p.openNamed(ctx, w.Name, opening{cfg: cfg, session: flags, command: w.command}, lang.Lines(p.Err))
	if err != nil {
		return nil, nil, err
	}
	s := &commandSession{warn: p.Err, err: p.Err, named: session, own: true, out: &outFolder{}}
	if s.Live, err = hub.LiveOf(session); err == nil {
		err = w.network.connect(ctx, s.Live, p.Getenv, p.Err)
	}
	if err != nil {
		return nil, nil, errors.Join(err, s.discard())
	}
	s.tell()
	if problem.Has(known, problem.SessionUnknown) {
		notef(p.Err, "made the session %s", oneLine(w.Name))
	}
	return localMachine{live: s.Live}, func() {
		i := p.interruptible(context.Background())
		defer i.stop()
		s.settle(i.hard, code, failed)
	}, nil
}

type localMachine struct{ live hub.Live }

var _, _ machine = localMachine{}, remoteMachine{}

func (m localMachine) StartProcess(ctx context.Context, start process.Start) (process.Info, error) {
	return m.live.StartProcess(ctx, ident.New(ident.Process), start)
}

func (m localMachine) Processes(ctx context.Context) ([]process.Info, error) {
	return m.live.Processes(ctx)
}

func (m localMachine) WriteProcess(ctx context.Context, id string, r io.Reader, end bool) (int64, error) {
	return m.live.WriteProcess(ctx, id, r, end)
}

func (m localMachine) ResizeProcess(ctx context.Context, id string, size process.Size) error {
	return m.live.ResizeProcess(ctx, id, size)
}

func (m localMachine) SignalProcess(ctx context.Context, id, signal string, all bool) error {
	number, err := process.ParseSignal(signal)
	if err != nil {
		return err
	}
	return m.live.SignalProcess(ctx, id, number, all)
}

func (m localMachine) FollowProcess(ctx context.Context, id string, from int64) iter.Seq2[process.Event, error] {
	return m.live.FollowProcess(ctx, id, from)
}

type remoteMachine struct {
	*client.Client
	session string
}

func (m remoteMachine) StartProcess(ctx context.Context, start process.Start) (process.Info, error) {
	return m.Client.StartProcess(ctx, m.session, start)
}

func (m remoteMachine) Processes(ctx context.Context) ([]process.Info, error) {
	return m.Client.Processes(ctx, m.session)
}

func (m remoteMachine) WriteProcess(ctx context.Context, id string, r io.Reader, end bool) (int64, error) {
	return m.Client.WriteProcess(ctx, m.session, id, r, end)
}

func (m remoteMachine) ResizeProcess(ctx context.Context, id string, size process.Size) error {
	return m.Client.ResizeProcess(ctx, m.session, id, size)
}

func (m remoteMachine) SignalProcess(ctx context.Context, id, signal string, all bool) error {
	return m.Client.SignalProcess(ctx, m.session, id, signal, all)
}

func (m remoteMachine) FollowProcess(ctx context.Context, id string, from int64) iter.Seq2[process.Event, error] {
	return m.Client.FollowProcess(ctx, m.session, id, from)
}

func (m localMachine) Ports(ctx context.Context) ([]process.Port, error) { return m.live.Ports(ctx) }

func (m localMachine) DialPort(ctx context.Context, port int) (guestlink.Stream, error) {
	return m.live.DialPort(ctx, port)
}

func (m remoteMachine) Ports(ctx context.Context) ([]process.Port, error) {
	return m.Client.Ports(ctx, m.session)
}

func (m remoteMachine) DialPort(ctx context.Context, port int) (guestlink.Stream, error) {
	return m.Client.DialPort(ctx, m.session, port)
}

func (m localMachine) StatPath(ctx context.Context, path string) (e filesystem.Entry, err error) {
	err = m.live.UseFiles(ctx, false, func(f guestlink.Files) error {
		e, err = f.StatPath(ctx, path, false)
		return err
	})
	return e, err
}

func (m localMachine) ListPath(ctx context.Context, path string, depth int) (entries []filesystem.Entry, more bool, err error) {
	err = m.live.UseFiles(ctx, false, func(f guestlink.Files) error {
		entries, more, _, err = f.ListPath(ctx, path, depth)
		return err
	})
	return entries, more, err
}

func (m localMachine) ReadPath(ctx context.Context, path string, w io.Writer) error {
	return m.live.UseFiles(ctx, false, func(f guestlink.Files) error {
		content, err := f.OpenPath(ctx, path, 0, 0)
		if err != nil {
			return err
		}
		defer func() { _ = content.Close() }()
		_, err = io.Copy(w, content)
		return err
	})
}

func (m localMachine) WritePath(ctx context.Context, path string, r io.Reader, mode *uint32) error {
	return m.live.UseFiles(ctx, true, func(f guestlink.Files) error {
		_, err := f.WritePath(ctx, path, r, filesystem.Set{Mode: mode}, false)
		return err
	})
}

func (m remoteMachine) StatPath(ctx context.Context, path string) (filesystem.Entry, error) {
	return m.Client.StatPath(ctx, m.session, path, false)
}

func (m remoteMachine) ListPath(ctx context.Context, path string, depth int) ([]filesystem.Entry, bool, error) {
	return m.Client.ListPath(ctx, m.session, path, depth)
}

func (m remoteMachine) ReadPath(ctx context.Context, path string, w io.Writer) error {
	_, err := m.Client.ReadPath(ctx, m.session, path, w)
	return err
}

func (m remoteMachine) WritePath(ctx context.Context, path string, r io.Reader, mode *uint32) error {
	_, err := m.Client.WritePath(ctx, m.session, path, r, mode)
	return err
}
