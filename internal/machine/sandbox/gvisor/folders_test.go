package gvisor_test

import (
	"os"
	"path/filepath"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

// TestFoldersOfCodesOwn has code without a root make folders where programs expect some, and tries to change those of the system.
func TestFoldersOfCodesOwn(t *testing.T) {
	t.Parallel()
	testneeds.TakeSlot(t)
	state := t.TempDir()
	e := gvisor.New(gvisor.Options{State: state, Executable: sandboxtest.Binary(t)})
	sb, l := sandboxtest.Start(t, e, sandbox.Spec{Limits: sandbox.Limits{Tmp: 4 << 20}})
	check := func(script, want string) {
		t.Helper()
		if _, out := sandboxtest.Shell(t, l, script); out != want {
			t.Errorf("%s\ngave %q, not %q", script, out, want)
		}
	}
	check("mkdir -p /code/src /opt/own /srv/data && echo text > /code/src/a && cat /code/src/a && cd /code && pwd", "text\n/code\n")
	check("for f in /etc/new /usr/new /opt/cove/new /root/new; do (mkdir $f 2>/dev/null || echo refused); done", "refused\nrefused\nrefused\nrefused\n")
	check("for f in /etc /usr /opt /home/user /workspace /bin; do mv $f /moved 2>/dev/null || echo refused; done", "refused\nrefused\nrefused\nrefused\nrefused\nrefused\n")
	check("for f in /workspace /bin /etc/passwd; do rm -f $f 2>/dev/null || echo refused; done", "refused\nrefused\nrefused\n")
	check("head -c 8000000 /dev/zero > /code/much 2>/dev/null || echo full; rm /code/much", "full\n")

	_, other := sandboxtest.Start(t, e, sandbox.Spec{})
	if _, out := sandboxtest.Shell(t, other, "ls -d /code /opt/own 2>/dev/null; echo none"); out != "none\n" {
		t.Errorf("another sandbox has %q", out)
	}
	// Everybody may make entries in the folder below it on the host who can name it: nobody else's user can.
	open := 0
	for _, walked := range []string{state, state + "/*", state + "/*/*"} {
		found, _ := filepath.Glob(walked)
		for _, path := range found {
			info, err := os.Lstat(path)
			if err != nil || info.Mode()&os.ModeSticky == 0 {
				continue
			}
			open++
			if above, err := os.Stat(filepath.Dir(path)); err != nil || above.Mode().Perm()&0o044 != 0 || len(filepath.Base(path)) < 26 {
				t.Errorf("%s can be found in a folder of mode %v, %v", path, above.Mode(), err)
			}
		}
	}
	if open != 1 {
		t.Errorf("%d folders are open, not one that both sandboxes share", open)
	}
	saved := sandboxtest.Checkpoint(t, sb, l, false)
	_, l = sandboxtest.Restore(t, e, sandbox.Spec{Limits: sandbox.Limits{Tmp: 4 << 20}}, saved)
	check("cat /code/src/a && echo more >> /code/src/a && cat /code/src/a && mkdir /later && ls -d /opt/own /later", "text\ntext\nmore\n/later\n/opt/own\n")
}
