package docker_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

// TestIsolation looks for what of the host sandboxed code must not find, whatever the runtime.
func TestIsolation(t *testing.T) {
	testneeds.FullTier(t)
	const canary = "host-canary-4711"
	t.Setenv("COVE_CANARY", canary)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(canary), 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	sb, l := sandboxtest.Start(t, newEngine(t), sandbox.Spec{Limits: sandbox.Limits{Memory: 300 << 20}})
	connect := func(host string, port int) string {
		return fmt.Sprintf("exec 2>&1; bash -c 'exec 3<>/dev/tcp/%s/%d' && echo connected", host, port)
	}
	for name, c := range map[string]struct{ script, want, never string }{
		"host's shadow":       {script: "cat /etc/shadow", want: "No such file"},
		"host's /tmp":         {script: "cat " + secret, want: "No such file"},
		"host's home":         {script: "ls -A " + home, never: "."},
		"host's processes":    {script: "ls /proc | grep -c '^[0-9]'", never: "00"},
		"host's memory":       {script: "free -b | awk '/Mem/ {print $2}'", want: fmt.Sprint(300 << 20)},
		"loopback":            {script: connect("127.0.0.1", listener.Addr().(*net.TCPAddr).Port), want: "refused", never: "connected"},
		"public address":      {script: connect("1.1.1.1", 53), want: "unreachable", never: "connected"},
		"metadata service":    {script: connect("169.254.169.254", 80), want: "unreachable", never: "connected"},
		"environment":         {script: "env; cat /proc/1/environ /proc/*/environ 2>/dev/null", want: "PATH=", never: canary},
		"its user":            {script: "id -un; id -u", want: "user\n", never: "\n0\n"},
		"capabilities":        {script: "grep ^Cap /proc/self/status | grep -v 0000000000000000 || echo none", want: "none"},
		"new privileges":      {script: "grep NoNewPrivs /proc/self/status", want: "1"},
		"system calls":        {script: "grep ^Seccomp: /proc/self/status", want: "2"},
		"name spaces":         {script: "unshare -U true || echo refused; unshare -m true || echo refused", want: "refused\nrefused"},
		"guest's memory":      {script: "head -c1 /proc/1/mem", want: "denied"},
		"guest's socket":      {script: "ls /opt/cove/host || ls -l /opt/cove/host/guest", want: "No such file"},
		"killing the guest":   {script: "kill -9 1 || echo refused", want: "refused"},
		"system folders":      {script: "touch /usr/x /etc/x /x /opt/cove/x /run/x 2>&1 | grep -cE 'denied|Read-only'", want: "5"},
		"hostname":            {script: "uname -n", want: "sandbox"},
		"mounting":            {script: "mount -t tmpfs none /tmp || echo refused", want: "refused"},
		"devices":             {script: "ls /dev; mknod /tmp/sda b 8 0 || echo refused", want: "refused", never: "sda\n"},
		"kernel's settings":   {script: "echo x > /proc/sys/kernel/core_pattern || echo 1 > /proc/sysrq-trigger", want: "Read-only"},
		"control groups":      {script: "find /sys/fs/cgroup -writable 2>/dev/null | grep . || echo none", want: "none"},
		"Docker's socket":     {script: "ls /var/run/docker.sock /run/docker.sock", want: "No such file"},
		"scratch space":       {script: "touch /tmp/a /dev/shm/a && stat -c %a /tmp /dev/shm", want: "1777\n1777"},
		"same place, 2 names": {script: "echo x > /mnt/data/y && cat /home/user/y", want: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, out := sandboxtest.Shell(t, l, c.script)
			if c.want != "" && !strings.Contains(out, c.want) || c.never != "" && strings.Contains(out, c.never) {
				t.Errorf("%s\ngave %q", c.script, out)
			}
		})
	}
	if m, ok := sb.(sandbox.Meter); ok {
		if used, err := m.CPU(); err != nil || used <= 0 {
			t.Errorf("processor time: %v, %v", used, err)
		}
	}
	if w, ok := sb.(sandbox.Weigher); !ok || w.Memory() <= 0 {
		t.Error("its memory is not known")
	}
}

// TestBounds fills everything that can be filled; the guest must answer afterwards.
func TestBounds(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	limits := sandbox.Limits{Memory: 512 << 20, Processes: 64, OpenFiles: 256, Tmp: 32 << 20, Workspace: 64 << 20}
	e := newEngine(t)
	if _, err := e.LimitsEnforcedBy(t.Context()); err != nil {
		testneeds.RunsElsewhere(t, "a daemon that limits its containers", err.Error())
	}
	_, l := sandboxtest.Start(t, e, sandbox.Spec{Limits: limits})
	_, beside := sandboxtest.Start(t, e, sandbox.Spec{Limits: limits})
	for _, c := range []struct{ name, script, want string }{
		{"full workspace", "head -c 100M /dev/zero > big; wc -c < big; rm big", "No space left"},
		{"full /tmp", "head -c 100M /dev/zero > /tmp/big; rm /tmp/big", "No space left"},
		{"full /dev/shm", "head -c 100M /dev/zero > /dev/shm/big; rm /dev/shm/big", "No space left"},
		{"open files", "ulimit -n", "256"},
		{"fork bomb", "bash -c 'for i in $(seq 200); do sleep 20 & done; wait' 2>&1 | grep -m1 -o 'Resource temporarily unavailable'", "Resource temporarily unavailable"},
		{"no workspace folder", "rm -rf /home/user; cd /; ls -ld /home/user", "/home/user"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, out := sandboxtest.Shell(t, l, c.script)
			if !strings.Contains(out, c.want) {
				t.Errorf("gave %q", out)
			}
			// The limit of processes is each sandbox's own.
			if _, out := sandboxtest.Shell(t, beside, "true & wait; echo alive"); !strings.Contains(out, "alive") {
				t.Errorf("another sandbox: %q", out)
			}
			if _, out := sandboxtest.Shell(t, l, "pkill sleep; echo alive"); !strings.Contains(out, "alive") {
				t.Errorf("afterwards: %q", out)
			}
		})
	}
}
