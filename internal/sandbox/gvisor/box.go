package gvisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cove/internal/problem"
	"cove/internal/sandbox"
)

// startTimeout bounds the time from runsc's start to the guest's connection. Loaded machines take seconds.
const startTimeout = 60 * time.Second

// box is one running gVisor sandbox.
type box struct {
	instance *instance
	spec     sandbox.Spec
	cgroup   cgroup

	cmd    *exec.Cmd
	stderr tail
	guest  net.Conn
	dialed atomic.Bool

	stopping atomic.Bool
	overuse  atomic.Bool // the memory watchdog killed it
	done     chan struct{}
	cause    error // set before done is closed
	stopOnce sync.Once
	stopErr  error
}

var _ sandbox.Sandbox = (*box)(nil)

func (s *box) ID() string { return s.instance.ID }

func (s *box) Layout() sandbox.Layout { return sandbox.NewLayout(Workspace, tmpPath, nil) }

func (s *box) Done() <-chan struct{} { return s.done }

func (s *box) Cause() error { return s.cause }

// Dial hands over the guest's connection, once.
func (s *box) Dial(context.Context) (io.ReadWriteCloser, error) {
	if s.dialed.Swap(true) {
		return nil, errors.New("the guest's connection was handed over already")
	}
	return s.guest, nil
}

// start starts runsc and a goroutine that waits for its end. The goroutine keeps its OS thread for as long as the
// process lives, because the kernel kills the process when the thread that started it ends.
func (s *box) start(cmd *exec.Cmd) error {
	s.cmd = cmd
	cmd.Stderr = &s.stderr
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := cmd.Start(); err != nil {
			s.cause = err
			close(s.done)
			started <- err
			return
		}
		started <- nil
		_ = cmd.Wait()
		s.cause = s.autopsy()
		close(s.done)
	}()
	if err := <-started; err != nil {
		return startProblem(err)
	}
	if s.cgroup == nil {
		go s.watchMemory()
	}
	return nil
}

func (s *box) awaitGuest(ctx context.Context, l *net.UnixListener) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	type accepted struct {
		conn net.Conn
		err  error
	}
	got := make(chan accepted, 1)
	go func() {
		conn, err := l.Accept()
		got <- accepted{conn, err}
	}()
	select {
	case a := <-got:
		if a.err != nil {
			return fmt.Errorf("accept the guest: %w", a.err)
		}
		s.guest = a.conn
		return nil
	case <-s.done:
		return s.cause
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return problem.New(problem.Timeout, "sandbox_start_timeout", "the sandbox did not start within "+startTimeout.String()).
				WithHint("run `cove doctor`; on a busy machine try again")
		}
		return ctx.Err()
	}
}

// autopsy says why the sandbox ended, from what the host saw.
func (s *box) autopsy() error {
	switch {
	case s.stopping.Load():
		return nil
	case s.overuse.Load(), s.cgroup != nil && s.cgroup.oomKills() > 0:
		return problem.New(problem.Exhausted, "session_oom",
			fmt.Sprintf("the sandbox used more than its memory limit of %d MiB and was ended", s.spec.Limits.Memory>>20)).
			WithHint("process the data in smaller pieces or raise the limit with --memory")
	}
	detail := s.stderr.String()
	for _, name := range []string{"runsc.log", "panic.log"} {
		if b, err := os.ReadFile(s.instance.Join(name)); err == nil && len(b) > 0 {
			detail += "\n" + string(b[:min(len(b), 4<<10)])
		}
	}
	p := problem.New(problem.Unavailable, "sandbox_died", "the sandbox ended unexpectedly").WithHint("run `cove doctor`")
	if detail = strings.TrimSpace(detail); detail != "" {
		p = p.WithCause(errors.New(detail))
	}
	return p
}

// Stop kills the sandbox and removes what it leaves on the host.
func (s *box) Stop(context.Context) error {
	s.stopOnce.Do(func() { s.stopErr = s.discard() })
	return s.stopErr
}

func (s *box) discard() error {
	s.stopping.Store(true)
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Kill()
		<-s.done
	}
	if s.guest != nil {
		_ = s.guest.Close()
	}
	if s.cgroup != nil {
		s.cgroup.remove()
	}
	killAll(s.instance)
	return s.instance.Remove()
}

// watchMemory stands in for a memory cgroup: it kills a sandbox that holds more than its limit.
func (s *box) watchMemory() {
	limit := s.spec.Limits.Memory + sentryMemory
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var sentry int
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		if sentry == 0 {
			sentry = findSentry(s.cmd.Process.Pid)
			continue
		}
		if residentMemory(sentry) > limit {
			s.overuse.Store(true)
			_ = s.cmd.Process.Kill()
			return
		}
	}
}

// tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const size = 4 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if len(t.buf) > size {
		t.buf = bytes.Clone(t.buf[len(t.buf)-size:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
