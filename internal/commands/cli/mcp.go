package cli

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/commands/terminal"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/ownership"
)

type mcpCmd struct {
	Serve   mcpServe   `cmd:"" default:"withargs" help:"Speak the protocol on standard input and output."`
	Install mcpInstall `cmd:"" help:"Have a program (Claude, Cursor, VS Code, Codex, Gemini CLI) use cove as a tool."`
}

type mcpServe struct {
	serverFlags
	ownSignals
}

// Help is the long help.
func (mcpServe) Help() string {
	return `Speaks the Model Context Protocol on standard input and output, for programs that start their servers themselves; cove mcp install has one do so. Code runs on this machine, as with
cove run, and no server is needed. Its sessions are saved when the program ends: the next cove mcp goes on with them, and so does cove run --session NAME; cove session ls lists
them, with names that begin with ses_. One is paused a minute after its last use, and deleted a week after it was made. Standard error has what is to be logged.

With --server, what the program sends goes to a cove server, and its answers come back. Programs that take an address need no such command: the server's address with /mcp behind
it, and the key.

Examples, as such a program has them in its settings:

    {"command": "cove", "args": ["mcp"]}
    {"command": "cove", "args": ["mcp", "--server", "http://127.0.0.1:8700"], "env": {"COVE_KEY": "cove_..."}}`
}

// mcpName is this command in the words of others that need one of its sessions.
const mcpName = "cove mcp"

func (c *mcpServe) run(ctx context.Context, p *Program) (int, error) {
	base, key, err := c.remote(p.Config)
	if err != nil {
		return 0, err
	}
	i := p.interruptible(ctx)
	defer i.stop()
	heard, end := context.WithCancel(i.soft)
	defer end()
	if f := terminal.OpenFile(p.Out); f != nil {
		go func() {
			awaitUnread(f) // the program was killed, and something else has its end of standard input
			end()
		}()
	}
	if _, tty := terminal.Descriptor(p.In); tty {
		notef(p.Err, "this speaks the Model Context Protocol, for programs; `cove mcp install` has one use it, and Ctrl-C ends it")
	}
	b := &mcpBridge{endpoint: strings.TrimSuffix(base, "/") + "/mcp", key: key, client: http.DefaultClient, out: unwatched(p.Out), under: map[string]context.CancelFunc{}}
	if base != "" {
		err = b.serve(heard, p.In)
	} else {
		err = p.serveMCP(heard, i, b)
	}
	if problem.Has(err, problem.Stopped) {
		return 0, err
	}
	return i.exitCode(), ifUnsignalled(i, err)
}

// awaitUnread returns when nobody can read any more what is written to a pipe, a socket or a terminal.
func awaitUnread(f *os.File) {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd())}}, -1)
		if n > 0 || err != nil && err != unix.EINTR {
			return
		}
	}
}

// serveMCP has a hub of this process answer a program, until there are no more messages or ctx ends. Then all sessions are saved.
func (p *Program) serveMCP(ctx context.Context, i *interruption, b *mcpBridge) error {
	cfg, err := p.Config, p.ConfigErr
	if err == nil {
		err = cfg.Validate()
	}
	if err == nil {
		err = possible(cfg)
	}
	if err != nil {
		return err
	}
	if !cfg.Isolated() {
		notef(p.Err, "engine %s: there is no isolation, the code can do whatever you can do", cfg.Sandbox.Engine)
	}
	h := p.openHub(ctx, cfg, nil, RecordsOptions{Command: mcpName, Sessions: lang.Lines(p.Err), Log: p.warnings(slog.LevelWarn)})
	records, err := h.wait(ctx)
	if err != nil {
		h.close()
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var loops sync.WaitGroup
	loops.Go(func() { _ = records.Hub.Run(ctx) })
	loops.Go(func() { records.Ahead(ctx) })
	loops.Go(func() {
		select {
		case <-records.Lost:
			end(ownership.ErrLost())
		case <-ctx.Done():
		}
	})
	inside := newInside()
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		records.MCP.ServeHTTP(w, r.WithContext(auth.With(r.Context(), auth.Local())))
	})}
	loops.Go(func() { _ = server.Serve(inside) }) // until it is closed
	b.endpoint, b.client = "http://cove/mcp", &http.Client{Transport: &http.Transport{DialContext: inside.dial, MaxIdleConnsPerHost: mostMCP}}
	err = b.serve(ctx, p.In)
	if problem.Has(context.Cause(ctx), problem.OwnerLost) {
		err = context.Cause(ctx)
	}
	end(nil)
	_ = server.Close()
	loops.Wait()
	saved := make(chan struct{})
	go func() {
		h.close()
		close(saved)
	}()
	select {
	case <-saved:
	case <-soonAfter(i.hard, hurriedSave):
		err = problem.New(problem.Stopped, "cove mcp was stopped at once; what its sessions have not saved is lost")
	}
	return err
}

// inside is a listener whose connections do not leave the process.
type inside struct {
	dialed chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newInside() *inside { return &inside{dialed: make(chan net.Conn), closed: make(chan struct{})} }

func (l *inside) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.dialed <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements net.Listener.
func (l *inside) Accept() (net.Conn, error) {
	select {
	case c := <-l.dialed:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *inside) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *inside) Addr() net.Addr { return &net.UnixAddr{Name: "cove", Net: "inside"} }
