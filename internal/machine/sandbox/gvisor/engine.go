// Package gvisor is the engine that isolates code with gVisor. The runtime is
// compiled in: the engine starts this same binary as runsc, as root directly
// and as an ordinary user inside a user namespace of its own.
//
// One sandbox is a sentry and a gofer with everything they need in one directory
// (see instance). A helper process creates, restores, saves and ends them (see
// warden). Sandboxes outlive it and die with cove (see lifelineName), so a killed
// owner leaves at most files and cgroups, which Sweep removes.
package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/guest/program"
	"cove/internal/machine/image"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sharedmem"
)

// Where things are inside a sandbox.
const (
	Workspace   = "/home/user"
	sharedDir   = "/opt/cove/shared"
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
	// Executable is the static cove binary that serves as runsc; "" means the running one.
	Executable string
	// Shared is the folder with what every sandbox sees: guests (see guest/program) and memory that sandboxes have in common (see package sharedmem), those of saved sandboxes too;
	// "" means one in State.
	Shared string
	// Sealing says how checkpoints are sealed, when the first one is saved or loaded; nil: they are not.
	Sealing func() (Sealing, error)
	// Debug is a folder for runsc's debug logs; "" means none.
	Debug string
}

// Engine starts gVisor sandboxes. It is safe for concurrent use.
type Engine struct {
	opts Options

	once    sync.Once
	exe     string
	cgroups hierarchy
	// withheld says why sandboxes do not have users of their own; "" means that they have.
	withheld string
	err      error

	// starting holds a token for each sandbox that is being booted or restored.
	starting chan struct{}

	mu     sync.Mutex
	warden *remote // creates sandboxes
	most   int     // sandboxes that one creates; 0: mostCreated
	next   *remote // is to take its place
	hiring bool    // the next is being started
	former *remote // had its place
}

var (
	_ sandbox.Saver     = (*Engine)(nil)
	_ sandbox.UserGiver = (*Engine)(nil)

	_ sandbox.VolumeKeeper = (*Engine)(nil)
)

// New returns an engine; nothing is touched until it is used.
func New(o Options) *Engine {
	return &Engine{opts: o, starting: make(chan struct{}, 1+runtime.NumCPU())}
}

// acquireStart waits until few enough sandboxes are being started. It is work for the processor and nothing else: more at once would all end
// late instead of one after the other.
func (e *Engine) acquireStart(ctx context.Context) (done func(), err error) {
	select {
	case e.starting <- struct{}{}:
		return func() { <-e.starting }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Name returns "gvisor".
func (e *Engine) Name() string { return "gvisor" }

// Isolates implements sandbox.Engine.
func (e *Engine) Isolates() bool { return true }

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
		if e.err = checkFiles(); e.err != nil {
			return
		}
		if e.err = os.MkdirAll(e.opts.State, 0o711); e.err != nil {
			e.err = problem.New(problem.StateFolder, "cannot create the folder for running sandboxes "+e.opts.State).
				WithHint("set COVE_HOME to a folder that you can write to").WithCause(e.err)
			return
		}
		e.cgroups = findCgroups()
		if e.withheld = usersWithheld(e.exe); e.withheld == "" {
			e.err = os.Chmod(e.opts.State, 0o711) //nolint:gosec // the users of sandboxes pass through it, whatever the umask
		}
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
		if err := checkMount(e.opts.State); err != nil {
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
	if s.(*running).cgroup != nil {
		by = e.cgroups.name()
	}
	return by, s.Stop(ctx)
}

// Start starts a sandbox and returns when its guest has connected.
func (e *Engine) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	s, err := e.boot(ctx, spec)
	if err != nil {
		return nil, outOfFiles(err)
	}
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", spec.ID, errors.Join(outOfFiles(err), s.Stop(ctx)))
	}
	return s, nil
}

// Prepare boots a sandbox that waits for a checkpoint.
func (e *Engine) Prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Prepared, error) {
	s, err := e.boot(ctx, spec)
	if err != nil {
		return nil, outOfFiles(err)
	}
	return s, nil
}

// boot starts the processes of a sandbox, in which nothing runs yet.
func (e *Engine) boot(ctx context.Context, spec sandbox.Spec) (*running, error) {
	if err := e.prepare(); err != nil {
		return nil, err
	}
	spec.Limits = spec.Limits.OrDefault()
	if err := e.mayHave(spec.Volumes, spec.Limits); err != nil {
		return nil, err
	}
	letGo, err := image.Hold(spec)
	if err != nil {
		return nil, err
	}
	in, err := createInstance(e.state(), spec.ID)
	if err != nil {
		letGo()
		return nil, fmt.Errorf("start sandbox %s: %w", spec.ID, err)
	}
	s := &running{engine: e, instance: in, spec: spec, letGo: letGo, done: make(chan struct{})}
	if s.warden, err = e.hireWarden(); err != nil {
		letGo()
		return nil, fmt.Errorf("start sandbox %s: %w", spec.ID, errors.Join(err, in.Remove()))
	}
	if err := e.build(ctx, s); err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", spec.ID, errors.Join(err, s.Stop(ctx)))
	}
	return s, nil
}

