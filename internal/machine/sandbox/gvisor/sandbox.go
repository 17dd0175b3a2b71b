package gvisor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/sentry/state/checkpointfiles"

	"cove/internal/core/problem"
	"cove/internal/machine/guest/program"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sharedmem"
)

// startTimeout bounds the time from runsc's start to the guest's connection. Loaded machines take seconds.
const startTimeout = 60 * time.Second

var errStartTimeout = errors.New("the sandbox did not start in time")

// running is one gVisor sandbox. It is made empty by Engine.Prepare; then either the bundle's guest is started in it or a
// checkpoint is loaded into it.
type running struct {
	engine   *Engine
	warden   *remote // the engine's mu guards it, and adopted
	adopted  bool    // another warden than the present one created it
	instance *instance
	lifeline *os.File // while it is open, the sandbox may live
	spec     sandbox.Spec
	letGo    func()                        // of its image
	guest    string                        // the host's file
	heaps    atomic.Pointer[sharedmem.Set] // what it has memory from, in common with other sandboxes; nil: nothing
	cgroup   *group                        // nil where cove may not make any
	listener *net.UnixListener
	user     int  // the host's user that its processes are; 0: the warden's
	asked    bool // the warden was asked to create it
	sentry   int  // process id
	gofer    int  // process id
	spent    odometer
	loaded   int64 // bytes of pages that it was restored from

	memoryFile memoryFile

	mu    sync.Mutex
	first net.Conn // the connection that ended the start, until Dial hands it over

	stopping atomic.Bool
	overuse  atomic.Bool           // the memory watchdog killed it
	full     atomic.Pointer[error] // why the watchdog of volumes killed it
	lending  atomic.Bool           // it waits at its memory limit
	waited   atomic.Int64          // how often it did
	fed      atomic.Int64          // when it last did no more, in nanoseconds since 1970
	done     chan struct{}
	cause    error // set before done is closed
	stopOnce sync.Once
	stopErr  error
}

var (
	_ sandbox.MemorySharer = (*running)(nil)
	_ sandbox.Prepared     = (*running)(nil)
	_ sandbox.Shower       = (*running)(nil)
	_ sandbox.Booter       = (*running)(nil)
	_ sandbox.Weigher      = (*running)(nil)
	_ sandbox.Meter        = (*running)(nil)
)

func (s *running) ID() string { return s.instance.ID }

func (s *running) Layout() sandbox.Layout { return sandbox.NewLayout(Workspace, tmpPath, nil) }

func (s *running) Done() <-chan struct{} { return s.done }

func (s *running) Cause() error { return s.cause }

// Dial returns the guest's connection: the one that it started with, and after that has ended its next one.
func (s *running) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	s.mu.Lock()
	conn := s.first
	s.first = nil
	s.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	return s.awaitGuest(ctx)
}

// create boots the sandbox's processes, empty, and limits them. Nothing of the user's runs before start or Restore.
func (s *running) create(ctx context.Context) error {
	var pids CreateReply
	owner, err := ownersOf(s.spec.Volumes)
	if err != nil {
		return err
	}
	volumes, err := countVolumes(s.spec.Volumes)
	if err != nil {
		return err
	}
	s.asked = true
	args := CreateArgs{ID: s.ID(), Dir: s.instance.Path, CPUs: s.cpus(), User: s.user, System: s.spec.Limits.System, Tmp: s.spec.Limits.Tmp, Root: cmp.Or(s.spec.Root, s.spec.Layer), Volumes: volumeArgs(s.spec.Volumes), Owner: owner}
	err = s.ask(ctx, "Create", args, &pids)
	if err != nil {
		return s.withLogs(err)
	}
	s.sentry, s.gofer = pids.Sentry, pids.Gofer
	exit, err := watchProcess(pids.Sentry)
	if err != nil {
		s.cause = fmt.Errorf("watch the sandbox: %w", err)
		close(s.done) // or Stop would wait for an end that nobody sees
		return s.cause
	}
	go func() {
		<-exit
		reap(pids.Sentry)
		s.cause = s.causeOfEnd()
		close(s.done)
	}()
	if len(volumes) > 0 {
		go s.watchVolumes(volumes)
	}
	if s.cgroup == nil {
		go s.watchMemory()
		return nil
	}
	if err := s.cgroup.adopt(pids.Sentry, pids.Gofer); err != nil {
		return err
	}
	if a, err := s.cgroup.threshold.alarm(); err == nil { // else the kernel kills what comes too far
		go s.holdMemory(s.cgroup, a)
	}
	return nil
}

// ask has the sandbox's warden do something: another one when it has just ended.
func (s *running) ask(ctx context.Context, method string, args, reply any) error {
	for {
		w, err := s.engine.wardenOf(s)
		if err != nil {
			return err
		}
		err = w.call(ctx, method, args, reply)
		if gone := (*wardenGone)(nil); !errors.As(err, &gone) || !gone.unsent {
			return err
		}
		w.close()
	}
}

