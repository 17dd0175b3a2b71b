// Package gvisor is the engine that isolates code with gVisor. The runtime is
// compiled in: the engine starts this same binary as runsc, as root directly
// and as an ordinary user inside a user namespace of its own.
//
// One sandbox is one attached runsc process with everything it needs in one
// directory (see instance). Processes die with their parent by the kernel's
// doing, so a killed owner leaves at most files and cgroups, which Sweep removes.
package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"cove/internal/problem"
	"cove/internal/sandbox"
)

// Where things are inside a sandbox.
const (
	Workspace   = "/home/user"
	guestPath   = "/opt/cove/cove-guest"
	socketDir   = "/opt/cove/host"
	socketName  = "guest"
	tmpPath     = "/tmp"
	runPath     = "/run"
	sandboxUser = 1000
)

// Options configure an Engine.
type Options struct {
	// State is the folder for running sandboxes. It must not be on a network file system.
	State string
	// Executable is the static cove binary that serves as runsc and guest; "" means the running one.
	Executable string
	// Debug is a folder for runsc's debug logs; "" means none.
	Debug string
}

// Engine starts gVisor sandboxes. It is safe for concurrent use.
type Engine struct {
	opts Options

	once    sync.Once
	exe     string
	cgroups hierarchy
	err     error
}

var _ sandbox.Engine = (*Engine)(nil)

// New returns an engine; nothing is touched until it is used.
func New(o Options) *Engine { return &Engine{opts: o} }

// Name returns "gvisor".
func (e *Engine) Name() string { return "gvisor" }

func (e *Engine) prepare() error {
	e.once.Do(func() {
		e.exe = e.opts.Executable
		if e.exe == "" {
			e.exe, e.err = os.Executable()
			if e.err != nil {
				return
			}
		}
		if e.err = requireStatic(e.exe); e.err != nil {
			return
		}
		if e.err = os.MkdirAll(e.opts.State, 0o711); e.err != nil {
			e.err = problem.New(problem.Unavailable, "state_folder", "cannot create the folder for running sandboxes "+e.opts.State).
				WithHint("set COVE_HOME to a folder that you can write to").WithCause(e.err)
			return
		}
		e.cgroups = findCgroups()
	})
	return e.err
}

// Check starts the smallest possible sandbox and stops it again.
func (e *Engine) Check(ctx context.Context) error {
	if err := e.prepare(); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		if err := checkUserNamespaces(); err != nil {
			return err
		}
	}
	s, err := e.Start(ctx, sandbox.Spec{ID: sandbox.NewID("check")})
	if err != nil {
		return err
	}
	return s.Stop(ctx)
}

// LimitsEnforcedBy names what holds sandboxes to their memory and CPU limits here: "cgroup v1", "cgroup v2" or
// "watchdog" (where cove may not make cgroups: memory is watched by polling, CPUs are limited by affinity). It starts a sandbox to see.
func (e *Engine) LimitsEnforcedBy(ctx context.Context) (string, error) {
	s, err := e.Start(ctx, sandbox.Spec{ID: sandbox.NewID("check")})
	if err != nil {
		return "", err
	}
	by := "watchdog"
	if s.(*box).cgroup != nil {
		by = e.cgroups.name()
	}
	return by, s.Stop(ctx)
}

// Start starts a sandbox and returns when its guest has connected.
func (e *Engine) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if err := e.prepare(); err != nil {
		return nil, err
	}
	spec.Limits = spec.Limits.OrDefault()
	in, err := createInstance(e.opts.State, spec.ID)
	if err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", spec.ID, err)
	}
	s := &box{
		instance: in,
		spec:     spec,
		done:     make(chan struct{}),
	}
	if err := e.launch(ctx, s); err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", spec.ID, errors.Join(err, s.discard()))
	}
	return s, nil
}

func (e *Engine) launch(ctx context.Context, s *box) error {
	listener, err := s.instance.listen()
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	if e.cgroups != nil {
		if unlock, ok := lockParent(unix.LOCK_SH); ok {
			defer unlock()
		}
		if g, err := e.cgroups.create(s.ID(), s.spec.Limits); err == nil {
			s.cgroup = g
		} // else root may not make cgroups here, as in many containers, and the watchdog takes their place
	}
	if err := writeBundle(s.instance, s.spec, e.exe, s.cgroup); err != nil {
		return err
	}
	if err := s.start(e.command(s)); err != nil {
		return err
	}
	return s.awaitGuest(ctx, listener)
}

// command returns the runsc process of s. The flags are the whole of our gVisor policy: no network, no host
// files but the bundle's, exactly one socket directory to connect through.
func (e *Engine) command(s *box) *exec.Cmd {
	args := []string{
		"--root=" + s.instance.Join("runsc"),
		"--network=none", "--gofer-network-namespace=new",
		"--host-uds=open",
		"--overlay2=none",
		"--file-access=exclusive", "--file-access-mounts=exclusive",
		"--platform=systrap",
		"--allow-suid=false",
		"--host-settings=ignore",
		// The pinned release still boots the sentry from runsc itself; the default policy will not.
		"--sidecar-usage-policy=LEGACY_DEPRECATED_SLOW_EMBEDDED_FALLBACK",
		"--sidecar-release-enforcement-policy=NEVER",
		"--panic-log=" + s.instance.Join("panic.log"),
		"--log=" + s.instance.Join("runsc.log"),
	}
	if s.cgroup == nil {
		args = append(args, "--ignore-cgroups")
	}
	if e.opts.Debug != "" {
		args = append(args, "--debug", "--debug-log="+strings.TrimSuffix(e.opts.Debug, "/")+"/")
	}
	args = append(args, "run", "--bundle="+s.instance.Path, s.ID())
	cmd := exec.Command(e.exe)
	cmd.Args = append([]string{"runsc"}, args...)
	cmd.Dir = s.instance.Path
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", cpusVariable + "=" + cpuCount(s)}
	cmd.SysProcAttr = processAttributes()
	return cmd
}

// Sweep removes the sandboxes whose owner is gone.
func (e *Engine) Sweep(context.Context) (int, error) {
	dead, err := sandbox.DeadFolders(e.opts.State)
	if err == nil && len(dead) > 0 {
		err = e.prepare()
	}
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	var errs []error
	for _, f := range dead {
		killAll(&instance{f})
		if e.cgroups != nil {
			e.cgroups.open(f.ID).remove()
		}
		errs = append(errs, f.Remove())
	}
	return len(dead), errors.Join(errs...)
}
