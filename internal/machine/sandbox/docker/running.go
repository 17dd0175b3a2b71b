package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/guest/program"
	"cove/internal/machine/image"
	"cove/internal/machine/sandbox"
)

const (
	// startTimeout bounds the time from a container's start to its guest's connection. Loaded machines take tens of seconds.
	startTimeout = 2 * time.Minute
	// stopTimeout bounds how long a daemon may take to remove a container.
	stopTimeout = 2 * time.Minute
	// absence is how long a daemon may be away whose containers cannot be seen to live: a restart takes some seconds.
	absence = 30 * time.Second
	// afterlife is how long a daemon may take to say why a container ended that is seen to have ended.
	afterlife = 5 * time.Second
	retry     = 200 * time.Millisecond
	// settling is how long a daemon may be of two minds about a container that is just ending: Podman says that it cannot be stopped, because it has stopped.
	settling = 10 * time.Second
)

var errStartTimeout = errors.New("the container did not start in time")

// running is one container.
type running struct {
	daemon   *daemon
	spec     sandbox.Spec
	letGo    func()          // of its image; nil: it has none
	folder   *sandbox.Folder // nil before it is made
	id       string          // of the container; "" before it is made
	listener *net.UnixListener
	process  int // a pidfd of the guest on the host; -1 where it is not seen
	group    *group
	short    time.Time // when memory last ran out; only for Podman
	watched  bool      // done will be closed by the end of the container

	dialed   atomic.Bool
	guest    net.Conn
	stopping atomic.Bool
	done     chan struct{}
	cause    error // set before done is closed
	stopOnce sync.Once
	stopErr  error
}

var (
	_ sandbox.Sandbox        = (*running)(nil)
	_ sandbox.Meter          = (*running)(nil)
	_ sandbox.Weigher        = (*running)(nil)
	_ sandbox.MemoryReporter = (*running)(nil)
)

func (s *running) ID() string             { return s.spec.ID }
func (s *running) Layout() sandbox.Layout { return sandbox.NewLayout(workspace, tmpPath, nil) }
func (s *running) Done() <-chan struct{}  { return s.done }
func (s *running) Cause() error           { return s.cause }

func (s *running) Dial(context.Context) (io.ReadWriteCloser, error) {
	if s.dialed.Swap(true) {
		return nil, errors.New("the guest's connection was handed over already")
	}
	return s.guest, nil
}

// start makes the container, starts it, and waits for its guest.
func (s *running) start(ctx context.Context, state, shared string, mounts []sandbox.HostMount) (err error) {
	s.process = -1
	guest, err := program.Install(shared)
	if err != nil {
		return err
	}
	if s.letGo, err = image.Hold(s.spec); err != nil {
		return err
	}
	base := usualGround()
	switch {
	case s.spec.Root != "":
		base, err = groundIn(s.spec.Root, mounts)
	case s.spec.Layer != "":
		base, err = groundWith(s.spec.Layer, mounts)
	}
	if err != nil {
		return err
	}
	var user int
	if s.folder, user, err = s.daemon.createFolder(state, s.spec); err != nil {
		return err
	}
	if s.listener, err = listen(s.folder); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errStartTimeout)
	defer cancel()
	create := func() error {
		// Not given up with the start: the daemon would go on without anybody who waits, and make the container after Stop has looked for it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
		defer cancel()
		s.id, err = s.daemon.create(ctx, s.folder, state, guest, user, s.spec, base, mounts)
		return err
	}
	if err = create(); errdefs.IsNotFound(err) { // it is a new one, or somebody has tidied images up
		if err = s.daemon.makeImage(ctx, base); err == nil {
			err = create()
		}
	}
	if err != nil {
		return s.daemon.explain("create a container", err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, err := s.daemon.api.ContainerStart(ctx, s.id, client.ContainerStartOptions{}); err != nil {
		return s.daemon.explain("start a container", err)
	}
	if said, err := s.daemon.api.ContainerInspect(ctx, s.id, client.ContainerInspectOptions{}); err == nil && said.Container.State != nil && said.Container.State.Pid > 0 {
		pid := said.Container.State.Pid
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			s.process, s.group = fd, groupOf(pid)
		}
	}
	s.watched = true
	go s.watch()
	return s.meetGuest(ctx)
}