// start starts the guest of the bundle.
func (s *running) start(ctx context.Context) error {
	if err := s.ask(ctx, "Start", s.ID(), &struct{}{}); err != nil {
		return s.withLogs(err)
	}
	return s.meetGuest(ctx)
}

// Restore loads a checkpoint and waits for its guest.
func (s *running) Restore(ctx context.Context, from sandbox.Checkpoint) (sandbox.Sandbox, error) {
	dir, err := sandbox.HostFolderOf(from)
	if err != nil {
		return nil, err
	}
	started, err := s.engine.acquireStart(ctx)
	if err != nil {
		return nil, err
	}
	defer started()
	if guest, err := program.Noted(dir, s.engine.shared()); err != nil || guest != s.guest {
		return nil, problem.New(problem.GuestDiffers, "the checkpoint needs another guest than the one that the sandbox was prepared with").WithCause(err)
	}
	if s.spec.Limits.System > 0 {
		if shared, _ := os.ReadDir(filepath.Join(dir, sharedmem.Folder)); len(shared) > 0 {
			return nil, problem.New(problem.SnapshotUnfit, "the checkpoint has memory in common with others, which a sandbox with a root cannot have")
		}
	}
	common, err := sharedmem.Of(dir, s.engine.shared())
	if err != nil {
		return nil, fmt.Errorf("restore sandbox %s: %w", s.ID(), err)
	}
	s.heaps.Store(&common)
	image, done, err := s.imageOf(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("restore sandbox %s: %w", s.ID(), err)
	}
	defer done()
	if info, err := os.Stat(filepath.Join(image, checkpointfiles.PagesFileName)); err == nil {
		s.loaded = info.Size()
	}
	if err := s.ask(ctx, "Restore", ImageArgs{ID: s.ID(), Image: image}, &struct{}{}); err != nil {
		if changed := s.volumeChanged(err); changed != nil {
			return nil, changed
		}
		return nil, fmt.Errorf("restore sandbox %s: %w", s.ID(), s.withLogs(err))
	}
	if err := s.meetGuest(ctx); err != nil {
		return nil, fmt.Errorf("restore sandbox %s: %w", s.ID(), err)
	}
	return s, nil
}

// Checkpoint saves the sandbox. It goes on whatever happens, until its files are whole: the sentry would end by itself after saving, also when that
// has failed, so it is always told to go on, and ended from here.
func (s *running) Checkpoint(ctx context.Context, dir string, keep bool) (sandbox.Checkpoint, error) {
	d, err := outline(dir, needsOf(s.sentry, s.instance, s.loaded))
	if err != nil {
		return sandbox.Checkpoint{}, fmt.Errorf("save sandbox %s: %w", s.ID(), err)
	}
	s.mu.Lock()
	if s.first != nil {
		_ = s.first.Close()
		s.first = nil
	}
	s.mu.Unlock()
	if err = errors.Join(program.Note(s.guest, dir), s.memory().Attach(dir)); err == nil {
		err = s.writeImage(ctx, dir, d)
	}
	if err == nil {
		err = d.finish()
	}
	if gone := (*wardenGone)(nil); errors.As(err, &gone) {
		killAll(s.instance) // nobody can know when the save that it is in the midst of is over, and it cannot be in two
	}
	if err != nil {
		return sandbox.Checkpoint{}, fmt.Errorf("save sandbox %s: %w", s.ID(), errors.Join(s.withLogs(asFull(err)), d.discard()))
	}
	if !keep {
		// What it leaves behind when this fails is swept later; the checkpoint is as good.
		_ = s.Stop(ctx)
	}
	return sandbox.CheckpointIn(dir), nil
}

// meetGuest waits for the guest's first connection, and has the sentry hear a moment later that the start is over.
func (s *running) meetGuest(ctx context.Context) error {
	conn, err := s.awaitGuest(ctx)
	if err == nil {
		s.mu.Lock()
		s.first = conn
		s.mu.Unlock()
		time.AfterFunc(startLasts, func() { _, _ = s.lifeline.Write([]byte{0}) }) // fails when the sandbox is gone by then
	}
	return err
}

