package sandboxtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
)

// hasVolumes has two sandboxes write to the same folder of the host, and looks for what of it leads out.
func hasVolumes(t *testing.T, e sandbox.Engine) {
	keeper, err := sandbox.VolumesOf(e)
	if err != nil {
		spec := sandbox.Spec{ID: sandbox.NewID("test"), Volumes: []sandbox.VolumeMount{{Folder: t.TempDir(), Target: "/data"}}}
		if _, err := e.Start(t.Context(), spec); !problem.Has(err, problem.VolumesAbsent) {
			t.Errorf("got %v", err)
		}
		gives(t, "volumes", "no")
		return
	}
	folder := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := keeper.OwnVolume(folder); err != nil {
		t.Fatal(err)
	}
	all := []sandbox.VolumeMount{{Folder: folder, Target: "/data/one"}}
	_, one := Start(t, e, sandbox.Spec{Volumes: all})
	check := func(name, line, want string) {
		t.Helper()
		if _, out := Shell(t, one, line); !strings.Contains(out, want) {
			t.Errorf("%s: %s\ngave %q, not %q", name, line, out, want)
		}
	}
	check("its owner", "stat -c %U /data/one", "user\n")
	check("writing", "mkdir -p /data/one/sub/in && echo text > /data/one/sub/a && stat -c '%U %a' /data/one/sub/a && ls /data/one", "user 644\nsub\n")
	check("links", "ln -s /etc/passwd /data/one/link; ln -s / /data/one/root; ln -s ../../../.. /data/one/up; head -1 /data/one/link; ls -d /data/one/root/home/user", "nologin\n/data/one/root/home/user\n")
	check("running", "cp /bin/true /data/one/true && /data/one/true && echo ran", "ran")
	check("devices", "mknod /data/one/sda b 8 0 || echo refused", "refused")
	check("what is not the user's", "chown 0:0 /data/one/sub/a || echo refused; mkdir /data/x || echo refused", "refused\n")

	spec := sandbox.Spec{Volumes: []sandbox.VolumeMount{{Folder: folder, Target: "/home/user/shared"}}}
	sb, other := Start(t, e, spec)
	if _, out := Shell(t, other, "cat ~user/shared/sub/a; echo more >> ~user/shared/sub/a; echo 1 > ~user/shared/new"); out != "text\n" {
		t.Errorf("another sandbox has %q", out)
	}
	check("what another wrote", "cat /data/one/sub/a /data/one/new; rm /data/one/new; echo text > /data/one/sub/a", "text\nmore\n1\n")
	if _, out := Shell(t, other, "cat ~user/shared/sub/a; ls ~user/shared/new"); !strings.HasPrefix(out, "text\nls: ") {
		t.Errorf("another sandbox has %q", out)
	}
	if s, saves := e.(sandbox.Saver); saves {
		saved := Checkpoint(t, sb, other, true)
		check("changing what a saved sandbox has", "echo later > /data/one/later; rm -r /data/one/sub; mkdir /data/one/sub; echo other > /data/one/sub/a", "")
		_, other = Restore(t, s, spec, saved)
		if _, out := Shell(t, other, "cat ~user/shared/later ~user/shared/sub/a; rm ~user/shared/later; echo text > ~user/shared/sub/a"); out != "later\nother\n" {
			t.Errorf("after a restore there is %q", out)
		}
	}
	if _, err := e.Start(t.Context(), sandbox.Spec{ID: sandbox.NewID("test"), Volumes: spec.Volumes, Limits: sandbox.Limits{System: 64 << 20}}); !problem.Has(err, problem.VolumesAbsent) {
		t.Errorf("with a root: %v", err)
	}
	part := []sandbox.VolumeMount{{Folder: folder, Sub: "sub/in", Target: "/data"}}
	if _, err := e.Start(t.Context(), sandbox.Spec{ID: sandbox.NewID("test"), Volumes: []sandbox.VolumeMount{{Folder: folder, Sub: "root/etc", Target: "/data"}}}); err == nil {
		t.Error("a link in a volume is followed")
	}
	check("a folder", "mkdir -p /data/one/sub/in; echo deep > /data/one/sub/in/b", "")
	_, two := Start(t, e, sandbox.Spec{Volumes: part})
	if _, out := Shell(t, two, "ls /data; cat /data/b; ls /data/.. | head -3; stat -c %U /data/b"); !strings.Contains(out, "b\ndeep\n") || !strings.HasSuffix(out, "user\n") {
		t.Errorf("a folder of a volume has %q", out)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "sub", "a")); err != nil || string(text) != "text\n" {
		t.Errorf("on the host: %q, %v", text, err)
	}
	gives(t, "volumes", "yes")
}
