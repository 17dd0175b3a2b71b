package e2e_test

import (
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/testkit/testneeds"
)

// asRoot runs a line as root in a session of a server and returns what it wrote.
func (s *server) asRoot(session, line string) string {
	s.t.Helper()
	c := newCommand(s.t, "session", "exec", "--server", s.base, session, "--root", "--", "bash", "-c", line)
	c.setenv("COVE_KEY=" + s.key)
	out := c.run().stdout
	return out
}

// TestRootOfASession changes the system of a session as root, and finds the changes again after a pause, in a fork and after the death of the server.
func TestRootOfASession(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	key := testKey(t)
	s := startServer(t, dir, key, "COVE_ROOT=true", "COVE_PACKAGES=minimal")
	var plain, made api.Session
	s.must(http.MethodPost, "/api/v1/sessions", map[string]any{}, &plain)
	r, err := s.call(t.Context(), http.MethodPost, "/api/v1/sessions/"+plain.ID+"/processes", map[string]any{"line": "id", "root": true})
	if err != nil || r.status != http.StatusBadRequest || !strings.Contains(string(r.body), string(problem.RootAbsent)) {
		t.Errorf("without a root: %d %s, %v", r.status, r.body, err)
	}
	s.must(http.MethodPost, "/api/v1/sessions", map[string]any{"root": true}, &made)
	if !made.Root || plain.Root {
		t.Errorf("made %+v and %+v", made, plain)
	}
	// A package of Debian's kind, with a script that needs root.
	const install = `set -e; mkdir -p /tmp/p/DEBIAN /tmp/p/usr/bin; printf '#!/bin/sh\necho greeting\n' > /tmp/p/usr/bin/greet; chmod 755 /tmp/p/usr/bin/greet
printf 'Package: greet\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.com>\nDescription: greets\n' > /tmp/p/DEBIAN/control
printf '#!/bin/sh\nchown 1:1 /usr/bin/greet; useradd --system greeter\n' > /tmp/p/DEBIAN/postinst; chmod 755 /tmp/p/DEBIAN/postinst
dpkg-deb --build /tmp/p /tmp/greet.deb && dpkg -i /tmp/greet.deb 2>&1`
	if out := s.asRoot(made.ID, install); !strings.Contains(out, "Setting up greet (1)") {
		t.Fatalf("installing said %q", out)
	}
	const look = "import subprocess, os\nprint(subprocess.getoutput('greet; stat -c %u /usr/bin/greet; id -u greeter > /dev/null && echo known; sudo -n id -u; dpkg -s greet | grep Version'), os.getuid())"
	const want = "greeting\n1\nknown\n0\nVersion: 1 1000\n"
	check := func(when, session string) {
		t.Helper()
		if got := s.says(session, look); got != want {
			t.Errorf("%s: %q", when, got)
		}
	}
	check("at once", made.ID)
	s.must(http.MethodPost, "/api/v1/sessions/"+made.ID+"/pause", nil, nil)
	check("after a pause", made.ID)
	var fork api.Session
	s.must(http.MethodPost, "/api/v1/sessions/"+made.ID+"/fork", map[string]any{}, &fork)
	if out := s.asRoot(fork.ID, "rm /usr/bin/greet && echo gone"); !fork.Root || out != "gone\n" {
		t.Errorf("in a fork, %+v, it said %q", fork, out)
	}
	check("beside a fork", made.ID)
	s.must(http.MethodPost, "/api/v1/sessions/"+made.ID+"/pause", nil, nil)
	s.kill()
	s = startServer(t, dir, key, "COVE_ROOT=true", "COVE_PACKAGES=minimal")
	check("after the server's death", made.ID)
	// What is installed by cove is all that root finds of what others have installed.
	if got := s.says(plain.ID, "import six; print(six.__name__)"); !strings.Contains(got, "six") {
		t.Errorf("the other session says %q", got)
	}
	if got := s.says(made.ID, "import iniconfig, subprocess; print(iniconfig.__name__); print(subprocess.getoutput('sudo ls /opt/cove/layers | wc -l; sudo ls /opt/cove/layers/*'))"); !strings.Contains(got, "iniconfig\n1\n") || strings.Contains(got, "six") {
		t.Errorf("root sees %q", got)
	}
	s.must(http.MethodPost, "/api/v1/sessions/"+made.ID+"/pause", nil, nil)
	if got := s.says(made.ID, "print(iniconfig.__name__)"); got != "iniconfig\n" {
		t.Errorf("after a pause its package is %q", got)
	}

	other := startServer(t, t.TempDir(), testKey(t), "COVE_PACKAGES=minimal")
	r, err = other.call(t.Context(), http.MethodPost, "/api/v1/sessions", map[string]any{"root": true})
	if err != nil || r.status != http.StatusBadRequest || !strings.Contains(string(r.body), string(problem.RootAbsent)) {
		t.Errorf("where the operator does not allow it: %d %s, %v", r.status, r.body, err)
	}
}

// TestAptInstalls has apt install, through the rules of the network, what the mirror of this machine has, and Python code use it.
func TestAptInstalls(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	sites, err := exec.CommandContext(t.Context(), "apt-get", "indextargets", "--format", "$(SITE)").Output()
	if err != nil {
		t.Fatal("this machine has no apt: ", err)
	}
	rules := map[string]bool{}
	for site := range strings.Lines(string(sites)) {
		u, err := url.Parse(strings.TrimSpace(site))
		if err != nil || u.Hostname() == "" {
			continue
		}
		rules[u.Host] = true
		addresses, _ := net.DefaultResolver.LookupHost(t.Context(), u.Hostname())
		for _, a := range addresses { // because a mirror may have private ones
			if strings.Contains(a, ":") {
				a = "[" + a + "]"
			}
			rules[strings.Replace(u.Host, u.Hostname(), a, 1)] = true
		}
	}
	args := []string{"session", "exec", "lab", "--root"}
	for rule := range rules {
		args = append(args, "--allow-net", rule)
	}
	home := t.TempDir()
	c := newCommand(t, append(args, "--", "sh", "-c", "apt-get -qq update && apt-get -qq install -y cowsay >/dev/null 2>&1; /usr/games/cowsay installed")...)
	c.bound = 2 * patience
	c.setenv("COVE_SESSIONS=" + home)
	r := c.run()
	r.ended(t, 0)
	if !strings.Contains(r.stdout, "< installed >") {
		t.Fatalf("%+v", r)
	}
	c = newCommand(t, "run", "--session", "lab", "-c", "import subprocess; print(subprocess.getoutput('/usr/games/cowsay again'))")
	c.setenv("COVE_SESSIONS=" + home)
	if r = c.run(); !strings.Contains(r.stdout, "< again >") {
		t.Errorf("%+v", r)
	}
	c = newCommand(t, "run", "-c", "import subprocess; print(subprocess.getoutput('sudo id'))")
	if r = c.run(); strings.Contains(r.stdout, "uid=0") {
		t.Errorf("without --root: %+v", r)
	}
	c = newCommand(t, "session", "exec", "plain", "--", "true")
	c.setenv("COVE_SESSIONS=" + home)
	c.run().ended(t, 0)
	c = newCommand(t, "session", "exec", "plain", "--root", "--", "id")
	c.setenv("COVE_SESSIONS=" + home)
	if r = c.run(); r.code == 0 || !strings.Contains(r.stderr, "was made without a root") {
		t.Errorf("a session without a root: %+v", r)
	}
}
