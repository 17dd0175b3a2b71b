package keeper

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
)

// Gone says whether err means that no keeper runs, or none any more.
func Gone(err error) bool { return problem.Has(err, problem.KeeperGone) }

func goneProblem(err error) error {
	return problem.New(problem.KeeperGone, "the process that kept the session in memory has ended").WithCause(err)
}

// call is a connection on which a request was made.
type call struct {
	conn *net.UnixConn
	in   *bufio.Reader
	stop func() bool // detaches the connection from the context
}

// ask makes a request. ctx bounds the call until its stop is called.
func ask(ctx context.Context, dir string, req request) (*call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	req.Protocol = protocol
	c := &call{}
	err := through(dir, socketName, func(path string) (err error) {
		c.conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, goneProblem(err)
	}
	c.stop = context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	c.in = bufio.NewReaderSize(c.conn, lineLimit)
	if _, err = peer(c.conn); err == nil {
		err = writeLine(c.conn, req)
	}
	if err != nil {
		c.close()
		return nil, c.explain(ctx, err)
	}
	return c, nil
}

func (c *call) close() {
	c.stop()
	_ = c.conn.Close()
}

// explain makes a problem of a connection's failure.
func (c *call) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, ok := errors.AsType[*problem.Error](err); ok {
		return err
	}
	return goneProblem(err)
}

// answer reads an answer. After an error the call is closed.
func (c *call) answer(ctx context.Context) (answer, error) {
	var a answer
	err := readLine(c.in, &a)
	if err != nil {
		err = c.explain(ctx, err)
	} else {
		err = a.Fault.err()
	}
	if err != nil {
		c.close()
	}
	return a, err
}

// Flush has the keeper in dir save its session and go on.
func Flush(ctx context.Context, dir string) error {
	c, err := ask(ctx, dir, request{Op: opFlush})
	if err != nil {
		return err
	}
	if _, err = c.answer(ctx); err == nil {
		c.close()
	}
	return err
}

// Pause has the keeper in dir save its session, and waits until the keeper has ended.
func Pause(ctx context.Context, dir string) error {
	c, err := ask(ctx, dir, request{Op: opPause})
	if err != nil {
		return err
	}
	return c.awaitEnd(ctx)
}

// awaitEnd waits for the answer to a last request, and then for the keeper's end.
func (c *call) awaitEnd(ctx context.Context) error {
	if _, err := c.answer(ctx); err != nil {
		return err
	}
	defer c.close()
	_, _ = c.in.ReadByte()
	return ctx.Err()
}

// Stop ends the keeper in dir and its sandbox, without saving. One that does not answer is killed.
func Stop(ctx context.Context, dir string) error {
	c, err := ask(ctx, dir, request{Op: opStop})
	if err != nil {
		if Gone(err) && Lives(dir) {
			return fmt.Errorf("stop the process that keeps the session in memory: %w", err)
		}
		return ignoreGone(err)
	}
	pid, err := peer(c.conn)
	if err != nil {
		c.close()
		return err
	}
	// While the connection lasts, the keeper's process does: no other process has its id.
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		c.close()
		return fmt.Errorf("stop the process that keeps the session in memory: %w", err)
	}
	defer func() { _ = unix.Close(pidfd) }()
	kill := time.AfterFunc(patience, func() { _ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0) })
	defer kill.Stop()
	return ignoreGone(c.awaitEnd(ctx))
}

func ignoreGone(err error) error {
	if Gone(err) {
		return nil
	}
	return err
}

// Remote is a sandbox that a keeper keeps.
type Remote struct {
	dir   string
	about about
	watch *call
	done  chan struct{}
	cause error
}

var (
	_ sandbox.Checkpointer = (*Remote)(nil)
	_ sandbox.Shower       = (*Remote)(nil)
)

// Connect returns the sandbox of the keeper in dir, for as long as it is watched: see Release. Without a keeper the error is one for which Gone is true; a
// keeper of another version of cove is a problem with code "keeper_version".
func Connect(ctx context.Context, dir string) (*Remote, error) {
	c, err := ask(ctx, dir, request{Op: opWatch})
	if err != nil {
		return nil, err
	}
	a, err := c.answer(ctx)
	if err != nil {
		return nil, err
	}
	if !c.stop() {
		c.close()
		return nil, ctx.Err()
	}
	if a.Sandbox == nil {
		c.close()
		return nil, problem.New(problem.KeeperVersion, "the session is kept in memory by another version of cove")
	}
	r := &Remote{dir: dir, about: *a.Sandbox, watch: c, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		_, r.cause = c.answer(context.Background())
	}()
	return r, nil
}

// Release ends the watching.
func (r *Remote) Release() {
	r.watch.close()
	<-r.done
}

// Identity returns the keeper's Options.Identity.
func (r *Remote) Identity() string { return r.about.Identity }

// ID returns the sandbox's id.
func (r *Remote) ID() string { return r.about.ID }

// Layout returns the sandbox's layout.
func (r *Remote) Layout() sandbox.Layout {
	return sandbox.NewLayout(r.about.Workspace, r.about.Tmp, nil)
}

// Done is closed when the sandbox or its keeper has ended, or after Release.
func (r *Remote) Done() <-chan struct{} { return r.done }

// Cause says why the sandbox ended. When its keeper has ended, that is a problem for which Gone is true.
func (r *Remote) Cause() error { return r.cause }

// stream is a connection to the guest; bytes that were read ahead come first.
type stream struct {
	*net.UnixConn
	in *bufio.Reader
}

func (s *stream) Read(p []byte) (int, error) { return s.in.Read(p) }

// Dial returns the guest's next connection.
func (r *Remote) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	c, err := ask(ctx, r.dir, request{Op: opUse})
	if err != nil {
		return nil, err
	}
	if _, err := c.answer(ctx); err != nil {
		return nil, err
	}
	if !c.stop() {
		_ = c.conn.Close()
		return nil, ctx.Err()
	}
	return &stream{UnixConn: c.conn, in: c.in}, nil
}

// Checkpoint saves the sandbox.
func (r *Remote) Checkpoint(ctx context.Context, folder string, keep bool) (sandbox.Checkpoint, error) {
	c, err := ask(ctx, r.dir, request{Op: opCheckpoint, Dir: folder, Keep: keep})
	if err != nil {
		return sandbox.Checkpoint{}, err
	}
	a, err := c.answer(ctx)
	if err != nil {
		return sandbox.Checkpoint{}, err
	}
	c.close()
	if a.Checkpoint != "" {
		return sandbox.CheckpointNamed(a.Checkpoint, a.Size), nil
	}
	return sandbox.CheckpointIn(folder), nil
}

// Show implements sandbox.Shower.
func (r *Remote) Show(ctx context.Context, name string) error {
	c, err := ask(ctx, r.dir, request{Op: opShow, Name: name})
	if err != nil {
		return err
	}
	if _, err = c.answer(ctx); err == nil {
		c.close()
	}
	return err
}

// Stop ends the sandbox and its keeper, without saving.
func (r *Remote) Stop(ctx context.Context) error {
	err := Stop(ctx, r.dir)
	if err == nil {
		r.Release()
	}
	return err
}
