package keeper

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
)

// Options are what a Server serves.
type Options struct {
	Sandbox sandbox.Checkpointer
	// Identity is what has to be the same in a client for it to use the sandbox; clients compare it with their own.
	Identity string
	// Flush saves the session and goes on.
	Flush func(ctx context.Context) error
	// Pause saves the session; when it succeeds, Sandbox has ended and Close is called soon.
	Pause func(ctx context.Context) error
	// Stop ends Sandbox without saving; Close is called soon.
	Stop func(ctx context.Context) error
}

// Server serves a sandbox.
type Server struct {
	place *Place
	opts  Options
	// busy is held while the sandbox's connection is used, or the sandbox is saved.
	busy   chan struct{}
	moved  chan struct{}
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // true: Close may cut it short
	users int
	used  time.Time
}

// Serve begins to serve. The place is left by Close.
func Serve(p *Place, o Options) *Server {
	s := &Server{place: p, opts: o, busy: make(chan struct{}, 1), moved: make(chan struct{}, 1), conns: map[net.Conn]bool{}, used: time.Now()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.all.Go(func() {
		for {
			conn, err := p.listener.AcceptUnix()
			if err != nil {
				if errors.Is(err, net.ErrClosed) {
					return
				}
				time.Sleep(patience / 100) // perhaps because there are no file descriptors left
				continue
			}
			s.all.Go(func() { s.serve(conn) })
		}
	})
	return s
}

// Moved receives a value after a use has begun or ended.
func (s *Server) Moved() <-chan struct{} { return s.moved }

// Used says when the last use ended, and whether one is under way.
func (s *Server) Used() (last time.Time, now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.users > 0
}

// Close leaves the place and ends all connections.
func (s *Server) Close() error {
	err := s.place.Leave() // before clients that wait for the end get their answer
	s.cancel()
	s.mu.Lock()
	for conn, may := range s.conns {
		if may {
			_ = conn.Close()
		}
	}
	s.mu.Unlock()
	s.all.Wait()
	return err
}

// Exclude waits until the sandbox is not used and keeps it from being used until include is called.
func (s *Server) Exclude(ctx context.Context) (include func(), err error) {
	select {
	case s.busy <- struct{}{}:
		return func() { <-s.busy }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Server) enter(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.conns[conn] = true
	return true
}

func (s *Server) exit(conn net.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

func (s *Server) serve(conn *net.UnixConn) {
	defer s.exit(conn)
	if !s.enter(conn) {
		return
	}
	if _, err := peer(conn); err != nil {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	in := bufio.NewReaderSize(conn, lineLimit)
	var req request
	if err := readLine(in, &req); err != nil {
		_ = writeLine(conn, answer{Fault: faultOf(problem.New(problem.KeeperRequest, "the keeper does not understand the request"))})
		return
	}
	_ = conn.SetDeadline(time.Time{})
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	switch {
	case req.Op == opFlush:
		s.order(ctx, conn, s.opts.Flush)
	case req.Op == opPause:
		s.last(ctx, conn, s.opts.Pause)
	case req.Op == opStop:
		s.last(ctx, conn, s.opts.Stop)
	case req.Protocol != protocol:
		_ = writeLine(conn, answer{Fault: faultOf(problem.New(problem.KeeperVersion, "the session is kept in memory by another version of cove"))})
	case req.Op == opWatch:
		s.watch(conn)
	case req.Op == opUse:
		s.use(ctx, conn, in)
	case req.Op == opShow:
		_ = writeLine(conn, answer{Fault: faultOf(s.show(ctx, req.Name))})
	case req.Op == opCheckpoint:
		saved, err := s.checkpoint(ctx, req)
		name, size, _ := saved.Named()
		_ = writeLine(conn, answer{Fault: faultOf(err), Checkpoint: name, Size: size})
	default:
		_ = writeLine(conn, answer{Fault: faultOf(problem.New(problem.KeeperRequest, "there is no operation "+req.Op))})
	}
}

// order has something done and answers, even if Close is called meanwhile.
func (s *Server) order(ctx context.Context, conn net.Conn, do func(context.Context) error) (done bool) {
	s.mu.Lock()
	s.conns[conn] = false
	s.mu.Unlock()
	err := do(ctx)
	_ = conn.SetWriteDeadline(time.Now().Add(patience))
	return writeLine(conn, answer{Fault: faultOf(err)}) == nil && err == nil
}

// last is order for a request that ends in Close, and waits for Close.
func (s *Server) last(ctx context.Context, conn net.Conn, do func(context.Context) error) {
	if s.order(ctx, conn, do) {
		<-s.ctx.Done()
	}
}

func (s *Server) watch(conn net.Conn) {
	l := s.opts.Sandbox.Layout()
	is := about{ID: s.opts.Sandbox.ID(), Identity: s.opts.Identity, Workspace: l.Workspace, Tmp: l.Tmp}
	if writeLine(conn, answer{Sandbox: &is}) != nil {
		return
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, conn)
	}()
	select {
	case <-s.opts.Sandbox.Done():
		_ = writeLine(conn, answer{Fault: faultOf(s.opts.Sandbox.Cause())})
	case <-gone:
	case <-s.ctx.Done():
	}
}

// note counts the uses of the sandbox.
func (s *Server) note(change int) {
	s.mu.Lock()
	s.users += change
	s.used = time.Now()
	s.mu.Unlock()
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

func (s *Server) use(ctx context.Context, conn *net.UnixConn, in io.Reader) {
	// The client that used the sandbox before may not have disconnected yet.
	include, err := s.Exclude(ctx)
	if err != nil {
		return
	}
	defer include()
	s.note(1)
	defer s.note(-1)
	guest, err := s.dial(ctx)
	if err != nil {
		_ = writeLine(conn, answer{Fault: faultOf(err)})
		return
	}
	defer func() { _ = guest.Close() }()
	if writeLine(conn, answer{}) != nil {
		return
	}
	relay(conn, in, guest)
}

// dial returns the guest's next connection that is still open. A connection that waited while the sandbox was saved is severed, but still delivers what the
// guest had sent; a direct user notices that on answering, a user at the other end of the relay does not.
func (s *Server) dial(ctx context.Context) (io.ReadWriteCloser, error) {
	for {
		guest, err := s.opts.Sandbox.Dial(ctx)
		if err != nil || !severed(guest) {
			return guest, err
		}
		_ = guest.Close()
	}
}

// severed says whether the other side of a connection has closed it, even if there are bytes left to read.
func severed(conn io.ReadWriteCloser) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	over := false
	err = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} //nolint:gosec // file descriptors are small
		_, err := unix.Poll(poll, 0)
		over = err == nil && poll[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return over || err != nil
}

// relay passes bytes on until either side ends.
func relay(client *net.UnixConn, in io.Reader, guest io.ReadWriteCloser) {
	ended := make(chan struct{}, 2)
	go func() {
		_, _ = io.Copy(guest, in)
		ended <- struct{}{}
	}()
	go func() {
		_, _ = io.Copy(client, guest)
		ended <- struct{}{}
	}()
	<-ended
	_, _ = client.Close(), guest.Close()
	<-ended
}

func (s *Server) show(ctx context.Context, name string) error {
	if sb, ok := s.opts.Sandbox.(sandbox.Shower); ok {
		return sb.Show(ctx, name)
	}
	return nil
}

func (s *Server) checkpoint(ctx context.Context, req request) (sandbox.Checkpoint, error) {
	if !filepath.IsAbs(req.Dir) {
		return sandbox.Checkpoint{}, problem.New(problem.KeeperRequest, "the folder of a checkpoint must be absolute")
	}
	include, err := s.Exclude(ctx)
	if err != nil {
		return sandbox.Checkpoint{}, err
	}
	defer include()
	return s.opts.Sandbox.Checkpoint(ctx, req.Dir, req.Keep)
}
