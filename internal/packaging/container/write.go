package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// labels are those that the Open Container Initiative has names for.
func (m maker) labels() map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title": "cove", prefix + "description": "A safe, stateful Python for people, applications and models", prefix + "licenses": "Apache-2.0",
		prefix + "version": m.Version, prefix + "revision": m.Commit, prefix + "created": m.Date.Format(time.RFC3339),
	}
}

// healthCheck asks the port that the server was told to listen on, the last one of several.
const healthCheck = `curl -fsS -o /dev/null "http://127.0.0.1:${COVE_LISTEN##*:}/health/ready"`

// build makes the image of one architecture.
func (m maker) build(p platform) (v1.Image, error) {
	img := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	var layers []mutate.Addendum
	for _, path := range p.layers {
		layer, err := tarball.LayerFromFile(path, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestSpeed))
		if err != nil {
			return nil, err
		}
		layers = append(layers, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: m.Date}, CreatedBy: "cove: " + filepath.Base(path)}})
	}
	img, err := mutate.Append(img, layers...)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Created = p.arch, "linux", v1.Time{Time: m.Date}
	file.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), WorkingDir: "/data", Volumes: map[string]struct{}{"/data": {}}, ExposedPorts: map[string]struct{}{"8700/tcp": {}}, Labels: m.labels(), StopSignal: "SIGTERM",
		Entrypoint: []string{"/usr/local/bin/cove"}, Cmd: []string{"serve"},
		Env: []string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/data", "COVE_HOME=/data", "COVE_AHEAD=" + aheadFolder, "COVE_LISTEN=:8700",
		},
		// An image of this form has no place for it, but every Docker reads it. Kubernetes has probes of its own.
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD-SHELL", healthCheck}, Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: time.Minute, Retries: 3,
		},
	}
	return mutate.ConfigFile(img, file)
}

// write writes the images as an OCI layout in one archive, which has the list that docker load looks for too: of the image of this machine's architecture, or of the first.
func (m maker) write(out string, platforms []platform) error {
	dir := filepath.Join(m.tmp, "layout")
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var loaded v1.Image
	for _, p := range platforms {
		img, err := m.build(p)
		if err != nil {
			return err
		}
		if loaded == nil || p.arch == ownArchitecture() {
			loaded = img
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.arch}}})
	}
	// An index in the index: what copies one image of a layout copies that for all architectures. containerd takes the name as it is, and pods are looked up by the whole one.
	to, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = to.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": m.Version, "io.containerd.image.name": "docker.io/library/cove:" + m.Version}))
	}
	if err == nil {
		err = forDocker(dir, "cove:"+m.Version, loaded)
	}
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	if err := m.archive(out, dir); err != nil {
		return err
	}
	info, err := os.Stat(out)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d MB, %s\ndocker load -i %s     # it is then called cove:%s\n", out, info.Size()>>20, digest, out, m.Version)
	return nil
}

// forDocker writes the list that docker load reads; each version of Docker does. Newer ones read layouts as well.
func forDocker(dir, name string, img v1.Image) error {
	at := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
	manifest, err := img.Manifest()
	if err != nil {
		return err
	}
	entry := map[string]any{"Config": at(manifest.Config.Digest), "RepoTags": []string{name}}
	var layers []string
	for _, l := range manifest.Layers {
		layers = append(layers, at(l.Digest))
	}
	entry["Layers"] = layers
	text, err := json.Marshal([]any{entry})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "manifest.json"), text, 0o644)
}

// archive writes the files of a folder into an archive that appears whole or not at all.
func (m maker) archive(to, dir string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(to), ".new-image-*")
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
			return
		}
		err = errors.Join(os.Chmod(f.Name(), 0o644), os.Rename(f.Name(), to))
	}()
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: info.Size(), ModTime: m.Date, Format: tar.FormatPAX}); err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		return errors.Join(err, f.Close())
	})
	return errors.Join(err, w.Close())
}
