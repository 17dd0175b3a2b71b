package rootfs_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cove/internal/machine/rootfs"
)

// TestImage has an image shown around the places of mounts, and nothing of it where one is or on the way there.
func TestImage(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"usr/bin", "home/user", "home/node/app", "etc", "srv", "opt/tool"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"usr/bin/sh": "#", "etc/passwd": "", "home/README": "read", "home/node/app/x": "", "opt/tool/x": "", "run": "a file where a folder has to be", "mnt": ""} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for at, target := range map[string]string{"bin": "usr/bin", "var": "/etc", "tmp": "/etc"} {
		if err := os.Symlink(target, filepath.Join(root, at)); err != nil {
			t.Fatal(err)
		}
	}
	tree := rootfs.Tree{}
	shown, err := tree.Image(root, []string{"/home/user", "/opt/cove/python", "/run/lock", "/var/lib/data", "/tmp", "/mnt/data/x"})
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for _, s := range shown {
		if s.From != filepath.Join(root, s.At) {
			t.Errorf("%s is shown at %s", s.From, s.At)
		}
		at = append(at, s.At)
	}
	if want := []string{"/etc", "/home/README", "/home/node", "/opt/tool", "/usr"}; !slices.Equal(slices.Sorted(slices.Values(at)), want) {
		t.Errorf("shown are %q", at)
	}
	if want := []string{"/bin", "/etc", "/home", "/home/README", "/home/node", "/opt", "/opt/tool", "/srv", "/usr"}; !slices.Equal(slices.Sorted(maps.Keys(tree)), want) {
		t.Errorf("the tree has %q", slices.Sorted(maps.Keys(tree)))
	}
	if tree["/bin"].Text != "usr/bin" || tree["/srv"].Kind != "dir" {
		t.Errorf("%+v", tree)
	}
}
