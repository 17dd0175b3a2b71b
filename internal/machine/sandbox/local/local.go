// Package local is the engine without isolation: the guest is a child process
// of this user's and code can do whatever the user can. It exists for development and
// for machines where nothing else works, is never chosen by itself, and says what it is.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/guest/program"
	"cove/internal/machine/sandbox"
)

// Options configure an Engine.
type Options struct {
	// State is the folder for running sandboxes: workspaces and scratch space.
	State string
	// Guests is the folder that keeps the guest (see guest/program); "" means one in State.
	Guests string
}

// Engine starts guests as child processes. It is safe for concurrent use.
type Engine struct{ opts Options }

var _ sandbox.Engine = (*Engine)(nil)

// New returns an engine; nothing is touched until it is used.
func New(o Options) *Engine { return &Engine{opts: o} }

// Name returns "local".
func (e *Engine) Name() string { return "local" }

// Isolates implements sandbox.Engine.
func (e *Engine) Isolates() bool { return false }

// Check always succeeds: there is nothing that this engine needs.
func (e *Engine) Check(context.Context) error { return nil }

// Start starts a guest in a folder of its own. Of the limits, only those on processes' time and output hold here.
func (e *Engine) Start(_ context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec.Limits = spec.Limits.OrDefault()
	if spec.Root != "" {
		return nil, problem.New(problem.ImageUnfit, "the engine local has no file system of its own, so nothing in it can begin from an image").WithHint("use --engine gvisor or docker")
	}
	if spec.Layer != "" {
		return nil, problem.New(problem.SystemPackagesUnsupported, "the engine local has no file system of its own, so nothing in it has system packages but this machine's").WithHint("use --engine gvisor or docker")
	}
	mounts, err := sandbox.PlainMounts(e, spec, "the engine local has no root: what runs in it runs on this machine itself")
	if err != nil {
		return nil, err
	}
	s := &running{done: make(chan struct{})}
	if err := s.create(e.opts.State, spec.ID); err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", spec.ID, err)
	}
	s.layout = sandbox.NewLayout(s.folder.Join("workspace"), s.folder.Join("tmp"), folders(mounts))
	guest, err := program.Install(cmp.Or(e.opts.Guests, filepath.Join(e.opts.State, ".guests")))
	if err == nil {
		err = s.start(guest)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start sandbox %s: %w", spec.ID, err), s.discard())
	}
	return s, nil
}

func folders(mounts []sandbox.HostMount) map[string]string {
	m := map[string]string{}
	for _, mount := range mounts {
		m[mount.Target] = mount.Folder
	}
	return m
}

// Sweep removes the folders of sandboxes whose owner is gone; their guests ended by themselves when it went.
func (e *Engine) Sweep(context.Context) (int, error) {
	dead, err := sandbox.DeadFolders(e.opts.State)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	var errs []error
	for _, f := range dead {
		errs = append(errs, f.Remove())
	}
	return len(dead), errors.Join(errs...)
}

// running is one guest as processes of this machine.
type running struct {
	folder *sandbox.Folder
	layout sandbox.Layout
	cmd    *exec.Cmd
	guest  net.Conn

	dialed   atomic.Bool
	stopping atomic.Bool
	done     chan struct{}
	cause    error // set before done is closed
	stopOnce sync.Once
	stopErr  error
}

func (s *running) ID() string             { return s.folder.ID }
func (s *running) Layout() sandbox.Layout { return s.layout }
func (s *running) Done() <-chan struct{}  { return s.done }
func (s *running) Cause() error           { return s.cause }

func (s *running) Dial(context.Context) (io.ReadWriteCloser, error) {
	if s.dialed.Swap(true) {
		return nil, errors.New("the guest's connection was handed over already")
	}
	return s.guest, nil
}

func (s *running) create(state, id string) error {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	var err error
	if s.folder, err = sandbox.CreateFolder(state, id); err != nil {
		return err
	}
	for _, d := range []string{"workspace", "tmp", "run"} {
		if err := os.Mkdir(s.folder.Join(d), 0o700); err != nil {
			return errors.Join(err, s.folder.Remove())
		}
	}
	return nil
}

func (s *running) start(guest string) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "guest"), os.NewFile(uintptr(fds[1]), "host")
	defer func() { _, _ = ours.Close(), theirs.Close() }()
	if s.guest, err = net.FileConn(ours); err != nil {
		return err
	}
	const inherited = 3
	s.cmd = exec.Command(guest)
	s.cmd.Args = []string{"cove-guest", "--fd=" + strconv.Itoa(inherited), "--workspace=" + s.layout.Workspace, "--run=" + s.folder.Join("run")}
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	s.cmd.Dir = s.folder.Path
	s.cmd.ExtraFiles = []*os.File{theirs}
	s.cmd.Stderr = os.Stderr
	// No parent-death signal: the guest sees its connection close and then ends all that it started, which a signal would prevent.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	go func() {
		err := s.cmd.Wait()
		if !s.stopping.Load() {
			s.cause = problem.New(problem.SandboxDied, "the guest process ended unexpectedly").WithCause(err)
		}
		close(s.done)
	}()
	return nil
}

func (s *running) Stop(context.Context) error {
	s.stopOnce.Do(func() { s.stopErr = s.discard() })
	return s.stopErr
}

// discard closes the connection, which has the guest end everything it started, and kills it when it does not.
func (s *running) discard() error {
	s.stopping.Store(true)
	if s.guest != nil {
		_ = s.guest.Close()
	}
	if s.cmd != nil && s.cmd.Process != nil {
		select {
		case <-s.done:
		case <-time.After(5 * time.Second):
			_ = s.cmd.Process.Kill()
			<-s.done
		}
	}
	return s.folder.Remove()
}
