package docker_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/docker"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/machine/wire"
	"cove/internal/testkit/testneeds"
)

// patience bounds what a busy machine may take.
const patience = 3 * time.Minute

func api(t *testing.T, host string) *client.Client {
	t.Helper()
	c, err := client.New(client.WithHost(host))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func awaitEnd(t *testing.T, sb sandbox.Sandbox) error {
	t.Helper()
	select {
	case <-sb.Done():
	case <-time.After(patience):
		t.Fatal("the sandbox lives on")
	}
	return sb.Cause()
}

// TestMemory has code take more than its sandbox may have. The kernel ends what is largest, which is the code; the guest answers afterwards, and the shortage was counted.
func TestMemory(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	e := newEngine(t)
	if _, err := e.LimitsEnforcedBy(t.Context()); err != nil {
		testneeds.RunsElsewhere(t, "a daemon that limits its containers", err.Error())
	}
	sb, l := sandboxtest.Start(t, e, sandbox.Spec{Limits: sandbox.Limits{Memory: 128 << 20}})
	counts := sb.(sandbox.MemoryReporter)
	if n := counts.Shortages(); n != 0 {
		t.Errorf("%d shortages before there were any", n)
	}
	code, err := l.Run(t.Context(), wire.ProcessSpec{Args: []string{"/bin/sh", "-c", "head -c 1300M /dev/zero | tail -c 1200M >/dev/null; exit $?"}, Env: []string{"PATH=/usr/bin:/bin"}}, io.Discard, io.Discard)
	if err != nil || code != 137 {
		t.Fatalf("it ended with %d, %v", code, err)
	}
	if counts.Shortages() == 0 {
		t.Error("the shortage was not counted")
	}
	if _, out := sandboxtest.Shell(t, l, "echo alive"); out != "alive\n" {
		t.Errorf("afterwards: %q", out)
	}
	// Files count, and no process can be ended for them but the guest.
	_, err = l.Run(t.Context(), wire.ProcessSpec{Args: []string{"/bin/sh", "-c", "while :; do head -c 300M /dev/zero > full; done"}, Env: []string{"PATH=/usr/bin:/bin"}}, io.Discard, io.Discard)
	if err == nil {
		t.Error("300 MB of files are in 128 MB")
	}
	if cause := awaitEnd(t, sb); !problem.Has(cause, problem.SessionOOM) {
		t.Errorf("the cause is %v", cause)
	}
}

// TestEnds ends containers from outside.
func TestEnds(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	host := sandboxtest.Docker(t)
	daemon := api(t, host)
	for name, c := range map[string]struct {
		end  func(id string) error
		text string
	}{
		"killed": {func(id string) error {
			_, err := daemon.ContainerKill(t.Context(), id, client.ContainerKillOptions{Signal: "KILL"})
			return err
		}, "exit code 137"},
		"removed": {func(id string) error {
			_, err := daemon.ContainerRemove(t.Context(), id, client.ContainerRemoveOptions{Force: true})
			return err
		}, "the sandbox ended unexpectedly"},
	} {
		t.Run(name, func(t *testing.T) {
			sb, l := sandboxtest.Start(t, newEngine(t), sandbox.Spec{})
			if err := c.end("cove-" + sb.ID()); err != nil {
				t.Fatal(err)
			}
			if err := awaitEnd(t, sb); !problem.Has(err, problem.SandboxDied) || !strings.Contains(problem.Of(err).Message, c.text) {
				t.Errorf("the cause is %v", err)
			}
			select {
			case <-l.Done():
			case <-time.After(patience):
				t.Error("the connection lives on")
			}
		})
	}
}

// TestImageGone removes the empty image, as who tidies a daemon up does: it is made again.
func TestImageGone(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	d := sandboxtest.OwnDocker(t, false)
	e := docker.New(docker.Options{State: t.TempDir(), Host: d.Host(), Runtime: "runc"})
	if err := e.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	daemon := api(t, d.Host())
	all, err := daemon.ImageList(t.Context(), client.ImageListOptions{All: true})
	if err != nil || len(all.Items) != 1 {
		t.Fatalf("images: %+v, %v", all.Items, err)
	}
	if _, err := daemon.ImageRemove(t.Context(), all.Items[0].ID, client.ImageRemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	if err := e.Check(t.Context()); err != nil {
		t.Errorf("without the image: %v", err)
	}
}

// TestDaemonEnds ends the daemon, which ends what it has, and starts another.
func TestDaemonEnds(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	d := sandboxtest.OwnDocker(t, false)
	e := docker.New(docker.Options{State: t.TempDir(), Host: d.Host(), Runtime: "runc"})
	sb, err := e.Start(t.Context(), sandbox.Spec{ID: sandbox.NewID("test")})
	if err != nil {
		t.Fatal(err)
	}
	d.End()
	if cause := awaitEnd(t, sb); !problem.Has(cause, problem.SandboxDied) {
		t.Errorf("the cause is %v", cause)
	}
	if err := d.Run(); err != nil {
		t.Fatal(err)
	}
	if err := sb.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := e.Check(t.Context()); err != nil {
		t.Errorf("with the next daemon: %v", err)
	}
}

// TestDaemonAway restarts a daemon that leaves its containers alone: what runs goes on, and nothing new starts meanwhile.
func TestDaemonAway(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	d := sandboxtest.OwnDocker(t, true)
	e := docker.New(docker.Options{State: t.TempDir(), Host: d.Host(), Runtime: "runc"})
	sb, l := sandboxtest.Start(t, e, sandbox.Spec{})
	d.End()
	if _, out := sandboxtest.Shell(t, l, "echo alive"); out != "alive\n" {
		t.Errorf("without its daemon: %q", out)
	}
	if _, err := e.Start(t.Context(), sandbox.Spec{ID: sandbox.NewID("test")}); !problem.Has(err, problem.DockerAbsent) {
		t.Errorf("without a daemon a sandbox starts: %v", err)
	}
	if err := d.Run(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-sb.Done():
		t.Errorf("it ended: %v", sb.Cause())
	default:
	}
	if err := e.Check(t.Context()); err != nil {
		t.Errorf("with the next daemon: %v", err)
	}
	if _, out := sandboxtest.Shell(t, l, "echo alive"); out != "alive\n" {
		t.Errorf("with the next daemon: %q", out)
	}
}

// TestOrphans kills an owner: its container ends by itself, and another engine with the same folder removes it. Containers without a folder go, too.
func TestOrphans(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	if os.Getenv(orphanState) != "" {
		orphan(t)
		return
	}
	host, state := sandboxtest.Docker(t), t.TempDir()
	daemon := api(t, host)
	child := exec.Command(os.Args[0], "-test.run=^TestOrphans$", "-test.v")
	child.Env = append(os.Environ(), orphanState+"="+state, orphanHost+"="+host)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	read := make([]byte, 4096)
	for got := ""; !strings.Contains(got, "started"); {
		n, err := out.Read(read)
		if got += string(read[:n]); err != nil {
			t.Fatalf("the owner said %s, %v", got, err)
		}
	}
	all := func() []string { return containersOf(t, daemon, state) }
	if n := len(all()); n != 1 {
		t.Fatalf("%d containers", n)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	began := time.Now()
	for running := true; running; time.Sleep(50 * time.Millisecond) {
		running = strings.Contains(strings.Join(all(), " "), "running")
		if time.Since(began) > patience {
			t.Fatalf("the container of a dead owner runs: %v", all())
		}
	}
	e := docker.New(docker.Options{State: state, Host: host, Runtime: "runc"})
	if n, err := e.Sweep(t.Context()); n != 1 || err != nil || len(all()) != 0 {
		t.Errorf("swept %d, %v; left are %v", n, err, all())
	}

	sb, _ := sandboxtest.Start(t, e, sandbox.Spec{})
	if err := os.RemoveAll(filepath.Join(state, sb.ID())); err != nil {
		t.Fatal(err)
	}
	if err := docker.New(docker.Options{State: state, Host: host, Runtime: "runc"}).Check(t.Context()); err != nil {
		t.Error(err)
	}
	if left := all(); len(left) != 0 {
		t.Errorf("without a folder: %v", left)
	}
}

const (
	orphanState = "COVE_TEST_ORPHAN_STATE"
	orphanHost  = "COVE_TEST_ORPHAN_HOST"
)

// orphan starts a sandbox and waits to be killed.
func orphan(t *testing.T) {
	e := docker.New(docker.Options{State: os.Getenv(orphanState), Host: os.Getenv(orphanHost), Runtime: "runc"})
	sb, err := e.Start(context.Background(), sandbox.Spec{ID: sandbox.NewID("test")})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("started", sb.ID())
	_, _ = os.Stdout.WriteString("started\n")
	select {}
}

// containersOf lists the containers of an engine's folder: their names and states.
func containersOf(t *testing.T, daemon *client.Client, state string) (all []string) {
	t.Helper()
	found, err := daemon.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", "cove.state="+state)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found.Items {
		all = append(all, strings.Join(c.Names, ",")+" "+string(c.State))
	}
	return all
}

// TestStartGivenUp gives starts up at many moments, as a server does that ends while its pool fills: no container is left, also not one that the daemon was still making.
func TestStartGivenUp(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	host := sandboxtest.Docker(t)
	daemon := api(t, host)
	state, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := docker.New(docker.Options{State: state, Host: host, Runtime: "runc"})
	if err := e.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for after := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(after)*20*time.Millisecond)
		sb, err := e.Start(ctx, sandbox.Spec{ID: sandbox.NewID("test")})
		cancel()
		if err == nil {
			err = sb.Stop(t.Context())
		} else if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		if err != nil {
			t.Errorf("given up after %d × 20 ms: %v", after, err)
		}
	}
	left, err := daemon.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", "cove.state="+state)})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("%d containers are left, %v", len(left.Items), err)
	}
}
