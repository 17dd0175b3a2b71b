package sandboxtest

import (
	"os"
	"path/filepath"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/image"
	"cove/internal/machine/image/imagetest"
	"cove/internal/machine/sandbox"
)

// shellImage unpacks an image with a shell of this machine, and with what a hostile maker would put where something is mounted.
func shellImage(t *testing.T) *image.Image {
	t.Helper()
	reference := imagetest.Layout(t, imagetest.Contents{
		Programs: map[string]string{"/bin/sh": "/bin/sh", "/usr/bin/cat": "/bin/cat", "/usr/bin/id": "/usr/bin/id", "/usr/bin/touch": "/usr/bin/touch"},
		Files: map[string]string{
			"/usr/share/mark": "from the image\n", "/home/user/hidden": "", "/home/other/seen": "seen\n", "/top": "at the top\n", "/etc/mark": "configured\n", "/opt/cove/shared/evil": "", "/tmp": "no folder",
			"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\napp:x:1001:1001::/srv:/bin/sh\n",
		},
		Links: map[string]string{"/mnt": "/etc", "/run": "/etc", "/var/link": "/etc/mark", "/opt/data": "/etc"},
	})
	r, err := image.Parse(reference)
	if err != nil {
		t.Fatal(err)
	}
	i, err := image.Store{Dir: filepath.Join(t.TempDir(), "images"), Size: 1 << 30}.Ensure(t.Context(), r, image.Get{})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// beginsFromAnImage has the image's programs and files in the place of the host's, with everything of cove's around them, and nothing of its maker's where something is mounted.
func beginsFromAnImage(t *testing.T, e sandbox.Engine) {
	i := shellImage(t)
	shown := t.TempDir()
	if err := os.WriteFile(filepath.Join(shown, "text"), []byte("shown\n"), 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shown, 0o755); err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Root: i.Root(), Mounts: []sandbox.Mount{{Source: sandbox.HostFolder(shown), Target: "/opt/data/here"}}}
	if !e.Isolates() {
		spec.ID = sandbox.NewID("test")
		if _, err := e.Start(t.Context(), spec); !problem.Has(err, problem.ImageUnfit) {
			t.Errorf("got %v", err)
		}
		gives(t, "begins from an image", "no")
		return
	}
	sb, l := Start(t, e, spec)
	for _, one := range []struct{ script, want string }{
		{"cat /usr/share/mark /top /etc/mark /var/link /home/other/seen", "from the image\nat the top\nconfigured\nconfigured\nseen\n"},
		{"pwd; id -un; echo text > kept && cat kept", "/home/user\nuser\ntext\n"},
		{"cat /opt/data/here/text", "shown\n"},
		{"echo /usr/bin/*; echo /home/user/*; echo /mnt/data/*", "/usr/bin/cat /usr/bin/id /usr/bin/touch\n/home/user/kept\n/mnt/data/kept\n"},
		{"for f in /usr/x /etc/x /bin/sh /opt/x /home/x; do touch $f 2>/dev/null && echo $f; done; echo x > /tmp/x; cat /tmp/x", "x\n"},
		{"id -un app; cat /etc/hostname; cat /etc/shadow 2>/dev/null; echo over", "app\nsandbox\nover\n"},
	} {
		if code, out := Shell(t, l, one.script); code != 0 || out != one.want {
			t.Errorf("%s\ngave %d, %q, not %q", one.script, code, out, one.want)
		}
	}
	if release, err := image.Hold(sandbox.Spec{Root: i.Root()}); err != nil {
		t.Error(err)
	} else {
		release()
	}
	store := image.Store{Dir: filepath.Dir(filepath.Dir(i.Root()))}
	if err := store.Remove(i); !problem.Has(err, problem.ImageUsed) {
		t.Errorf("the image of a sandbox was removed: %v", err)
	}
	if err := sb.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.Remove(i); err != nil {
		t.Error(err)
	}
	spec.ID = sandbox.NewID("test")
	if _, err := e.Start(t.Context(), spec); !problem.Has(err, problem.ImageMissing) {
		t.Errorf("a sandbox began from an image that is gone: %v", err)
	}
	gives(t, "begins from an image", "yes")
}
