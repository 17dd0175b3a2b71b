package rootfs_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cove/internal/machine/rootfs"
)

// files makes files, folders (names that end with a slash) and links (text that begins with ->) below a folder.
func files(t *testing.T, root string, all map[string]string) {
	t.Helper()
	for name, text := range all {
		at := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		target, isLink := strings.CutPrefix(text, "->")
		switch {
		case err != nil:
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o755)
		case isLink:
			err = os.Symlink(target, at)
		default:
			err = os.WriteFile(at, []byte(text), 0o644) //nolint:gosec // everybody reads a layer
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// madeLayer is a layer beside a host that has some of its folders.
func madeLayer(t *testing.T) (layer string) {
	t.Helper()
	host, layer := t.TempDir(), t.TempDir()
	files(t, host, map[string]string{
		"usr/bin/sh": "host", "usr/bin/dot": "the host's", "usr/bin/pager": "->/etc/alternatives/pager", "usr/bin/python3.11": "interpreter", "usr/bin/python3.11-config": "script", "usr/include/stdio.h": "",
		"usr/lib/x/libc.so.6": "host", "usr/lib/x/libz.so": "->libz.so.1", "usr/lib/x/libz.so.1": "old", "usr/lib/y/z": "", "usr/share/secret/x": "",
		"etc/fonts/fonts.conf": "host's", "var/lib/dpkg/info/dash.list": "", "srv/x": "",
	})
	files(t, layer, map[string]string{
		"usr/bin/dot": "layer", "usr/lib/x/libz.so.1": "new", "usr/lib/x/graphviz/plugin.so": "layer", "usr/lib/y": "->/etc", "usr/share/secret": "->../../../..",
		"etc/fonts/conf.d/10.conf": "layer", "etc/ld.so.cache": "layer's cache", "etc/graphviz/config": "layer", "etc/passwd": "layer", "var/lib/dpkg/status": "layer", "var/lib/fonts/x": "layer", "opt/tool/run": "layer",
	})
	if err := rootfs.CompleteLayer(layer, host); err != nil {
		t.Fatal(err)
	}
	return layer
}

// TestCompleteLayer has links to what only the host has, and nothing else of the host's.
func TestCompleteLayer(t *testing.T) {
	t.Parallel()
	layer := madeLayer(t)
	const beside = "/opt/cove/system"
	for name, want := range map[string]string{
		"usr/bin/sh": beside + "/usr/bin/sh", "usr/bin/pager": "/etc/alternatives/pager", "usr/include": beside + "/usr/include", "usr/bin/python3.11-config": beside + "/usr/bin/python3.11-config",
		"usr/lib/x/libc.so.6": beside + "/usr/lib/x/libc.so.6", "usr/lib/x/libz.so": "libz.so.1", "usr/lib/y": "/etc", "usr/share/secret": "../../../..",
		"etc/fonts/fonts.conf": beside + "/etc/fonts/fonts.conf", "var/lib/dpkg/info": beside + "/var/lib/dpkg/info",
	} {
		if target, err := os.Readlink(filepath.Join(layer, name)); err != nil || target != want {
			t.Errorf("%s leads to %q (%v)", name, target, err)
		}
	}
	for name, want := range map[string]string{"usr/bin/dot": "layer", "usr/lib/x/libz.so.1": "new", "usr/bin/python3.11": "interpreter"} {
		at := filepath.Join(layer, name)
		text, err := os.ReadFile(at)
		if info, lerr := os.Lstat(at); err != nil || lerr != nil || string(text) != want || !info.Mode().IsRegular() {
			t.Errorf("%s is %q (%v, %v)", name, text, err, lerr)
		}
	}
	if _, err := os.Lstat(filepath.Join(layer, "srv")); err == nil {
		t.Error("a folder that the layer does not have is there")
	}
	if rootfs.SystemPlace(layer, "/usr") != beside+"/usr" || rootfs.SystemPlace(layer, "/etc/ssl") != "/etc/ssl" || rootfs.SystemPlace("", "/usr") != "/usr" {
		t.Error("the host's folders are elsewhere")
	}
}

// TestLayerIsShown has a layer shown around what is there already, and its small files copied where a system can be changed.
func TestLayerIsShown(t *testing.T) {
	t.Parallel()
	layer := madeLayer(t)
	for _, changeable := range []bool{false, true} {
		tree := rootfs.Tree{}
		tree.Users(1000, "/home/user", "/bin/sh", "", "")
		tree.Configuration(layer)
		tree.Open("/opt")
		tree.Dir("/opt/cove/system/usr")
		shown, err := tree.Layer(layer, changeable, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		var at []string
		for _, s := range shown {
			if s.From != filepath.Join(layer, s.At) {
				t.Errorf("%s is shown at %s", s.From, s.At)
			}
			at = append(at, s.At)
		}
		want := []string{"/etc/fonts", "/etc/graphviz", "/opt/tool", "/usr", "/var/lib/fonts"}
		if changeable {
			want = []string{"/opt/tool", "/usr", "/var"}
		}
		if slices.Sort(at); !slices.Equal(at, want) {
			t.Errorf("changeable: %v; shown are %q", changeable, at)
		}
		if !tree["/opt"].Open || tree["/etc/ld.so.cache"].Text != "layer's cache" || strings.Contains(tree["/etc/passwd"].Text, "layer") {
			t.Errorf("changeable: %v; the tree is %v", changeable, slices.Sorted(maps.Keys(tree)))
		}
		if changeable && (tree["/etc/graphviz/config"].Text != "layer" || tree["/etc/fonts/fonts.conf"].Kind != "link") {
			t.Errorf("of /etc, the tree has %v", slices.Sorted(maps.Keys(tree)))
		}
	}
}