// guest returns the file of the guest for a sandbox: the one that a checkpoint was saved with, or else our own.
func (e *Engine) guest(from sandbox.Checkpoint) (string, error) {
	if from == (sandbox.Checkpoint{}) {
		return program.Install(e.shared())
	}
	image, err := sandbox.HostFolderOf(from)
	if err != nil {
		return "", err
	}
	if own, err := program.Install(e.shared()); err != nil {
		return own, err // the image may name it, and its folder be new
	}
	path, err := program.Noted(image, e.shared())
	if err != nil {
		return "", problem.New(problem.GuestMissing, "the guest that the sandbox was saved with is not known or not there").WithCause(err)
	}
	return path, nil
}

// state is the folder for running sandboxes without symbolic links: the warden follows them, and processes are found by what their command lines name.
func (e *Engine) state() string {
	if path, err := filepath.EvalSymlinks(e.opts.State); err == nil {
		return path
	}
	return e.opts.State // it is not there yet
}

func (e *Engine) shared() string {
	if e.opts.Shared != "" {
		return e.opts.Shared
	}
	return filepath.Join(e.opts.State, ".shared")
}

func (e *Engine) build(ctx context.Context, s *running) (err error) {
	done, err := e.acquireStart(ctx)
	if err != nil {
		return err
	}
	defer done()
	if s.listener, err = s.instance.listen(); err != nil {
		return err
	}
	if s.lifeline, err = holdLifeline(s.instance); err != nil {
		return err
	}
	if e.cgroups != nil {
		unlock := e.limit(s)
		defer unlock()
	}
	if s.guest, err = e.guest(s.spec.Checkpoint); err != nil {
		return err
	}
	if err := writeBundle(s.instance, s.spec, s.guest); err != nil {
		return err
	}
	if e.withheld == "" {
		if s.user, err = s.instance.assignUser(); err != nil {
			return err
		}
		if err := s.instance.handOver(s.user); err != nil {
			return fmt.Errorf("give the sandbox's user what is its: %w", err)
		}
	}
	return s.create(ctx)
}

// limit makes the group of a sandbox, unless root may not make any here, as in many containers: then the watchdog takes its place. No empty group is removed
// before unlock is called.
func (e *Engine) limit(s *running) (unlock func()) {
	unlock, ok := lockParent(e.cgroups.top(), unix.LOCK_SH)
	if !ok {
		unlock = func() {}
	}
	g, err := e.cgroups.create(s.ID(), s.spec.Limits)
	if err == nil {
		s.cgroup = g
		return unlock
	}
	unlock() // the parent goes only while nobody holds it
	e.cgroups.open(s.ID()).remove()
	return func() {}
}

// Warm starts, in the background, what the first sandbox will need, for a caller that has something else to do before. It fails
// silently: the first sandbox will say why.
func (e *Engine) Warm() {
	if e.prepare() == nil {
		go func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			_ = e.needWarden()
		}()
	}
}

// flags are runsc's. They are the whole of our gVisor policy: no network, no host files but the bundle's, exactly one
// socket directory to connect through.
func (e *Engine) flags() []string {
	flags := []string{
		"--network=none",
		// Without it, gVisor takes CAP_NET_RAW from the guest, too; see guestCapabilities.
		"--net-raw",
		// The warden lives in a network namespace of its own with nothing in it, which serves all its gofers.
		"--gofer-network-namespace=host",
		"--host-uds=open",
		"--overlay2=none",
		"--file-access=exclusive", "--file-access-mounts=exclusive",
		"--platform=systrap",
		"--allow-suid=false",
		"--host-settings=ignore",
		// The pinned release still boots the sentry from runsc itself; the default policy will not.
		"--sidecar-usage-policy=LEGACY_DEPRECATED_SLOW_EMBEDDED_FALLBACK",
		"--sidecar-release-enforcement-policy=NEVER",
		// Our own cgroups hold the sandboxes (see cgroup.adopt): runsc would have the whole warden join each.
		"--ignore-cgroups",
	}
	if e.opts.Debug != "" {
		flags = append(flags, "--debug", "--debug-log="+strings.TrimSuffix(e.opts.Debug, "/")+"/")
	}
	return flags
}

// Sweep removes the sandboxes whose owner is gone.
func (e *Engine) Sweep(context.Context) (int, error) {
	state := e.state()
	killOrphans(state)
	sweepRoots(state)
	sweepGroups()
	if sealing, err := e.sealing(); err == nil && sealing.Sealer != nil {
		sweepStates(sealing.Memory)
	}
	sharedmem.Sweep(e.shared(), sharedmem.Grace)
	dead, err := sandbox.DeadFolders(state)
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
