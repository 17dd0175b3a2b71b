package gvisor_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
)

func newEngine(t *testing.T) *gvisor.Engine {
	return gvisor.New(gvisor.Options{State: t.TempDir(), Executable: sandboxtest.Binary(t)})
}

func TestContract(t *testing.T) {
	t.Parallel()
	sandboxtest.Run(t, func(t *testing.T) sandbox.Engine { return newEngine(t) })
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := newEngine(t).Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestIsolation looks for everything of the host that sandboxed code must not find.
func TestIsolation(t *testing.T) {
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
	// A folder that everybody on the host may change, which is shown: it is not its mode that keeps code from it.
	shown := filepath.Join(t.TempDir(), "shown")
	if err := errors.Join(os.Mkdir(shown, 0o700), os.WriteFile(filepath.Join(shown, "text"), []byte("own"), 0o600), os.Chmod(shown, 0o777), os.Chmod(filepath.Join(shown, "text"), 0o666)); err != nil {
		t.Fatal(err)
	}
	_, l := sandboxtest.Start(t, newEngine(t), sandbox.Spec{Mounts: []sandbox.Mount{{Source: sandbox.HostFolder(shown), Target: "/opt/shown"}}})
	connect := func(host string, port int) string {
		return fmt.Sprintf("exec 2>&1; bash -c 'exec 3<>/dev/tcp/%s/%d' && echo connected", host, port)
	}
	for name, c := range map[string]struct{ script, want, never string }{
		"is gVisor":           {script: "uname -r", want: "gvisor"},
		"host's shadow":       {script: "cat /etc/shadow", want: "No such file"},
		"host's /tmp":         {script: "cat " + secret, want: "No such file"},
		"host's home":         {script: "ls -A " + home, never: "."},
		"host's processes":    {script: "ls /proc | grep -c '^[0-9]'", never: "00"},
		"loopback":            {script: connect("127.0.0.1", listener.Addr().(*net.TCPAddr).Port), want: "refused", never: "connected"},
		"public address":      {script: connect("1.1.1.1", 53), want: "unreachable", never: "connected"},
		"metadata service":    {script: connect("169.254.169.254", 80), want: "unreachable", never: "connected"},
		"environment":         {script: "env; cat /proc/1/environ /proc/*/environ 2>/dev/null", want: "PATH=", never: canary},
		"user":                {script: "id -u", want: "1000"},
		"capabilities":        {script: "grep ^Cap /proc/self/status | grep -v 0000000000000000 || echo none", want: "none"},
		"guest's rights":      {script: "grep -E '^Cap(Prm|Eff|Bnd|Inh)' /proc/1/status | tr -s '\\t\\n' ' '", want: "CapInh: 0000000000000000 CapPrm: 00000000000031e0 CapEff: 00000000000031e0 CapBnd: 0000000000000000"},
		"new privileges":      {script: "grep NoNewPrivs /proc/self/status", want: "1"},
		"guest's memory":      {script: "head -c1 /proc/1/mem", want: "denied"},
		"guest's socket":      {script: "ls /opt/cove/host", want: "denied"},
		"killing the guest":   {script: "kill -9 1 || echo refused", want: "refused"},
		"system folders":      {script: "touch /usr/x /etc/x /opt/cove/x /run/x /bin/x /dev/x 2>&1 | grep -cE 'denied|Read-only'", want: "6"},
		"host's folders":      {script: "cd /opt/shown && { cat text && touch new; rm -f text; sh -c 'echo other >text'; } 2>&1 | grep -c Read-only", want: "3"},
		"hostname":            {script: "uname -n", want: "sandbox"},
		"mounting":            {script: "mount -t tmpfs none /tmp || echo refused", want: "refused"},
		"mount sources":       {script: "cat /proc/self/mountinfo", never: filepath.Dir(secret)},
		"raw block devices":   {script: "ls /dev", never: "sda"},
		"same place, 2 names": {script: "echo x > /mnt/data/y && cat /home/user/y", want: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, out := sandboxtest.Shell(t, l, c.script)
			if c.want != "" && !strings.Contains(out, c.want) || c.never != "" && strings.Contains(out, c.never) {
				t.Errorf("%s\ngave %q", c.script, out)
			}
		})
	}
}

// TestBounds fills everything that can be filled; the guest must answer afterwards.
func TestBounds(t *testing.T) {
	t.Parallel()
	limits := sandbox.Limits{Memory: 512 << 20, Processes: 64, OpenFiles: 256, Tmp: 32 << 20, Workspace: 64 << 20}
	_, l := sandboxtest.Start(t, newEngine(t), sandbox.Spec{Limits: limits})
	for _, c := range []struct{ name, script, want string }{
		{"full workspace", "head -c 100M /dev/zero > big; wc -c < big; rm big", "No space left"},
		{"full /tmp", "head -c 100M /dev/zero > /tmp/big; rm /tmp/big", "No space left"},
		{"full /dev/shm", "head -c 100M /dev/zero > /dev/shm/big; rm /dev/shm/big", "No space left"},
		{"open files", "ulimit -n", "256"},
		{"fork bomb", "bash -c 'for i in $(seq 200); do sleep 2 & done; wait' 2>&1 | grep -m1 -o 'Resource temporarily unavailable'", "Resource temporarily unavailable"},
		{"no workspace folder", "rm -rf /home/user; cd /; ls -ld /home/user", "/home/user"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, out := sandboxtest.Shell(t, l, c.script)
			if !strings.Contains(out, c.want) {
				t.Errorf("gave %q", out)
			}
			if _, out := sandboxtest.Shell(t, l, "pkill sleep; echo alive"); !strings.Contains(out, "alive") {
				t.Errorf("afterwards: %q", out)
			}
		})
	}
}

// TestSentryPosture looks at the sandbox from the host: the process that faces the code must hold next to nothing.
func TestSentryPosture(t *testing.T) {
	t.Parallel()
	sb, _ := sandboxtest.Start(t, newEngine(t), sandbox.Spec{})
	sentries := sandboxtest.Processes(t, "runsc-sandbox", sb.ID())
	if len(sentries) != 1 {
		t.Fatalf("found %d sentries", len(sentries))
	}
	proc := fmt.Sprintf("/proc/%d", sentries[0])
	status, err := os.ReadFile(proc + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Seccomp:\t2", "NoNewPrivs:\t1"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("status lacks %q", want)
		}
	}
	for _, ns := range []string{"mnt", "net", "ipc", "uts", "pid"} {
		theirs, err1 := os.Readlink(proc + "/ns/" + ns)
		ours, err2 := os.Readlink("/proc/self/ns/" + ns)
		if err1 != nil || err2 != nil || theirs == ours {
			t.Errorf("namespace %s is shared with the host: %v %v", ns, err1, err2)
		}
	}
	root, err := os.ReadDir(proc + "/root")
	if err == nil && len(root) > 3 {
		t.Errorf("the sentry's root holds %d entries", len(root))
	}
}
