package sandboxtest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/machine/sandbox"
)

// asRoot runs a line as root and returns its exit status and output, stderr after stdout.
func asRoot(t *testing.T, l *guestlink.Link, line string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), processPatience)
	defer cancel()
	out, errs, exit := told(ctx, t, l, shellScript(ctx, t, l, line, process.Start{Root: true}))
	return exit.Code, out + errs
}

// secrets makes a folder with two folders, of whose names a sandbox is to know one.
func secrets(t *testing.T) (dir string, mount sandbox.Mount) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"known-1", "other-2", "later-3"} {
		if err := os.MkdirAll(filepath.Join(dir, name, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "sub", "text"), []byte(name), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir, sandbox.Mount{Source: sandbox.SecretFolder(dir), Target: "/opt/secrets"}
}

// attackGuest tries each way to end or to stop the guest, with a signal that does so and, for those that are not refused, one that does nothing. Signals to others still go.
const attackGuest = `python3 - <<'END'
import ctypes, fcntl, os, platform, resource, signal, socket, subprocess
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": {"kill": 62, "tkill": 200, "tgkill": 234, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297}, "aarch64": {"kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240}}[platform.machine()]
info = ctypes.create_string_buffer(128)
info[8:12] = (-1).to_bytes(4, "little", signed=True)
thread = max(int(t) for t in os.listdir("/proc/1/task"))
def call(name, *args):
    if libc.syscall(number[name], *args) != 0:
        raise OSError(ctypes.get_errno(), name)
def owner():
    a, b = socket.socketpair()
    fcntl.fcntl(a, fcntl.F_SETOWN, 1)
    fcntl.fcntl(a, 10, signal.SIGKILL)
    fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    b.send(b"x")
ways = [lambda: os.kill(1, 9), lambda: os.kill(1, 19), lambda: os.kill(1, 15), lambda: call("tkill", 1, 9), lambda: call("tkill", thread, 9), lambda: call("tgkill", 1, 1, 9), lambda: call("tgkill", 1, thread, 19),
    lambda: call("rt_sigqueueinfo", 1, 9, info), lambda: call("rt_tgsigqueueinfo", 1, thread, 9, info), lambda: os.pidfd_open(1), lambda: resource.prlimit(1, resource.RLIMIT_CPU, (1, 1)), owner]
refused = 0
for n, way in enumerate(ways):
    try:
        way()
        print("way", n, "was not refused")
    except PermissionError:
        refused += 1
p = subprocess.Popen(["sleep", "60"])
p.send_signal(9)
print("refused:", refused, "of", len(ways) if p.wait() == -9 else "none, and others cannot be ended")
END
`

// hasARoot changes the system of a sandbox as root, and looks for what root could find or do beyond.
func hasARoot(t *testing.T, e sandbox.Engine) {
	dir, mount := secrets(t)
	spec := sandbox.Spec{Mounts: []sandbox.Mount{mount}, Shown: []string{"known-1", "no-such"}, Limits: sandbox.Limits{System: 64 << 20}}
	s, saves := e.(sandbox.Saver)
	if !saves {
		if _, err := e.Start(t.Context(), sandbox.Spec{ID: sandbox.NewID("test"), Limits: spec.Limits}); !problem.Has(err, problem.RootAbsent) {
			t.Errorf("got %v", err)
		}
		gives(t, "a root of a session", "no")
		return
	}
	plain, without := Start(t, e, sandbox.Spec{})
	_, err := without.StartProcess(t.Context(), guestlink.ToStart(ident.New(ident.Process), process.Start{Args: []string{"id"}, Root: true}, []string{"PATH=/usr/bin:/bin"}, "", 0))
	if !problem.Has(err, problem.RootAbsent) {
		t.Errorf("in a sandbox without a root: %v", err)
	}
	if _, out := Shell(t, without, "sudo id"); strings.Contains(out, "uid=0") {
		t.Errorf("sudo says %q", out)
	}
	_ = plain.Stop(t.Context())

	sb, l := Start(t, e, spec)
	check := func(name, line, want string) {
		t.Helper()
		if _, out := asRoot(t, l, line); !strings.Contains(out, want) {
			t.Errorf("%s: %s\ngave %q, not %q", name, line, out, want)
		}
	}
	check("its user", "id -u; echo $HOME", "0\n/root\n")
	check("its capabilities", "grep CapEff /proc/self/status", "CapEff:\t00000000a00405fb")
	check("the bounding set", "grep CapBnd /proc/self/status", "CapBnd:\t0000000000000000")
	check("writing", "echo changed > /usr/bin/new && chmod 755 /usr/bin/new && echo x > /etc/new && echo x > /new && rm /usr/bin/env && cat /usr/bin/new && ls /usr/bin/env", "changed\nls: ")
	check("owners", "touch /srv/a && chown 1000:1000 /srv/a && stat -c %u:%g /srv/a", "1000:1000")
	check("mounting", "mount -t tmpfs none /srv || echo refused", "refused")
	check("namespaces", "unshare -m true || echo refused; unshare -U true || echo refused", "refused")
	check("devices", "mknod /dev/sda b 8 0 || echo refused", "refused")
	check("login shells", "PATH=/own:/usr/bin:/bin sh -lc 'echo $PATH'", "/own:/usr/bin:/bin")
	check("devices for programs", "mknod /dev/cuse c 10 203 || mknod ~/cuse c 10 203 || mknod /tmp/cuse c 10 203 || echo refused", "refused")
	check("the guest's memory", "head -c1 /proc/1/mem || echo refused", "refused")
	check("the guest's root", "ls /proc/1/root/ || echo refused", "refused")
	check("the guest's end", attackGuest, "refused: 12 of 12\n")
	check("packets", "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)' 2>&1 || echo refused", "refused")
	check("what is secret", "ls /opt/secrets; cat /opt/secrets/known-1/sub/text", "known-1\nknown-1")
	check("what other sandboxes use", "ls /opt/cove/shared | grep -vc ^cove-guest-", "0")
	check("what cannot be changed", "touch /opt/secrets/x /opt/secrets/known-1/sub/text /opt/cove/shared/x || echo refused", "refused")
	if err := sb.(sandbox.Shower).Show(t.Context(), "later-3"); err != nil {
		t.Error(err)
	}
	check("what is shown later", "ls /opt/secrets; cat /opt/secrets/later-3/sub/text", "known-1\nlater-3\nlater-3")
	if _, out := Shell(t, l, "sudo -n id -u; grep CapEff /proc/self/status; grep CapInh /proc/self/status; sudo sh -c 'exit 7'; echo $?; echo in | sudo cat; sudo -u user id -u; touch /usr/x || echo no"); !strings.HasPrefix(out, "0\nCapEff:\t0000000000000000\nCapInh:\t0000000000000000\n7\nin\n1000\nno\n") {
		t.Errorf("the user's sudo gave %q", out)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "known-1", "sub", "text")); err != nil || string(text) != "known-1" {
		t.Errorf("on the host: %q, %v", text, err)
	}
	if _, err := os.Stat("/usr/bin/env"); err != nil {
		t.Errorf("on the host: %v", err)
	}
	if _, err := os.Stat("/usr/bin/new"); err == nil {
		t.Error("the host has what the sandbox wrote")
	}

	saved := Checkpoint(t, sb, l, true)
	l = connect(t, sb)
	check("after a save", "cat /usr/bin/new /etc/new; dd if=/dev/zero of=/usr/full bs=1M count=200 2>&1 | tail -1; rm -f /usr/full", "changed\nx\n")
	spec.Shown = []string{"known-1", "later-3"}
	_, l = Restore(t, s, spec, saved)
	check("after a restore", "cat /usr/bin/new /etc/new; ls /usr/bin/env; cat /opt/secrets/later-3/sub/text", "changed\nx\n")
	check("after a restore", "sudo id -u; cat /opt/secrets/later-3/sub/text", "0\nlater-3")
	check("beyond the quota", "dd if=/dev/zero of=/usr/full bs=1M count=200 2>&1", "No space left")
	gives(t, "a root of a session", "yes")
}