// awaitGuest waits for the guest's next connection.
func (s *running) awaitGuest(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errStartTimeout)
	defer cancel()
	wait, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-s.done:
			stop()
		case <-wait.Done():
		}
	}()
	_ = s.listener.SetDeadline(time.Time{})
	hurried := make(chan struct{})
	unhurried := context.AfterFunc(wait, func() {
		defer close(hurried)
		_ = s.listener.SetDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !unhurried() {
			<-hurried // or it could cut the next wait short
		}
	}()
	conn, err := s.listener.Accept()
	switch {
	case err == nil:
		return conn, nil
	case ended(s.done) && s.cause != nil:
		return nil, s.cause
	case errors.Is(context.Cause(ctx), errStartTimeout): // the caller's own deadline is no fault of the engine
		return nil, problem.New(problem.SandboxStartTimeout, "the sandbox did not start within "+startTimeout.String()).
			WithHint("run `cove doctor`; on a busy machine try again")
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("accept the guest: %w", err)
}

// causeOfEnd says why the sandbox ended, from what the host saw.
func (s *running) causeOfEnd() error {
	switch {
	case s.stopping.Load():
		return nil
	case s.memory().Intact() != nil:
		return s.memory().Intact()
	case s.full.Load() != nil:
		return *s.full.Load()
	case s.overuse.Load(), s.waitedLately(), s.cgroup != nil && s.cgroup.oomKills() > 0:
		return problem.New(problem.SessionOOM,
			fmt.Sprintf("the sandbox used more than its memory limit of %d MiB and was ended", s.spec.Limits.Memory>>20)).
			WithHint("process the data in smaller pieces or raise the limit with --memory")
	}
	p := problem.New(problem.SandboxDied, "the sandbox ended unexpectedly").WithHint("run `cove doctor`")
	if logs := s.logs(); logs != "" {
		p = p.WithCause(errors.New(logs))
	}
	return p
}

// logs is what the sandbox's processes said about their failure.
func (s *running) logs() string {
	var all []string
	for _, name := range []string{"runsc.log", "panic.log"} {
		if b, err := os.ReadFile(s.instance.Join(name)); err == nil && len(b) > 0 {
			all = append(all, string(b[:min(len(b), 4<<10)]))
		}
	}
	return strings.TrimSpace(strings.Join(all, "\n"))
}

func (s *running) withLogs(err error) error {
	if logs := s.logs(); logs != "" {
		return fmt.Errorf("%w: %s", err, logs)
	}
	return err
}

// Stop kills the sandbox and removes what it leaves on the host.
func (s *running) Stop(context.Context) error {
	s.stopOnce.Do(func() {
		s.stopErr = s.discard()
		s.engine.dismissWarden(s)
	})
	return s.stopErr
}

func (s *running) discard() error {
	s.stopping.Store(true)
	var err error
	if s.asked {
		// Not bound to a caller's context: what is left undone here would be left behind.
		err = s.ask(context.Background(), "Destroy", s.ID(), &struct{}{})
	}
	if err != nil || s.adopted {
		killAll(s.instance)
	}
	if s.sentry != 0 {
		<-s.done
	}
	if s.first != nil {
		_ = s.first.Close()
	}
	if s.listener != nil {
		_ = s.listener.Close()
	}
	if s.lifeline != nil {
		_ = s.lifeline.Close()
	}
	if s.cgroup != nil {
		s.cgroup.remove()
	}
	s.letGo()
	return errors.Join(s.memory().Close(), s.instance.Remove())
}

// watchMemory stands in for a memory cgroup: it kills a sandbox that holds more than its limit.
func (s *running) watchMemory() {
	limit := s.spec.Limits.Memory + sentryMemory
	// The guest ends greedy code at a lower limit, and memory takes a moment to come back: while it falls there is patience, but not for ever.
	const rising, falling = 3, 20 // looks beyond the limit
	var over, risen int
	var before int64
	var since time.Time // the last look that counted
	var spent time.Duration
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		held := s.heldMemory()
		if held <= limit {
			over, risen, before = 0, 0, held
			continue
		}
		// On a busy machine the guest gets as little done as the code does: what counts is the time that they had.
		used, _ := s.CPU()
		if used-spent < watchInterval && time.Since(since) < watchAtLeast && held < limit+reserveMemory {
			continue
		}
		since, spent = time.Now(), used
		over++
		if held >= before {
			risen++
		}
		before = held
		if risen == rising || over == falling {
			s.overuse.Store(true)
			_ = unix.Kill(s.sentry, unix.SIGKILL)
			return
		}
	}
}

// How often memory is watched, and how long a look beyond the limit waits for the sandbox to get processor time.
const (
	watchInterval = 100 * time.Millisecond
	watchAtLeast  = time.Second
)

// ShareMemory implements sandbox.MemorySharer.
func (s *running) ShareMemory(fill func(io.Writer) error) (path string, err error) {
	if s.spec.Limits.System > 0 {
		return "", errors.New("a sandbox with a root has no memory in common with others")
	}
	made, err := sharedmem.Add(s.engine.shared(), fill)
	if err != nil {
		return "", asFull(err)
	}
	all := s.memory().With(made)
	s.heaps.Store(&all)
	return sharedDir + "/" + made.Name, nil
}

// MemoryIntact implements sandbox.MemorySharer.
func (s *running) MemoryIntact() error { return s.memory().Intact() }

// memory is what the sandbox has memory from, in common with other sandboxes.
func (s *running) memory() sharedmem.Set {
	if all := s.heaps.Load(); all != nil {
		return *all
	}
	return nil
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
