//go:build !fuzz

package layer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/deps/layer"
)

// refusal stands for what either the mount or the mode of a file answers.
const refusal = "EROFS or EACCES"

// TestSandboxChangesNothing has code in a real sandbox try to change a layer, and to find others than the one that it was told of.
func TestSandboxChangesNothing(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, filepath.Join(t.TempDir(), "packages"), layer.Limits{})
	secretive := ensure(t, s, closure(t, x.add(t, dist("other", "other.py", "x = 1\n"))), x)
	engine := gvisor.New(gvisor.Options{State: t.TempDir(), Executable: sandboxtest.Binary(t)})
	_, l := sandboxtest.Start(t, engine, sandbox.Spec{Mounts: []sandbox.Mount{s.Mount()}})

	made := ensure(t, s, closure(t, x.add(t, dist("spam", "spam/__init__.py", "x = 'spam'\n", "spam/data.txt", "data\n"))), x) // while the sandbox runs
	before := contents(t, s.Folder())
	dir := layer.MountPoint + "/" + made.Name
	t.Cleanup(func() {
		for name, text := range contents(t, s.Folder()) {
			if before[name] != text {
				t.Errorf("%s is now %q", name, text)
			}
			delete(before, name)
		}
		if len(before) > 0 {
			t.Errorf("gone: %v", before)
		}
	})
	for name, c := range map[string]struct{ script, want, never string }{
		"sees it":              {"id -u; cat spam/__init__.py; ls", "spam", ""},
		"listing all":          {"ls -a ..; ls -aR /opt/cove/layers; echo ../*; find .. -maxdepth 1", "denied", secretive.Name[:20]},
		"listing by Python":    {"bash -c 'compgen -G \"/opt/cove/layers/*\"'; ls /proc/self/cwd/..; echo end", "end", secretive.Name[:20]},
		"names in mounts":      {"cat /proc/self/mountinfo; echo end", "end", secretive.Name[:20]},
		"overwriting":          {"echo bad > spam/__init__.py", refusal, ""},
		"appending":            {"echo bad >> spam/data.txt", refusal, ""},
		"truncating":           {"truncate -s 0 spam/data.txt", refusal, ""},
		"bytecode":             {"for f in spam/__pycache__/*.pyc; do echo bad > $f; done", refusal, ""},
		"new bytecode":         {"echo bad > spam/__pycache__/new.pyc", refusal, ""},
		"new module":           {"echo bad > json.py", refusal, ""},
		"new folder":           {"mkdir os", refusal, ""},
		"new layer":            {"mkdir ../mine", refusal, ""},
		"symlink":              {"ln -s /tmp tmp", refusal, ""},
		"hard link here":       {"ln spam/data.txt spam/more.txt", refusal, ""},
		"hard link elsewhere":  {"ln spam/data.txt /tmp/data.txt && chmod 777 /tmp/data.txt && echo bad > /tmp/data.txt; echo status $?", "status 1", ""},
		"renaming":             {"mv spam eggs", refusal, ""},
		"replacing":            {"touch /tmp/x; mv -f /tmp/x spam/__init__.py", refusal, ""},
		"removing":             {"rm -rf spam", refusal, ""},
		"removing the layer":   {"rm -rf " + dir, refusal, ""},
		"mode":                 {"chmod 777 spam/data.txt", "chmod", ""},
		"owner":                {"chown 1000 spam/data.txt", "chown", ""},
		"times":                {"touch -d 2001-01-01 spam/data.txt", "touch", ""},
		"attributes":           {"setfattr -n user.x -v y spam/data.txt 2>&1 || echo refused", "refused", ""},
		"mounting over":        {"mount --bind /tmp spam || echo refused", "refused", ""},
		"the store's own":      {"cat ../../secret ../../manifests/*; ls ../../wheels; echo end", "end", made.Name},
		"through open folders": {"exec 9< spam; echo bad > /proc/self/fd/9/x", refusal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, out := sandboxtest.Shell(t, l, "exec 2>&1; cd "+dir+" || exit; "+c.script)
			refused := strings.Contains(out, "Read-only file system") || strings.Contains(out, "Permission denied")
			if c.want == refusal && !refused || c.want != refusal && !strings.Contains(out, c.want) || c.never != "" && strings.Contains(out, c.never) {
				t.Errorf("%s\ngave %q", c.script, out)
			}
		})
	}
	for name, info := range map[string]string{"spam/data.txt": "-r--r--r--", "spam": "drwxr-xr-x"} {
		if got, err := os.Stat(filepath.Join(s.Folder(), made.Name, name)); err != nil || got.Mode().String() != info {
			t.Errorf("%s: %v, %v", name, got.Mode(), err)
		}
	}
}