// meetGuest waits for the guest's only connection, and closes the way to any other. The context is that of the start, with its bound.
func (s *running) meetGuest(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.listener.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	met := make(chan struct{})
	defer close(met)
	go func() {
		select {
		case <-s.done:
			_ = s.listener.SetDeadline(time.Unix(1, 0))
		case <-met:
		}
	}()
	conn, err := s.listener.Accept()
	switch {
	case err == nil:
		s.guest = conn
		return errors.Join(s.listener.Close(), os.Remove(s.folder.Join("socket", socketName)))
	case ended(s.done) && s.cause != nil:
		return s.cause
	case errors.Is(context.Cause(ctx), errStartTimeout): // the caller's own deadline is no fault of the engine
		if s.daemon.isolates() {
			return problem.New(problem.DockerUnfit, "the guest in a container of the runtime "+s.daemon.runtime+" does not reach its socket").
				WithHint(`give the runtime "runtimeArgs": ["--host-uds=open"] in Docker's daemon.json and restart Docker, or set COVE_DOCKER_RUNTIME=runc`)
		}
		return problem.New(problem.SandboxStartTimeout, "the container did not start within "+startTimeout.String()).WithHint("run `cove doctor`; on a busy machine try again")
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("accept the guest: %w", err)
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// watch waits for the end of the container, in one long request.
func (s *running) watch() {
	s.cause = s.awaitEnd()
	if s.stopping.Load() {
		s.cause = nil
	}
	close(s.done)
}

func (s *running) awaitEnd() error {
	var away time.Time // since when the daemon has not answered; zero: it has
	for {
		asked := time.Now()
		waited := s.daemon.api.ContainerWait(context.Background(), s.id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		ended, err := s.await(waited)
		if ended {
			return s.causeOfEnd()
		}
		if errdefs.IsNotFound(err) {
			return died("somebody has removed its container", nil)
		}
		if s.stopping.Load() && s.gone() {
			return nil
		}
		if away.IsZero() || time.Since(asked) > time.Second {
			away = asked
		}
		switch {
		case s.process >= 0 && s.gone() && time.Since(away) > afterlife, s.process < 0 && time.Since(away) > absence:
			return died("the Docker daemon does not answer any more, and its container has ended", err)
		}
		time.Sleep(retry)
	}
}

// await waits until the request does, and says whether the container has ended. Podman does not always say that memory ran out, so its count is looked at meanwhile.
func (s *running) await(waited client.ContainerWaitResult) (ended bool, err error) {
	var look <-chan time.Time
	if s.daemon.podman && s.group != nil {
		tick := time.NewTicker(retry)
		defer tick.Stop()
		look = tick.C
	}
	for {
		select {
		case <-waited.Result:
			return true, nil
		case err := <-waited.Error:
			return false, err
		case <-look:
			if before := s.group.kills.Load(); s.Shortages() > before {
				s.short = time.Now()
			}
		}
	}
}

// gone says whether the guest is seen to have ended.
func (s *running) gone() bool {
	if s.process < 0 {
		return false
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.process), Events: unix.POLLIN}}, 0) //nolint:gosec // a descriptor
	return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
}

func died(why string, cause error) error {
	return problem.New(problem.SandboxDied, "the sandbox ended unexpectedly: "+why).WithHint("run `cove doctor`").WithCause(cause)
}

