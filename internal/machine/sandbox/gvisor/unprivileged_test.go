package gvisor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
)

// TestUsersOfSandboxes has an engine work in a folder that nobody but its owner comes to, by way of a symbolic link: where cove is root, each
// sandbox is another user, who comes to what it needs all the same. A third user of the host comes to nothing of a sandbox's.
func TestUsersOfSandboxes(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.MkdirAll(filepath.Join(closed, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(closed, link); err != nil {
		t.Fatal(err)
	}
	shown := filepath.Join(closed, "shown")
	if err := os.Mkdir(shown, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shown, "file"), []byte("as it is"), 0o644); err != nil {
		t.Fatal(err)
	}
	e := gvisor.New(gvisor.Options{State: filepath.Join(link, "state"), Executable: sandboxtest.Binary(t)})
	users := map[string]bool{}
	for range 2 {
		sb, l := sandboxtest.Start(t, e, sandbox.Spec{Mounts: []sandbox.Mount{{Source: sandbox.HostFolder(filepath.Join(link, "shown")), Target: "/opt/shown"}}})
		if _, out := sandboxtest.Shell(t, l, "cat /opt/shown/file"); out != "as it is" {
			t.Errorf("code reads %q", out)
		}
		folder, err := os.Stat(filepath.Join(closed, "state", sb.ID()))
		if err != nil || folder.Mode().Perm()&0o007 != 0 {
			t.Errorf("the sandbox's folder: %v, %v", folder.Mode(), err)
		}
		for _, name := range []string{"runsc-sandbox", "runsc-gofer"} {
			pids := sandboxtest.Processes(t, name, sb.ID())
			if len(pids) != 1 {
				t.Fatalf("there are %d processes %s", len(pids), name)
			}
			users[strings.Fields(postureOf(t, pids[0])["Uid"].(string))[0]] = true
		}
	}
	if want := map[bool]int{true: 2, false: 1}[os.Geteuid() == 0]; len(users) != want {
		t.Errorf("the processes of two sandboxes are the users %v, want %d", users, want)
	}
}
