package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/moby/moby/client"

	"cove/internal/machine/rootfs"
	"cove/internal/machine/sandbox"
)

// repository begins the name of the empty image, which ends with the beginning of the SHA-256 of what is in it. Podman does not look for such a name in a registry, and
// imports under the tag latest alone.
const repository = "localhost/cove-empty-"

// ground is the image that a container begins from, which comes from here and not from a registry, and has no program in it; and what is shown there.
type ground struct {
	name    string
	archive []byte
	shown   []rootfs.Shown // of the host's system, or of the image that the sandbox begins from
	ofHost  bool           // shown is the host's system, with or without a layer
}

// usualGround is that of sandboxes with the host's system alone: places where something is mounted, and the little of /etc that is the same in each.
var usualGround = sync.OnceValue(func() ground {
	t, shown := hostTree("")
	g := groundOf(t)
	g.shown, g.ofHost = shown, true
	return g
})

// hostTree is the root file system of sandboxes with the host's system and that layer of system packages ("": none), and what of the host is shown there.
func hostTree(layer string) (t rootfs.Tree, shown []rootfs.Shown) {
	t = rootfs.Tree{}
	for _, p := range slices.Concat(t.Programs(), rootfs.Tables()) {
		at := rootfs.SystemPlace(layer, p)
		t.Dir(at)
		shown = append(shown, rootfs.Shown{From: p, At: at})
	}
	t.Configuration(layer)
	t.Users(0, workspace, "/usr/sbin/nologin", "", "") // each container has its own in their place
	for _, p := range []string{sharedDir, socketDir, workspace, "/proc", tmpPath, runPath, "/dev", "/sys"} {
		t.Dir(p)
	}
	t.Aliases(workspace)
	return t, shown
}

// groundWith is that of sandboxes with the host's system and a layer of system packages, with these mounts in it.
func groundWith(layer string, mounts []sandbox.HostMount) (ground, error) {
	t, shown := hostTree(layer)
	for _, p := range []string{"/var/tmp", "/dev/shm"} {
		t.Dir(p)
	}
	for _, m := range mounts {
		if !isOfUsr(m) {
			t.Dir(m.Target)
		}
	}
	of, err := t.Layer(layer, false, 0)
	if err != nil {
		return ground{}, err
	}
	g := groundOf(t)
	g.shown, g.ofHost = slices.Concat(of, shown), true
	return g, nil
}

// isOfUsr says whether a mount is there already where the host's system is shown.
func isOfUsr(m sandbox.HostMount) bool {
	return m.Folder == m.Target && strings.HasPrefix(m.Target, "/usr/")
}

func groundOf(t rootfs.Tree) ground {
	g := ground{archive: archiveOf(t)}
	sum := sha256.Sum256(g.archive)
	g.name = repository + hex.EncodeToString(sum[:8])
	return g
}

// groundIn is that of sandboxes in the file system of an image (see package image), with these mounts in it. The daemon is shown the image's parts where cove has unpacked them, and gets no copy.
func groundIn(root string, mounts []sandbox.HostMount) (ground, error) {
	t := rootfs.Tree{}
	// Podman mounts a folder of its own at /var/tmp, which it cannot make within a part that is shown.
	for _, p := range []string{sharedDir, socketDir, workspace, "/proc", tmpPath, "/var/tmp", runPath, "/dev", "/sys"} {
		t.Dir(p)
	}
	for _, m := range mounts {
		t.Dir(m.Target)
	}
	t.Link(workspace, "/mnt/data")
	shown, err := t.Image(root, slices.Collect(maps.Keys(t)))
	if err != nil {
		return ground{}, err
	}
	g := groundOf(t)
	g.shown = shown
	return g, nil
}

// makeImage makes sure that the daemon has the image of a ground.
func (d *daemon) makeImage(ctx context.Context, g ground) error {
	name := g.name
	if _, err := d.api.ImageInspect(ctx, name); err == nil {
		return nil
	}
	source := client.ImageImportSource{Source: bytes.NewReader(g.archive), SourceName: "-"}
	said, err := d.api.ImageImport(ctx, source, name, client.ImageImportOptions{Tag: "latest", Message: "cove's empty image"})
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(said, 64<<10))
	if err = errors.Join(err, said.Close()); err != nil {
		return err
	}
	if _, err := d.api.ImageInspect(ctx, name); err != nil {
		return fmt.Errorf("import the image: %w: %.300s", err, text)
	}
	return nil
}

// archiveOf is a tree as a tar file, the same bytes for the same tree.
func archiveOf(t rootfs.Tree) []byte {
	whole := maps.Clone(t)
	for p := range t {
		for above := path.Dir(p); above != "/"; above = path.Dir(above) {
			if _, there := whole[above]; !there {
				whole.Dir(above)
			}
		}
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, p := range slices.Sorted(maps.Keys(whole)) {
		e := whole[p]
		h := &tar.Header{Name: strings.TrimPrefix(p, "/"), Mode: 0o755, Format: tar.FormatPAX}
		switch e.Kind {
		case "dir":
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
			if p == tmpPath { // runc gives what it mounts the mode of what was there
				h.Mode = 0o1777
			}
		case "link":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.Text
		default:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(e.Text))
			if !e.Program {
				h.Mode = 0o644
			}
		}
		_ = w.WriteHeader(h) // a buffer takes everything
		if h.Typeflag == tar.TypeReg {
			_, _ = io.WriteString(w, e.Text)
		}
	}
	_ = w.Close()
	return out.Bytes()
}
