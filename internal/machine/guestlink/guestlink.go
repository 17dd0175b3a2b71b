// Package guestlink is the host's end of the connection to a guest: files,
// processes and kernels of one sandbox as Go calls. Everything that arrives through it is hostile
// and bounded here or in package wire.
package guestlink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/wire"
)

// handshakeTimeout bounds the guest's hello; it is sent as soon as the guest runs.
const handshakeTimeout = 30 * time.Second

// longestMessage bounds what a guest says about a failure, in bytes.
const longestMessage = 2 << 10

// undoGrace bounds how long a canceled attempt to attach waits for the guest, which answers at once if at all.
const undoGrace = time.Second

// Link is a connection to a guest. It is safe for concurrent use.
type Link struct {
	conn *wire.Conn
	info wire.GuestInfo
	done chan struct{}

	mu       sync.Mutex
	forwards int // that want the guest's channels
}

// Session is what a guest is told of its session when it connects.
type Session = wire.SessionInfo

// Open shakes hands with the guest at the other end of stream and serves the connection until Close.
func Open(ctx context.Context, stream io.ReadWriteCloser, about Session) (*Link, error) {
	l := &Link{conn: wire.NewConn(stream, true), done: make(chan struct{})}
	timeout := time.AfterFunc(handshakeTimeout, func() { _ = stream.Close() })
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	l.conn.Refuse(true)
	_, err := l.conn.Handshake(wire.Hello{Version: wire.Version, Oldest: wire.Oldest, Info: wire.Encode(about)}, func(peer wire.Hello) error {
		return json.Unmarshal(peer.Info, &l.info)
	})
	if !timeout.Stop() || !stop() {
		err = errors.Join(err, context.Cause(ctx), errors.New("the guest did not answer in time"))
	}
	if err != nil {
		_ = stream.Close()
		return nil, fmt.Errorf("connect to the guest: %w", err)
	}
	go func() {
		defer close(l.done)
		_ = l.conn.Run(context.Background())
	}()
	return l, nil
}

// Close ends the connection and waits until it is served no longer.
func (l *Link) Close() error {
	err := l.conn.Close()
	<-l.done
	return err
}

// Done is closed when the connection has ended.
func (l *Link) Done() <-chan struct{} { return l.done }

// Kernels lists the process ids of the kernels that lived when the guest connected: those that outlived their former host's connection.
func (l *Link) Kernels() []int { return l.info.Kernels }

// Ping asks the guest for a sign of life.
func (l *Link) Ping(ctx context.Context) error {
	_, err := l.conn.Ping(ctx)
	return err
}

// open starts an operation. The channel is closed when ctx ends; release must be called when the operation is over.
func (l *Link) open(ctx context.Context, req wire.Request, body []byte) (ch *wire.Channel, release func(), err error) {
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	ch, err = l.conn.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = ch.Close() })
	release = func() {
		stop()
		_ = ch.Close()
	}
	if err := wire.WriteMessage(ch, req, body); err != nil {
		release()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, nil, err
	}
	return ch, release, nil
}

func (l *Link) respond(ctx context.Context, ch *wire.Channel) (wire.Response, []byte, error) {
	var resp wire.Response
	a := l.attend(func() { _ = ch.Close() })
	defer a.end()
	body, err := wire.ReadMessage(ch, wire.MessageLimit, &resp)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return resp, nil, a.orSilent(err)
	}
	resp.Message = wire.Printable(resp.Message, longestMessage)
	return resp, body, asProblem(resp)
}

func asProblem(r wire.Response) error {
	p := problemOf(r)
	if p == nil {
		return nil
	}
	p.Inside = true
	return p
}

func problemOf(r wire.Response) *problem.Error {
	switch r.Code {
	case "":
		return nil
	case wire.FaultNotFound:
		return problem.New(problem.FileNotFound, r.Message).WithCause(fs.ErrNotExist)
	case wire.FaultNoSpace:
		return problem.New(problem.WorkspaceFull, "the workspace is full").WithHint("remove files or raise the workspace's size")
	case wire.FaultDenied:
		p := problem.New(problem.FileDenied, r.Message)
		if strings.HasSuffix(r.Message, syscall.EROFS.Error()) {
			p = p.WithHint("write in /workspace, which is /home/user, or in /tmp; in a session with a root everything can be written")
		}
		return p
	case wire.FaultPath:
		return problem.New(problem.InvalidPath, r.Message)
	case wire.FaultExists:
		return problem.New(problem.FileExists, r.Message)
	case wire.FaultNotEmpty:
		return problem.New(problem.NotEmpty, r.Message).WithHint("remove what is in the folder first, or ask for all of it to be removed")
	case wire.FaultNoProcess:
		return problem.New(problem.ProcessNotFound, r.Message).WithHint("list the processes of the session; of those that have ended the last are kept")
	case wire.FaultNoRoot:
		return problem.New(problem.RootAbsent, "the session has no root").WithHint("make a session with one: `cove session create NAME --root`, or \"root\": true in a request")
	case wire.FaultNoProgram:
		return problem.New(problem.ProgramMissing, r.Message).WithHint("give a name that is in the PATH, or a path; a line for the shell needs bash -c")
	case wire.FaultMany:
		return problem.New(problem.TooManyProcesses, r.Message).WithHint("end one that is not needed any more")
	case wire.FaultRefused:
		return problem.New(problem.PortRefused, r.Message).WithHint("start a server there first; it may take a moment until it listens")
	case wire.FaultEnded:
		return problem.New(problem.ProcessEnded, r.Message)
	case wire.FaultInvalid:
		return problem.New(problem.InvalidRequest, r.Message)
	default:
		return problem.New(problem.GuestFault, r.Message)
	}
}

