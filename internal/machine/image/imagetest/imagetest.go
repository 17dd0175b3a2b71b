// Package imagetest makes images for tests, of programs of this machine.
package imagetest

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Contents is what an image has.
type Contents struct {
	Programs map[string]string // of this machine, by their paths in the image, with the libraries that they name
	Folders  map[string]string // of this machine, by their paths in the image: Python's standard library, of which links, tests and packages are left out
	Files    map[string]string // texts, by their paths
	Links    map[string]string // targets, by their paths
	Config   v1.Config
}

// Layout makes an image and returns what names it.
func Layout(t testing.TB, c Contents) (reference string) {
	t.Helper()
	p, img := packed(t, c)
	dir := t.TempDir()
	to, err := layout.Write(dir, empty.Index)
	p.must(err)
	p.must(to.AppendImage(img))
	return "oci:" + dir
}

// Registry is a registry on this machine, for the time of a test.
type Registry struct{ Host string }

// NewRegistry starts a registry.
func NewRegistry(t testing.TB) Registry {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return Registry{strings.TrimPrefix(server.URL, "http://")}
}

// Push makes an image that the registry has as NAME:TAG, and returns what names it.
func (r Registry) Push(t testing.TB, at string, c Contents) (reference string) {
	t.Helper()
	p, img := packed(t, c)
	reference = r.Host + "/" + at
	to, err := name.ParseReference(reference)
	p.must(err)
	p.must(remote.Write(to, img))
	return reference
}

func packed(t testing.TB, c Contents) (*packing, v1.Image) {
	t.Helper()
	p := &packing{t: t, seen: map[string]bool{}}
	p.w = tar.NewWriter(&p.out)
	for at, from := range c.Programs {
		p.program(from, at)
	}
	for at, from := range c.Folders {
		p.folder(from, at)
	}
	for at, text := range c.Files {
		p.add(at, []byte(text), 0o644)
	}
	for at, target := range c.Links {
		p.must(p.w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: strings.TrimPrefix(at, "/"), Linkname: target, Mode: 0o777}))
	}
	p.must(p.w.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.out.Bytes())), nil })
	p.must(err)
	img, err := mutate.AppendLayers(empty.Image, layer)
	p.must(err)
	// Images of different tests are different: those that are the same are unpacked once, and one test would remove what another one uses.
	c.Config.Labels = maps.Clone(c.Config.Labels)
	if c.Config.Labels == nil {
		c.Config.Labels = map[string]string{}
	}
	c.Config.Labels["test"] = t.Name()
	img, err = mutate.Config(img, c.Config)
	p.must(err)
	return p, img
}

type packing struct {
	t    testing.TB
	out  bytes.Buffer
	w    *tar.Writer
	seen map[string]bool
}

func (p *packing) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *packing) add(at string, text []byte, mode int64) {
	p.t.Helper()
	if p.seen[at] {
		return
	}
	p.seen[at] = true
	p.must(p.w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(at, "/"), Size: int64(len(text)), Mode: mode}))
	_, err := p.w.Write(text)
	p.must(err)
}

// libraries are where the libraries of this machine's programs are.
var libraries = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"}

// program adds a program and what it is linked with.
func (p *packing) program(from, at string) {
	p.t.Helper()
	file, err := filepath.EvalSymlinks(from)
	p.must(err)
	text, err := os.ReadFile(file)
	p.must(err)
	p.add(at, text, 0o755)
	p.needs(from, file, text)
}

// needs adds what a program or a library is linked with, at the paths that this has here.
func (p *packing) needs(from, file string, text []byte) {
	p.t.Helper()
	f, err := elf.NewFile(bytes.NewReader(text))
	p.must(err)
	for _, part := range f.Progs {
		if part.Type != elf.PT_INTERP {
			continue
		}
		name, err := io.ReadAll(part.Open())
		p.must(err)
		loader := strings.TrimRight(string(name), "\x00")
		program, err := os.ReadFile(loader)
		p.must(err)
		p.add(loader, program, 0o755)
	}
	names, err := f.ImportedLibraries()
	p.must(err)
	libraries := append([]string{filepath.Join(filepath.Dir(file), "..", "lib")}, libraries...)
	for _, name := range names {
		i := slices.IndexFunc(libraries, func(dir string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil })
		if i < 0 {
			p.t.Fatalf("%s needs %s, which is nowhere", from, name)
		}
		if library := filepath.Join(libraries[i], name); !p.seen[library] {
			p.program(library, library)
		}
	}
}

func (p *packing) folder(from, at string) {
	p.t.Helper()
	p.must(filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() && slices.Contains([]string{"__pycache__", "test", "tests", "site-packages", "dist-packages", "ensurepip", "idlelib"}, e.Name()) {
			return filepath.SkipDir
		}
		if err != nil || !e.Type().IsRegular() || strings.HasSuffix(path, ".a") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		p.add(at+strings.TrimPrefix(path, from), text, 0o755)
		if strings.HasSuffix(path, ".so") {
			p.needs(path, path, text)
		}
		return nil
	}))
}
