package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"cove/internal/core/problem"
	"cove/internal/machine/image"
	"cove/internal/machine/sandbox"
)

// entry is one of a layer.
type entry struct {
	name string
	kind byte // of package tar; 0: a file
	text string
	mode int64 // 0: 0644
}

func dir(name string) entry        { return entry{name: name, kind: tar.TypeDir, mode: 0o755} }
func file(name, text string) entry { return entry{name: name, text: text} }
func symlink(name, target string) entry {
	return entry{name: name, kind: tar.TypeSymlink, text: target}
}
func link(name, target string) entry { return entry{name: name, kind: tar.TypeLink, text: target} }

func tarOf(t *testing.T, all ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range all {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: e.mode, ModTime: time.Unix(1_600_000_000, 0)}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		switch e.kind {
		case 0, tar.TypeReg:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(e.text))
		case tar.TypeSymlink, tar.TypeLink:
			h.Linkname = e.text
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, e.text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func layer(t *testing.T, text []byte) v1.Layer {
	t.Helper()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func imageOf(t *testing.T, config v1.Config, layers ...[]entry) v1.Image {
	t.Helper()
	img := empty.Image
	for _, all := range layers {
		var err error
		if img, err = mutate.AppendLayers(img, layer(t, tarOf(t, all...))); err != nil {
			t.Fatal(err)
		}
	}
	img, err := mutate.Config(img, config)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func layoutOf(t *testing.T, img v1.Image) string {
	t.Helper()
	dir := t.TempDir()
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.AppendImage(img); err != nil {
		t.Fatal(err)
	}
	return dir
}

func store(t *testing.T) image.Store {
	t.Helper()
	return image.Store{Dir: filepath.Join(t.TempDir(), "images"), Size: 32 << 20, Entries: 1000}
}

func ensure(t *testing.T, s image.Store, reference string, o image.Get) (*image.Image, error) {
	t.Helper()
	r, err := image.Parse(reference)
	if err != nil {
		t.Fatal(err)
	}
	return s.Ensure(t.Context(), r, o)
}

// unpack unpacks an image, and makes sure that nothing is left where that fails.
func unpack(t *testing.T, s image.Store, img v1.Image) (*image.Image, error) {
	t.Helper()
	i, err := ensure(t, s, "oci:"+layoutOf(t, img), image.Get{})
	if err != nil {
		if all, listErr := s.List(); listErr != nil || len(all) > 0 {
			t.Errorf("there are images after a failure: %v, %v", all, listErr)
		}
		if left, _ := filepath.Glob(filepath.Join(s.Dir, ".tmp-*")); len(left) > 0 {
			t.Errorf("a failure leaves %q behind", left)
		}
	}
	return i, err
}

func textOf(t *testing.T, i *image.Image, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(i.Root(), name))
	if err != nil {
		return "absent"
	}
	return string(text)
}

// TestNoDeviceComesOfAnImage unpacks devices, /dev/cuse among them (CVE-2026-96812 of gVisor), at many places: there is no file of a special kind in what a sandbox is shown.
func TestNoDeviceComesOfAnImage(t *testing.T) {
	t.Parallel()
	i, err := unpack(t, store(t), imageOf(t, v1.Config{}, []entry{
		{name: "dev/cuse", kind: tar.TypeChar}, {name: "cuse", kind: tar.TypeChar}, {name: "a/b/cuse", kind: tar.TypeChar, mode: 0o4777}, {name: "sda", kind: tar.TypeBlock}, symlink("d", "/dev"), {name: "d/late", kind: tar.TypeChar},
		{name: "pipe", kind: tar.TypeFifo}, file("kept", "1"),
	}, []entry{{name: "kept", kind: tar.TypeChar}, link("hard", "dev/cuse")}))
	if err != nil {
		t.Logf("refused: %v", err)
		return
	}
	err = filepath.WalkDir(i.Root(), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket|fs.ModeIrregular) != 0 {
			t.Errorf("%s is %s", path, e.Type())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLayers has layers laid over one another as they are meant: what comes later replaces, and removes, what is below.
func TestLayers(t *testing.T) {
	t.Parallel()
	s := store(t)
	i, err := unpack(t, s, imageOf(t, v1.Config{Env: []string{"PATH=/bin", "A=b=c", "broken"}, WorkingDir: "app", User: "app", Entrypoint: []string{"/e"}, Cmd: []string{"c"}},
		[]entry{
			dir("usr/"), dir("usr/bin/"), {name: "usr/bin/tool", text: "one", mode: 0o4700}, symlink("bin", "usr/bin"), symlink("lib", "/usr/lib"), dir("usr/lib/"), file("usr/lib/x", "x"),
			file("a/b/c", "made on the way"), file("gone", "1"), dir("emptied/"), file("emptied/1", "1"), file("emptied/kept/2", "2"), file("both", "1"), {name: "secret", text: "s", mode: 0o600},
			file("etc/passwd", "root:x:0:0::/:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\nuser:x:7:7::/:/bin/false\n"), {name: "dev/null", kind: tar.TypeChar}, {name: "pipe", kind: tar.TypeFifo},
			file("replaced/file", "1"), symlink("later", "usr"),
		},
		[]entry{
			file("bin/other", "through a link"), file("lib/y", "through an absolute link"), link("hard", "usr/bin/tool"), file("./.wh.gone", ""), file("emptied/kept/3", "3"), file("emptied/.wh..wh..opq", ""),
			file("both", "2"), file(".wh.both", ""), file("replaced", "a file now"), dir("later/"), file("later/z", "z"), file(".wh..wh.plnk", ""),
		}))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"usr/bin/tool": "one", "usr/bin/other": "through a link", "usr/lib/y": "through an absolute link", "usr/lib/x": "x", "hard": "one", "gone": "absent", "emptied/1": "absent",
		"emptied/kept/2": "absent", "emptied/kept/3": "3", "both": "2", "replaced": "a file now", "later/z": "z", "usr/z": "absent", "a/b/c": "made on the way", "dev/null": "absent", "pipe": "absent",
		".wh.gone": "absent", "etc/hostname": "sandbox\n",
	} {
		if got := textOf(t, i, name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	users := textOf(t, i, "etc/passwd")
	for _, line := range []string{"root:x:0:0:", "user:x:1000:1000:user:/home/user:", "node:x:1000:1000:"} {
		if strings.Count(users, line) != 1 {
			t.Errorf("the users are\n%s", users)
		}
	}
	for name, want := range map[string]os.FileMode{"usr/bin/tool": 0o755, "secret": 0o644, "a/b": 0o755} {
		if info, err := os.Lstat(filepath.Join(i.Root(), name)); err != nil || info.Mode().Perm() != want || info.Mode()&os.ModeSetuid != 0 {
			t.Errorf("%s has the rights %v, %v", name, info.Mode(), err)
		}
	}
	if i.Dir != "/app" || i.User != "app" || i.Variables()["A"] != "b=c" || len(i.Start) != 2 || i.LeftOut != 2 || i.Python.Path != "" {
		t.Errorf("%+v", i)
	}
	if again, err := s.Open(i.Digest); err != nil || again.Size != i.Size || again.Size == 0 {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestHostileImages has images refused that lead out of their root, or are not what they say.
func TestHostileImages(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	many := make([]entry, 1001)
	for i := range many {
		many[i] = file(fmt.Sprint(i), "")
	}
	long := strings.Repeat("x", 300)
	for name, one := range map[string]struct {
		layers [][]entry
		code   problem.Code
	}{
		"a path that leads out":            {[][]entry{{file("../../../../../.."+outside, "!")}}, problem.ImageDamaged},
		"a path that leads out within":     {[][]entry{{file("a/../../b", "!")}}, problem.ImageDamaged},
		"a hard link to outside":           {[][]entry{{link("x", "../.."+outside)}}, problem.ImageDamaged},
		"a hard link to nothing":           {[][]entry{{link("x", outside)}}, problem.ImageDamaged},
		"a hard link to a folder":          {[][]entry{{dir("d/"), link("x", "d")}}, problem.ImageDamaged},
		"a hard link through a link":       {[][]entry{{symlink("l", filepath.Dir(outside))}, {link("x", "l/outside")}}, problem.ImageDamaged},
		"a file below a file":              {[][]entry{{file("a", "")}, {file("a/b", "")}}, problem.ImageDamaged},
		"a file below a link to nowhere":   {[][]entry{{symlink("a", "nowhere")}, {file("a/b", "")}}, problem.ImageDamaged},
		"a link to itself":                 {[][]entry{{symlink("a", "a")}, {file("a/b", "")}}, problem.ImageDamaged},
		"a name that is too long":          {[][]entry{{file(long, "")}}, problem.ImageDamaged},
		"a path that is too deep":          {[][]entry{{file(strings.Repeat("d/", 300)+"f", "")}}, problem.ImageDamaged},
		"a whiteout of the folder itself":  {[][]entry{{dir("a/")}, {file("a/.wh..", "")}}, problem.ImageDamaged},
		"a whiteout of the folder above":   {[][]entry{{dir("a/")}, {file("a/.wh...", "")}}, problem.ImageDamaged},
		"a whiteout without a name":        {[][]entry{{dir("a/")}, {file("a/.wh.", "")}}, problem.ImageDamaged},
		"more entries than there may be":   {[][]entry{many}, problem.ImageTooLarge},
		"more bytes than there may be":     {[][]entry{{file("zeros", strings.Repeat("\x00", 33<<20))}}, problem.ImageTooLarge},
		"more bytes in more than one file": {[][]entry{{file("1", strings.Repeat("\x00", 17<<20))}, {file("1", strings.Repeat("\x00", 17<<20))}}, problem.ImageTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := unpack(t, store(t), imageOf(t, v1.Config{}, one.layers...))
			if !problem.Has(err, one.code) {
				t.Errorf("the problem is %v", err)
			}
		})
	}
	t.Run("links stay in the image", func(t *testing.T) {
		t.Parallel()
		folder := filepath.Dir(outside)
		i, err := unpack(t, store(t), imageOf(t, v1.Config{}, []entry{symlink("etc", folder), symlink("d", "/"), dir(strings.TrimPrefix(folder, "/") + "/")},
			[]entry{file("d/in", "the image's"), file("etc/outside", "the image's")}, []entry{file("etc/.wh.outside", ""), file("d/.wh..wh..opq", "")}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(i.Root(), "d", "..", "..", "in")); err == nil {
			t.Error("something was written beside the image")
		}
		entries, err := os.ReadDir(folder)
		if err != nil || len(entries) != 1 {
			t.Errorf("the folder of the host has %v, %v", entries, err)
		}
	})
	if text, err := os.ReadFile(outside); err != nil || string(text) != "untouched" {
		t.Errorf("a file of the host is %q, %v", text, err)
	}
}

// raw is a layer as it comes, whatever its text is.
type raw struct{ packed []byte }

func (r raw) Digest() (v1.Hash, error) {
	h, _, err := v1.SHA256(bytes.NewReader(r.packed))
	return h, err
}
func (r raw) DiffID() (v1.Hash, error)             { return r.Digest() }
func (r raw) Compressed() (io.ReadCloser, error)   { return io.NopCloser(bytes.NewReader(r.packed)), nil }
func (r raw) Uncompressed() (io.ReadCloser, error) { return r.Compressed() }
func (r raw) Size() (int64, error)                 { return int64(len(r.packed)), nil }
func (r raw) MediaType() (types.MediaType, error)  { return types.OCILayer, nil }

func packFolder(t *testing.T, folder, to string) {
	t.Helper()
	f, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	if err := errors.Join(w.AddFS(os.DirFS(folder)), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDigests has layouts refused whose files are not what their names say.
func TestDigests(t *testing.T) {
	t.Parallel()
	img := imageOf(t, v1.Config{}, []entry{file("a", "text")})
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	other := imageOf(t, v1.Config{}, []entry{file("a", "evil")})
	otherLayers, err := other.Layers()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := otherLayers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	evil, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]struct {
		digest v1.Hash
		text   func(was []byte) []byte
	}{
		"a layer":         {m.Layers[0].Digest, func([]byte) []byte { return evil }},
		"more of a layer": {m.Layers[0].Digest, func(was []byte) []byte { return append(was, 0) }},
		"half a layer":    {m.Layers[0].Digest, func(was []byte) []byte { return was[:len(was)/2] }},
		"the config":      {m.Config.Digest, func(was []byte) []byte { return bytes.Replace(was, []byte("linux"), []byte("LINUX"), 1) }},
		"the manifest":    {manifest, func(was []byte) []byte { return append(was, ' ') }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, at := store(t), layoutOf(t, img)
			path := filepath.Join(at, "blobs", "sha256", change.digest.Hex)
			was, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if now := change.text(bytes.Clone(was)); name == "the config" && bytes.Equal(now, was) {
				if err := os.WriteFile(path, append(now, ' '), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(path, now, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := ensure(t, s, "oci:"+at, image.Get{}); !problem.Has(err, problem.ImageDamaged) {
				t.Errorf("the problem is %v", err)
			}
		})
	}
}

// TestBombs has layers given up that unpack to far more than they are, in both ways of packing.
func TestBombs(t *testing.T) {
	t.Parallel()
	zeros := make([]byte, 1<<20)
	for name, pack := range map[string]func(w io.Writer) (io.WriteCloser, error){
		"gzip": func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		"zstd": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			w, err := pack(&out)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(tarOf(t)); err != nil { // the end of a tar file, and then no end
				t.Fatal(err)
			}
			for range 200 {
				if _, err := w.Write(zeros); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			bomb := raw{out.Bytes()}
			img, err := mutate.AppendLayers(empty.Image, bomb)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := unpack(t, store(t), img); !problem.Has(err, problem.ImageTooLarge) {
				t.Errorf("the problem is %v", err)
			}
		})
	}
}

// TestKindsOfSources has the same image come from each place where images are.
func TestKindsOfSources(t *testing.T) {
	t.Parallel()
	img := imageOf(t, v1.Config{}, []entry{file("a", "text")})
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	reference := strings.TrimPrefix(server.URL, "http://") + "/team/tool:1"
	r, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(r, img); err != nil {
		t.Fatal(err)
	}
	docker := filepath.Join(t.TempDir(), "docker.tar")
	if err := tarball.WriteToFile(docker, r, img); err != nil {
		t.Fatal(err)
	}
	folder := layoutOf(t, img)
	archive := filepath.Join(t.TempDir(), "oci.tar")
	packFolder(t, folder, archive)
	for _, from := range []string{reference, "docker-archive:" + docker, "oci:" + folder, "oci-archive:" + archive} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			s := store(t)
			heard := 0
			i, err := ensure(t, s, from, image.Get{Progress: func(image.Progress) { heard++ }})
			if err != nil {
				t.Fatal(err)
			}
			if textOf(t, i, "a") != "text" || heard == 0 {
				t.Errorf("%+v, %d", i, heard)
			}
			if found, err := s.Find(from); err != nil || len(found) != 1 || found[0].Digest != i.Digest {
				t.Errorf("%v, %v", found, err)
			}
		})
	}
	for from, code := range map[string]problem.Code{
		strings.TrimPrefix(server.URL, "http://") + "/team/other:1": problem.ImageMissing, "oci:/nowhere": problem.ImageMissing, "docker-archive:" + archive + "x": problem.ImageMissing,
		"localhost:1/x": problem.ImageUnreachable, "oci-archive:" + filepath.Join(folder, "index.json"): problem.ImageDamaged,
	} {
		if _, err := ensure(t, store(t), from, image.Get{}); !problem.Has(err, code) {
			t.Errorf("%s: %v", from, err)
		}
	}
}

// TestATagThatMoves has an image found on this machine until it is asked for anew.
func TestATagThatMoves(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	reference := strings.TrimPrefix(server.URL, "http://") + "/tool:latest"
	r, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	s := store(t)
	for n, text := range []string{"one", "two"} {
		if err := remote.Write(r, imageOf(t, v1.Config{}, []entry{file("a", text)})); err != nil {
			t.Fatal(err)
		}
		i, err := ensure(t, s, reference, image.Get{})
		if err != nil || textOf(t, i, "a") != "one" {
			t.Errorf("%d: %v, %v", n, i, err)
		}
	}
	i, err := ensure(t, s, reference, image.Get{Anew: true})
	if err != nil || textOf(t, i, "a") != "two" {
		t.Errorf("%v, %v", i, err)
	}
	all, err := s.List()
	if err != nil || len(all) != 2 || len(all[0].References)+len(all[1].References) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestAtTheSameTime has those who ask for an image at the same time unpack it once.
func TestAtTheSameTime(t *testing.T) {
	t.Parallel()
	s := store(t)
	from := "oci:" + layoutOf(t, imageOf(t, v1.Config{}, []entry{file("a", "text")}))
	var all sync.WaitGroup
	made := make([]time.Time, 8)
	for n := range made {
		all.Go(func() {
			i, err := ensure(t, s, from, image.Get{})
			if err != nil {
				t.Error(err)
				return
			}
			made[n] = i.Made
		})
	}
	all.Wait()
	for _, at := range made {
		if !at.Equal(made[0]) {
			t.Errorf("it was unpacked more than once: %v", made)
		}
	}
}

// TestCancelled has nothing left of an image whose unpacking is cancelled in the middle.
func TestCancelled(t *testing.T) {
	t.Parallel()
	s := store(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := image.Parse("oci:" + layoutOf(t, imageOf(t, v1.Config{}, []entry{file("a", strings.Repeat("a", 1<<20))}, []entry{file("b", "")})))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Ensure(ctx, r, image.Get{Progress: func(image.Progress) { cancel() }})
	if !problem.Has(err, problem.GivenUp) {
		t.Errorf("the problem is %v", err)
	}
	entries, err := os.ReadDir(s.Dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".lock-") {
			t.Errorf("%s is left", e.Name())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRoom has images removed that were used least recently when there is no room for another, but for those that somebody has or needs.
func TestRoom(t *testing.T) {
	t.Parallel()
	s := store(t)
	s.Total = 3 << 20
	make1 := func(text string) (*image.Image, error) {
		return unpackKeeping(t, s, imageOf(t, v1.Config{}, []entry{file("a", strings.Repeat(text, 1<<20-100_000))}))
	}
	var all []*image.Image
	for n, text := range []string{"1", "2", "3"} {
		i, err := make1(text)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(1_700_000_000+n), 0)
		if err := os.Chtimes(filepath.Join(filepath.Dir(i.Root()), "in-use"), at, at); err != nil {
			t.Fatal(err)
		}
		all = append(all, i)
	}
	release, err := image.Hold(sandbox.Spec{Root: all[0].Root()})
	if err != nil {
		t.Fatal(err)
	}
	s.Needed = func() []string { return []string{all[1].Digest} }
	if err := s.Remove(all[0]); !problem.Has(err, problem.ImageUsed) {
		t.Errorf("an image that is held was removed: %v", err)
	}
	if _, err := make1("4"); err != nil {
		t.Fatal(err)
	}
	for n, there := range []bool{true, true, false} {
		if _, err := s.Open(all[n].Digest); (err == nil) != there {
			t.Errorf("image %d: %v", n, err)
		}
	}
	s.Needed = func() []string {
		now, _ := s.List()
		var digests []string
		for _, i := range now {
			digests = append(digests, i.Digest)
		}
		return digests
	}
	if _, err := make1("5"); !problem.Has(err, problem.ImagesFull) {
		t.Errorf("the problem is %v", err)
	}
	release()
	if err := s.Remove(all[0]); err != nil {
		t.Error(err)
	}
	if _, err := image.Hold(sandbox.Spec{Root: all[0].Root()}); !problem.Has(err, problem.ImageMissing) {
		t.Errorf("an image that is gone can be held: %v", err)
	}
}

func unpackKeeping(t *testing.T, s image.Store, img v1.Image) (*image.Image, error) {
	t.Helper()
	return ensure(t, s, "oci:"+layoutOf(t, img), image.Get{})
}

// TestReferences has what names an image read, and what does not refused.
func TestReferences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"python": "index.docker.io/library/python:latest", "python:3.12-slim": "index.docker.io/library/python:3.12-slim", "ghcr.io/team/tool:1": "ghcr.io/team/tool:1", "oci:/srv/x/../y": "oci:/srv/y",
	} {
		if r, err := image.Parse(text); err != nil || r.String() != want {
			t.Errorf("%q is %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "UPPER/case", "oci:", "a b", "x:y:z", strings.Repeat("a", 2000)} {
		if _, err := image.Parse(text); !problem.Has(err, problem.ImageReference) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestSweep has what a killed process left removed, and what a living one makes kept.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := store(t)
	old := time.Now().Add(-2 * time.Hour)
	dead := filepath.Join(s.Dir, ".tmp-dead", "root")
	if err := os.MkdirAll(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(s.Dir, ".tmp-dead", "in-use"), nil, 0o600), os.Chtimes(filepath.Dir(dead), old, old)); err != nil {
		t.Fatal(err)
	}
	if _, err := unpackKeeping(t, s, imageOf(t, v1.Config{}, []entry{file("a", "")})); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(dead)); err == nil {
		t.Error("what a killed process left is still there")
	}
}