// Run runs a program and passes its output on. It returns its exit status, or -1 when a signal killed it.
func (l *Link) Run(ctx context.Context, spec wire.ProcessSpec, stdout, stderr io.Writer) (int, error) {
	p, err := l.start(ctx, wire.Request{Op: wire.OpProcessRun, Process: &spec}, nil)
	if err != nil {
		return -1, fmt.Errorf("run %s: %w", spec.Args[0], err)
	}
	defer p.Close()
	for {
		h, body, err := p.Receive()
		if err != nil {
			return -1, fmt.Errorf("run %s: %w", spec.Args[0], err)
		}
		switch h.Kind {
		case wire.FromStdout:
			_, err = stdout.Write(body)
		case wire.FromStderr:
			_, err = stderr.Write(body)
		case wire.FromExit:
			if h.Signal != 0 {
				return -1, nil
			}
			return h.Code, nil
		}
		if err != nil {
			return -1, err
		}
	}
}

// Process is a process that the guest runs for us: a kernel, for as long as it lives or until it is let go. When the whole
// connection ends, by Link.Close or otherwise, a kernel lives on as after Detach; Close kills it.
type Process struct {
	ch      *wire.Channel
	release func()
	PID     int  // inside the sandbox
	Busy    bool // of an attached kernel: its former owner had begun an execution and not ended it
	Parks   bool // the guest knows Park; that of a session which an older cove has saved does not
}

// StartKernel starts a kernel: spec's interpreter with the driver's source. ctx bounds the start alone.
func (l *Link) StartKernel(ctx context.Context, spec wire.ProcessSpec, source []byte) (*Process, error) {
	p, err := l.startDriver(ctx, wire.Request{Op: wire.OpKernelStart, Process: &spec}, source)
	if err != nil {
		return nil, fmt.Errorf("start kernel: %w", err)
	}
	return p, nil
}

// StartApart starts a driver that the sandbox's code cannot influence; see wire.OpApartStart. It ends with Close and with the
// connection, and cannot be detached from. ctx bounds the start alone.
func (l *Link) StartApart(ctx context.Context, spec wire.ProcessSpec, source []byte) (*Process, error) {
	p, err := l.startDriver(ctx, wire.Request{Op: wire.OpApartStart, Process: &spec}, source)
	if err != nil {
		return nil, fmt.Errorf("start driver: %w", err)
	}
	return p, nil
}

func (l *Link) startDriver(ctx context.Context, req wire.Request, source []byte) (*Process, error) {
	starting, abort := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, abort)
	p, err := l.start(starting, req, source)
	if !stop() && err == nil {
		p.Close()
		err = ctx.Err()
	}
	if err != nil {
		abort()
		return nil, err
	}
	return p, nil
}

// AttachKernel takes over the living kernel with process id pid, whether or not another connection has it. Nothing is kept of what the kernel sent while
// no connection had it. ctx bounds the call alone; a kernel that is attached to too late is released. A kernel that
// is gone is a problem of kind NotFound with code "kernel_not_found" that says how it ended.
func (l *Link) AttachKernel(ctx context.Context, pid int) (*Process, error) {
	type attached struct {
		process *Process
		err     error
	}
	got := make(chan attached, 1)
	go func() {
		// Not with ctx, whose end would close the channel: that kills the kernel.
		p, err := l.start(context.WithoutCancel(ctx), wire.Request{Op: wire.OpKernelAttach, PID: pid}, nil)
		got <- attached{p, err}
	}()
	select {
	case a := <-got:
		if gone, ok := errors.AsType[*problem.Error](a.err); ok && gone.Kind == problem.NotFound {
			return nil, problem.New(problem.KernelNotFound, gone.Message)
		}
		if a.err != nil {
			return nil, fmt.Errorf("attach to the kernel with process id %d: %w", pid, a.err)
		}
		return a.process, nil
	case <-ctx.Done():
		undone := make(chan struct{})
		go func() {
			defer close(undone)
			if a := <-got; a.err == nil {
				_ = a.process.Detach() // an error means that it is let go already
				a.process.Close()
			}
		}()
		// Otherwise it could take the kernel from the connection that attaches next.
		select {
		case <-undone:
		case <-time.After(undoGrace):
		}
		return nil, fmt.Errorf("attach to the kernel with process id %d: %w", pid, ctx.Err())
	}
}

func (l *Link) start(ctx context.Context, req wire.Request, body []byte) (*Process, error) {
	ch, release, err := l.open(ctx, req, body)
	if err != nil {
		return nil, err
	}
	resp, _, err := l.respond(ctx, ch)
	if err != nil {
		release()
		return nil, err
	}
	return &Process{ch: ch, release: release, PID: resp.PID, Busy: resp.Busy, Parks: l.info.Parks}, nil
}

// Send sends one message to the process or about it.
func (p *Process) Send(h wire.ToKernel, body []byte) error { return wire.WriteMessage(p.ch, h, body) }

// Receive returns the next message. After FromExit it returns io.EOF, and so it does once the guest has obeyed Detach.
func (p *Process) Receive() (wire.FromProcess, []byte, error) {
	var h wire.FromProcess
	body, err := wire.ReadMessage(p.ch, wire.MessageLimit+1024, &h)
	return h, body, err
}

// Detach asks the guest to let the kernel go and keep it. Receive tells when it has; then Close is harmless.
func (p *Process) Detach() error { return p.Send(wire.ToKernel{Kind: wire.ToDetach}, nil) }

// Park is Detach in the middle of an execution: what the kernel writes and says from then on waits in the kernel for who attaches next.
func (p *Process) Park() error { return p.Send(wire.ToKernel{Kind: wire.ToPark}, nil) }

// Close lets the process go; the guest kills it if it still runs.
func (p *Process) Close() { p.release() }
