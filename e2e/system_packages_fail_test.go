package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"cove/internal/testkit/testneeds"
)

// TestSystemPackagesStopped stops commands while apt installs: by Ctrl-C, which keeps nothing, and by a kill, after which two servers at once install once and serve.
func TestSystemPackagesStopped(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	const packages = "cowsay"
	home := systemHome(t)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		c := withSystem(t, home, packages, "run", "-c", "print(1)")
		c.start()
		c.stderr.until(t, "  downloading ...")
		kill(t, -c.cmd.Process.Pid, signal)
		if signal == syscall.SIGKILL {
			_ = c.cmd.Wait() // what is left of it goes with the next start
			continue
		}
		r := c.wait()
		if r.code != 130 || r.stdout != "" || strings.Contains(r.stderr, "Ready: the system packages") {
			t.Errorf("%+v", r)
		}
		if layers := layersOf(t, home); len(layers) > 0 {
			t.Errorf("left are %q", layers)
		}
	}
	servers := make([]*server, 2)
	var both sync.WaitGroup
	for i := range servers {
		servers[i] = newServer(t, "", testKey(t), "COVE_HOME="+home, "COVE_PACKAGES_SYSTEM="+packages)
		both.Go(servers[i].begin)
	}
	both.Wait()
	for _, s := range servers {
		var made struct{ ID string }
		s.must(http.MethodPost, "/api/v1/sessions", map[string]any{}, &made)
		if got := s.says(made.ID, "import os; print(os.path.exists('/usr/games/cowsay'))"); got != "True\n" {
			t.Errorf("a session of a server says %q", got)
		}
	}
	if layers := layersOf(t, home); len(layers) != 1 {
		t.Errorf("there are the layers %q", layers)
	}
}

// TestSystemPackagesUnreachable has apt's sources be where nobody answers: a command says so, what is installed already goes on, and so does a command without the setting.
func TestSystemPackagesUnreachable(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	home := systemHome(t)
	settings := filepath.Join(home, "apt.conf")
	if err := os.WriteFile(settings, []byte("Acquire::http::Proxy \"http://127.0.0.1:1\";\nAcquire::https::Proxy \"http://127.0.0.1:1\";\nAcquire::Retries \"0\";\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	withSystem(t, home, "cowsay", "run", "-c", "1").run().ended(t, 0)
	for packages, code := range map[string]int{"cowsay": 0, "": 0, "figlet": 1} {
		c := withSystem(t, home, packages, "run", "-c", "print(7)")
		c.setenv("APT_CONFIG=" + settings)
		r := c.run()
		if (r.code != 0) != (code != 0) || (r.stdout == "7\n") != (code == 0) || code != 0 && (!strings.Contains(r.stderr, "the package sources of this machine could not") || strings.Contains(r.stderr, "internal error")) {
			t.Errorf("%q: %+v", packages, r)
		}
	}
	if layers := layersOf(t, home); len(layers) != 1 {
		t.Errorf("there are the layers %q", layers)
	}
}

// TestSystemPackagesOnAFullDisk has no room for what apt installs: a command says so, and leaves nothing behind that takes room.
func TestSystemPackagesOnAFullDisk(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	home := systemHome(t)
	system := filepath.Join(home, "system")
	if err := os.Mkdir(system, 0o711); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=1m,mode=711", "cove-test", system).CombinedOutput(); err != nil {
		testneeds.Absent(t, testneeds.Root, fmt.Sprintf("a disk of its own takes root: %s", out))
	}
	t.Cleanup(func() { _ = unix.Unmount(system, unix.MNT_DETACH) })
	r := withSystem(t, home, "graphviz", "run", "-c", "print(1)").run()
	if r.code == 0 || r.stdout != "" || !strings.Contains(r.stderr, "there is no room left on the disk for the system packages") {
		t.Errorf("%+v", r)
	}
	if layers := layersOf(t, home); len(layers) > 0 {
		t.Errorf("left are %q", layers)
	}
	unix.Unmount(system, unix.MNT_DETACH) //nolint:errcheck // the next command says what is wrong
	if r := withSystem(t, home, "cowsay", "run", "-c", "import os; os.path.exists('/usr/games/cowsay')").run(); r.stdout != "True\n" {
		t.Errorf("when there is room: %+v", r)
	}
}
