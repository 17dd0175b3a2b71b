// Package docker is the engine that runs sandboxes as containers of a Docker daemon of this machine, or of what speaks its API. Only this package knows that API.
//
// What a container isolates is its runtime's doing, which the daemon decides about: with runsc, gVisor is between code and the host's kernel; with runc and crun, code shares that
// kernel. The guest is a container's first process and connects to a socket of the host that is mounted there; files, processes, ports and the network go through it,
// as in every engine.
//
// Containers cannot be saved: this engine is no sandbox.Saver, so sessions are not paused to the disk, forked or undone.
//
// The API: https://docs.docker.com/reference/api/engine/version/v1.41/.
package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/moby/moby/client"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
)

// Options configure an Engine.
type Options struct {
	// State is the folder for running sandboxes: sockets, and what says that the owner lives.
	State string
	// Shared is the folder that keeps the guest (see guest/program); "" means one in State.
	Shared string
	// Host is the daemon's address, such as unix:///run/user/1000/docker.sock; "" means the one that Docker's own command would use, or the first that is found.
	Host string
	// Runtime is the daemon's runtime to use; "" means runsc where the daemon has it, else the daemon's default.
	Runtime string
}

// Engine runs containers. It is safe for concurrent use.
type Engine struct {
	opts Options

	mu     sync.Mutex
	daemon *daemon // nil until it was reached
}

var (
	_ sandbox.Engine    = (*Engine)(nil)
	_ sandbox.Limiter   = (*Engine)(nil)
	_ sandbox.Warmer    = (*Engine)(nil)
	_ sandbox.Describer = (*Engine)(nil)
)

// Labels of containers.
const (
	labelState   = "cove.state"   // the folder of the engine that made it
	labelSandbox = "cove.sandbox" // the sandbox's id
)

// hostName is the file in a sandbox's folder that says which daemon has its container.
const hostName = "daemon"

// New returns an engine; nothing is touched until it is used.
func New(o Options) *Engine { return &Engine{opts: o} }

// Name returns "docker".
func (e *Engine) Name() string { return "docker" }

// Isolates implements sandbox.Engine: a container's code can do less than who may start containers, whatever the runtime.
func (e *Engine) Isolates() bool { return true }

// Describe implements sandbox.Describer.
func (e *Engine) Describe(ctx context.Context) (string, []string, error) {
	d, err := e.reach(ctx)
	if err != nil {
		return "", nil, err
	}
	return d.describe(), d.warnings(), nil
}

// Check starts the smallest possible container and removes it again.
func (e *Engine) Check(ctx context.Context) error {
	s, err := e.Start(ctx, sandbox.Spec{ID: sandbox.NewID("check")})
	if err != nil {
		return err
	}
	return s.Stop(ctx)
}

// LimitsEnforcedBy implements sandbox.Limiter.
func (e *Engine) LimitsEnforcedBy(ctx context.Context) (string, error) {
	d, err := e.reach(ctx)
	if err != nil {
		return "", err
	}
	return d.limitsBy()
}

// Warm connects to the daemon and makes the image, in the background. It fails silently: the first sandbox will say why.
func (e *Engine) Warm() {
	go func() { _, _ = e.reach(context.Background()) }()
}

// reach returns the daemon, with the image there. An error is not remembered: a daemon that is started later is found.
func (e *Engine) reach(ctx context.Context) (*daemon, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.daemon != nil {
		return e.daemon, nil
	}
	if err := os.MkdirAll(e.opts.State, 0o711); err != nil {
		return nil, problem.New(problem.StateFolder, "cannot create the folder for running sandboxes "+e.opts.State).
			WithHint("set COVE_HOME to a folder that you can write to").WithCause(err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	d, err := connect(ctx, e.opts)
	if err != nil {
		return nil, err
	}
	if err := d.makeImage(ctx, usualGround()); err != nil {
		return nil, errors.Join(d.explain("make the empty image", err), d.api.Close())
	}
	if err := d.removeStrays(ctx, e.state()); err != nil {
		return nil, errors.Join(d.explain("look for containers that were left behind", err), d.api.Close())
	}
	e.daemon = d
	return d, nil
}

// state is the folder for running sandboxes without symbolic links, as labels have it.
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
	return filepath.Join(e.state(), ".shared")
}

// Start starts a container and returns when its guest has connected.
func (e *Engine) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec.Limits = spec.Limits.OrDefault()
	mounts, err := sandbox.PlainMounts(e, spec, "the engine docker has no root: a container's system cannot be changed")
	if err != nil {
		return nil, err
	}
	d, err := e.reach(ctx)
	if err != nil {
		return nil, err
	}
	s := &running{daemon: d, spec: spec, done: make(chan struct{})}
	if err := s.start(ctx, e.state(), e.shared(), mounts); err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", spec.ID, errors.Join(err, s.Stop(context.WithoutCancel(ctx))))
	}
	return s, nil
}

// Sweep removes the containers whose owner is gone. Where there are none, no daemon is asked; what a daemon has that does not answer now stays for another time.
func (e *Engine) Sweep(ctx context.Context) (int, error) {
	dead, err := sandbox.DeadFolders(e.state())
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	var errs []error
	removed := 0
	daemons := map[string]*client.Client{}
	for _, f := range dead {
		gone, err := removeOf(ctx, daemons, f)
		errs = append(errs, err)
		if gone {
			removed++
		}
	}
	for _, api := range daemons {
		if api != nil {
			errs = append(errs, api.Close())
		}
	}
	return removed, errors.Join(errs...)
}

// removeOf removes the container of a dead sandbox, and its folder with it. It returns false when its daemon does not answer.
func removeOf(ctx context.Context, daemons map[string]*client.Client, f *sandbox.Folder) (gone bool, err error) {
	text, err := os.ReadFile(f.Join(hostName))
	if errors.Is(err, fs.ErrNotExist) {
		return true, f.Remove() // it never had a container
	}
	if err != nil {
		return false, err
	}
	host := strings.TrimSpace(string(text))
	api, known := daemons[host]
	if !known {
		api, _ = dial(ctx, host) // nil: it does not answer
		daemons[host] = api
	}
	if api == nil {
		return false, nil
	}
	if err := remove(ctx, api, containerName(f.ID)); err != nil {
		return false, nil //nolint:nilerr // the next sweep tries again
	}
	return true, f.Remove()
}