// causeOfEnd says why the container ended, as the daemon has it.
func (s *running) causeOfEnd() error {
	ctx, cancel := context.WithTimeout(context.Background(), afterlife)
	defer cancel()
	said, err := s.daemon.api.ContainerInspect(ctx, s.id, client.ContainerInspectOptions{})
	if err != nil || said.Container.State == nil {
		return died("the Docker daemon does not say why", err)
	}
	const killed = 137 // by SIGKILL
	state := said.Container.State
	if state.ExitCode == killed && (state.OOMKilled || time.Since(s.short) < afterlife) {
		return problem.New(problem.SessionOOM, fmt.Sprintf("the sandbox used more than its memory limit of %d MiB, which counts its files as well, and was ended", s.spec.Limits.Memory>>20)).
			WithHint("process the data in smaller pieces or raise the limit with --memory")
	}
	why := fmt.Sprintf("its container ended with exit code %d", state.ExitCode)
	if text := strings.TrimSpace(state.Error); text != "" {
		why += ": " + firstLine(text)
	}
	return died(why, s.lastWords(ctx))
}

// lastWords are what the guest said, as an error; nil: nothing.
func (s *running) lastWords(ctx context.Context) error {
	said, err := s.daemon.api.ContainerLogs(ctx, s.id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "10"})
	if err != nil {
		return nil //nolint:nilerr // it is only an explanation
	}
	text, _ := io.ReadAll(io.LimitReader(said, 4<<10))
	_ = said.Close()
	clean := strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) && r != utf8.RuneError { // without the heads of the pieces that it comes in
			return r
		}
		return -1
	}, string(text)))
	if clean == "" {
		return nil
	}
	return errors.New(clean)
}

// Stop removes the container and what it leaves on the host.
func (s *running) Stop(context.Context) error {
	s.stopOnce.Do(func() { s.stopErr = s.discard() })
	return s.stopErr
}

func (s *running) discard() error {
	s.stopping.Store(true)
	// Not bound to a caller's context: what is left undone here would be left behind.
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var err error
	if s.folder != nil {
		err = remove(ctx, s.daemon.api, containerName(s.spec.ID)) // by its name: the answer with its id may have been lost
	}
	if err != nil && s.process >= 0 {
		_ = unix.PidfdSendSignal(s.process, unix.SIGKILL, nil, 0) // refused where it is another user's
	}
	if s.watched {
		select {
		case <-s.done:
		case <-ctx.Done():
		}
	}
	if s.letGo != nil {
		s.letGo()
	}
	if s.guest != nil {
		_ = s.guest.Close()
	}
	if s.listener != nil {
		_ = s.listener.Close()
	}
	if s.process >= 0 && ended(s.done) {
		_ = unix.Close(s.process)
	}
	if err != nil {
		// The folder stays, by which a later sweep finds the container.
		return problem.New(problem.DockerAbsent, "the container of sandbox "+s.spec.ID+" could not be removed").WithCause(err).WithHint("the next command that cove runs here tries again")
	}
	if s.folder == nil {
		return nil
	}
	return s.folder.Remove()
}

// remove ends a container and removes it, if it is there.
func remove(ctx context.Context, api *client.Client, name string) error {
	for began := time.Now(); ; {
		_, err := api.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case err == nil, errdefs.IsNotFound(err):
			return nil
		case client.IsErrConnectionFailed(err), ctx.Err() != nil:
			return err
		case !errdefs.IsConflict(err) && time.Since(began) > settling: // a conflict: somebody else is removing it
			return err
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return err
		}
	}
}

// removeStrays removes the containers of an engine's folder whose own folders are gone, as after somebody has deleted them.
func (d *daemon) removeStrays(ctx context.Context, state string) error {
	found, err := d.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", labelState+"="+state)})
	if err != nil {
		return err
	}
	for _, c := range found.Items {
		id := c.Labels[labelSandbox]
		// A container is born after its folder and dies before it.
		if _, err := os.Lstat(state + "/" + id); id != "" && errors.Is(err, os.ErrNotExist) {
			_ = remove(ctx, d.api, c.ID) // the next engine tries again
		}
	}
	return nil
}
