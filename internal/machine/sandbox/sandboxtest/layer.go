package sandboxtest

import (
	"os"
	"path/filepath"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/image"
	"cove/internal/machine/rootfs"
	"cove/internal/machine/sandbox"
)

// greetLayer is a layer of system packages with a program, in folders that the host has and in others.
func greetLayer(t *testing.T) (root string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layer")
	root = filepath.Join(dir, "root")
	for name, text := range map[string]string{
		"usr/bin/greet": "#!/bin/sh\ncat /usr/share/greet/words /etc/greet/words /var/lib/greet/words /opt/greet/words\n", "usr/share/greet/words": "usr\n", "etc/greet/words": "etc\n", "var/lib/greet/words": "var\n",
		"opt/greet/words": "opt\n", "etc/passwd": "hostile\n", "var/lib/dpkg/status-of-greet": "",
	} {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // sandboxed code reads it
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o755); err != nil { //nolint:gosec // the same
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, image.UseName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for above := dir; above != os.TempDir() && above != "/"; above = filepath.Dir(above) { // code of other users passes through
		if err := os.Chmod(above, 0o755); err != nil { //nolint:gosec // see above
			t.Fatal(err)
		}
	}
	if err := rootfs.CompleteLayer(root, "/"); err != nil {
		t.Fatal(err)
	}
	return root
}

// hasALayer has the programs of a layer beside the host's, read-only, and everything of cove's around them.
func hasALayer(t *testing.T, e sandbox.Engine) {
	layer := greetLayer(t)
	spec := sandbox.Spec{Layer: layer}
	if !e.Isolates() {
		spec.ID = sandbox.NewID("test")
		if _, err := e.Start(t.Context(), spec); !problem.Has(err, problem.SystemPackagesUnsupported) {
			t.Errorf("got %v", err)
		}
		gives(t, "system packages", "no")
		return
	}
	_, l := Start(t, e, spec)
	for _, one := range []struct{ script, want string }{
		{"greet", "usr\netc\nvar\nopt\n"},
		{"/usr/bin/env sh -c 'ls -d /usr/bin/env /usr/bin/greet /usr/lib'; sort --version | head -c 4", "/usr/bin/env\n/usr/bin/greet\n/usr/lib\nsort"},
		{"id -un; ls /var/lib", "user\ngreet\n"},
		{"for f in /usr/x /usr/bin/greet /usr/share/greet/x /etc/greet/x /opt/greet/x; do touch $f 2>/dev/null && echo $f; done; ln -s x /usr/bin/y 2>/dev/null; echo over", "over\n"},
	} {
		if code, out := Shell(t, l, one.script); code != 0 || out != one.want {
			t.Errorf("%s\ngave %d, %q, not %q", one.script, code, out, one.want)
		}
	}
	if _, err := image.TakeUnused(filepath.Dir(layer)); err == nil {
		t.Error("the layer of a sandbox can be removed")
	}
	gives(t, "system packages", "yes")
	if _, saves := e.(sandbox.Saver); !saves { // which those with a root are
		return
	}
	spec.Limits.System = 1 << 30
	_, l = Start(t, e, spec)
	const change = "sudo sh -c 'echo more >> /usr/share/greet/words; echo x > /usr/bin/new; rm /etc/greet/words; echo again > /etc/greet/words'; greet; cat /usr/bin/new; ls /var/lib/dpkg/status-of-greet; id -un"
	if code, out := Shell(t, l, change); code != 0 || out != "usr\nmore\nagain\nvar\nopt\nx\n/var/lib/dpkg/status-of-greet\nuser\n" {
		t.Errorf("with a root: %d, %q", code, out)
	}
	if text, err := os.ReadFile(filepath.Join(layer, "usr/share/greet/words")); err != nil || string(text) != "usr\n" {
		t.Errorf("root of a sandbox changed the layer: %q, %v", text, err)
	}
}
