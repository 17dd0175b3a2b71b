package sandboxtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// daemonPatience bounds how long a Docker daemon may take to start or to end.
const daemonPatience = 2 * time.Minute

// Docker returns the address of a Docker daemon of the tests' own, with folders of its own. Tests of a process that run at the same time share it; it ends with the last of them.
// COVE_TEST_DOCKER_HOST names another one to run the tests against, such as a rootless daemon or Podman.
func Docker(t testing.TB) string {
	t.Helper()
	testneeds.Asked(t, testneeds.Docker)
	return dockerOf(t)
}

// DockerForParts is Docker for a test whose parts use the daemon, each with a slot of its own.
func DockerForParts(t testing.TB) string {
	t.Helper()
	testneeds.AskedForParts(t, testneeds.Docker)
	return dockerOf(t)
}

func dockerOf(t testing.TB) string {
	t.Helper()
	if host := os.Getenv("COVE_TEST_DOCKER_HOST"); host != "" {
		return host
	}
	if os.Geteuid() != 0 {
		testneeds.RunsElsewhere(t, string(testneeds.Root), "a Docker daemon is started as root")
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.daemon == nil {
		if _, err := exec.LookPath("dockerd"); err != nil {
			testneeds.Absent(t, testneeds.Docker, err)
		}
		d, err := startDaemon(false)
		if err != nil { // as in a container without the rights for one, which nothing that is installed makes up for
			testneeds.RunsElsewhere(t, "a machine on which a Docker daemon starts", err.Error())
		}
		shared.daemon = d
	}
	shared.users++
	t.Cleanup(func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if shared.users--; shared.users > 0 {
			return
		}
		if err := shared.daemon.stop(); err != nil {
			t.Errorf("end the Docker daemon: %v", err)
		}
		shared.daemon = nil
	})
	return shared.daemon.host()
}

var shared struct {
	mu     sync.Mutex
	daemon *Daemon
	users  int
}

// Daemon is a Docker daemon that belongs to one test.
type Daemon struct {
	dir   string
	log   bytes.Buffer
	pid   int
	ended chan struct{}

	outlived bool
}

// OwnDocker starts a Docker daemon that the test may do with what it likes. It ends with the test. With outlived, its containers go on while it is away.
func OwnDocker(t testing.TB, outlived bool) *Daemon {
	t.Helper()
	Docker(t) // says what is missing
	d, err := startDaemon(outlived)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.stop(); err != nil {
			t.Errorf("end the Docker daemon: %v", err)
		}
	})
	return d
}

// Host is its address.
func (d *Daemon) Host() string { return d.host() }

func (d *Daemon) host() string { return "unix://" + filepath.Join(d.dir, "docker.sock") }

// End ends the daemon, as when the machine's administrator does so.
func (d *Daemon) End() {
	_ = syscall.Kill(d.pid, syscall.SIGTERM)
	select {
	case <-d.ended:
	case <-time.After(daemonPatience):
		_ = syscall.Kill(d.pid, syscall.SIGKILL)
		<-d.ended
	}
}

func startDaemon(outlived bool) (*Daemon, error) {
	dir, err := os.MkdirTemp("", "dk") // short: there are sockets below
	if err != nil {
		return nil, err
	}
	d := &Daemon{dir: dir, outlived: outlived}
	cove, err := build()
	if err == nil {
		err = os.Symlink(cove, filepath.Join(dir, "runsc"))
	}
	if err == nil {
		err = d.Run()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return d, nil
}

// runscArgs are what the program cove needs as a Docker daemon's runtime, which is what it is when it is called runsc; see docs/engines.md.
var runscArgs = []string{
	"--host-uds=open", "--network=none", "--net-raw", "--platform=systrap",
	"--sidecar-usage-policy=LEGACY_DEPRECATED_SLOW_EMBEDDED_FALLBACK", "--sidecar-release-enforcement-policy=NEVER",
}

// Run starts the daemon, and waits until it answers.
func (d *Daemon) Run() error {
	program, err := exec.LookPath("dockerd")
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"data-root": filepath.Join(d.dir, "data"), "exec-root": filepath.Join(d.dir, "exec"), "pidfile": filepath.Join(d.dir, "pid"), "hosts": []string{d.host()},
		// Nothing that has a network is started here, and nothing of the machine's is changed.
		"runtimes": map[string]any{"runsc": map[string]any{"path": filepath.Join(d.dir, "runsc"), "runtimeArgs": runscArgs}},
		"bridge":   "none", "iptables": false, "ip6tables": false, "exec-opts": []string{"native.cgroupdriver=cgroupfs"}, "live-restore": d.outlived,
	})
	if err != nil {
		return err
	}
	file := filepath.Join(d.dir, "daemon.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return err
	}
	cmd := exec.Command(program, "--config-file="+file)
	cmd.Stdout, cmd.Stderr = &d.log, &d.log
	// It ends with the tests, however they end. That is the end of the thread that has started it, so that thread stays.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	d.ended = make(chan struct{})
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(d.ended)
	}()
	if err := <-started; err != nil {
		return err
	}
	d.pid = cmd.Process.Pid
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if d.answers() {
			return nil
		}
		select {
		case <-d.ended:
			return fmt.Errorf("dockerd ended: %s", d.said())
		default:
		}
		if time.Since(began) > daemonPatience {
			d.End()
			return fmt.Errorf("dockerd does not answer: %s", d.said())
		}
	}
}

// answers says whether the daemon does, to the simplest request that there is.
func (d *Daemon) answers() bool {
	conn, err := net.Dial("unix", filepath.Join(d.dir, "docker.sock"))
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, "GET /_ping HTTP/1.0\r\n\r\n")
	text, _ := io.ReadAll(conn)
	return bytes.Contains(text, []byte(" 200 OK"))
}

// said is the end of what the daemon said. It is read when the daemon has ended.
func (d *Daemon) said() string {
	text := strings.Join(strings.Fields(d.log.String()), " ")
	return text[max(0, len(text)-1000):]
}

func (d *Daemon) stop() error {
	d.End()
	var err error
	for range 50 { // what it had mounted may go a moment later
		d.unmount()
		if err = os.RemoveAll(d.dir); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// unmount takes away what the daemon and its runtimes have left mounted: gVisor leaves an empty network name space.
func (d *Daemon) unmount() {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], d.dir+"/") {
			_ = syscall.Unmount(f[4], syscall.MNT_DETACH)
		}
	}
}
