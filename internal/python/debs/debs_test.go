package debs_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/image"
	"cove/internal/machine/sandbox"
	"cove/internal/python/debs"
)

// maker is a Maker that installs nothing, and writes a tar file.
type maker struct {
	made  atomic.Int32
	write func(ctx context.Context, files io.Writer) error
}

func (m *maker) Make(ctx context.Context, _ []string, files, _ io.Writer) error {
	m.made.Add(1)
	return m.write(ctx, files)
}

// entries is a tar file; content is what each file has.
func entries(content string, all ...tar.Header) func(context.Context, io.Writer) error {
	return func(_ context.Context, to io.Writer) error {
		w := tar.NewWriter(to)
		for _, h := range all {
			if h.Typeflag == tar.TypeReg {
				h.Size = int64(len(content))
			}
			if h.Mode == 0 {
				h.Mode = 0o700
			}
			if err := w.WriteHeader(&h); err != nil {
				return err
			}
			if h.Typeflag == tar.TypeReg {
				if _, err := io.WriteString(w, content); err != nil {
					return err
				}
			}
		}
		return w.Close()
	}
}

// newStore is a store of layers for a host with Debian.
func newStore(t *testing.T, write func(context.Context, io.Writer) error) (debs.Store, *maker) {
	t.Helper()
	host := t.TempDir()
	for name, text := range map[string]string{"etc/os-release": "Debian", "var/lib/dpkg/status": "Package: dash\n", "usr/bin/sh": "shell"} {
		at := filepath.Join(host, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	m := &maker{write: write}
	return debs.Store{Dir: filepath.Join(t.TempDir(), "system"), Size: 1 << 20, Entries: 100, Host: host, Maker: m}, m
}

// left are the entries of a store but for its lock.
func left(t *testing.T, s debs.Store) (names []string) {
	t.Helper()
	all, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Name() != ".lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

func file(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }

func TestLayerIsMadeOnce(t *testing.T) {
	t.Parallel()
	s, m := newStore(t, entries("dot", file("usr/bin/dot")))
	var all sync.WaitGroup
	digests := make([]string, 8)
	for i := range digests {
		all.Go(func() {
			packages := []string{"graphviz", "poppler-utils"}
			if i%2 > 0 {
				packages = []string{"poppler-utils", "graphviz", "graphviz"}
			}
			l, err := s.Ensure(t.Context(), packages, io.Discard)
			if err != nil {
				t.Error(err)
				return
			}
			digests[i] = l.Digest
		})
	}
	all.Wait()
	for _, d := range digests {
		if d != digests[0] || d == "" {
			t.Errorf("the digests are %q", digests)
		}
	}
	if m.made.Load() != 1 || len(left(t, s)) != 1 {
		t.Errorf("it was made %d times; there are %q", m.made.Load(), left(t, s))
	}
	l, err := s.Open(digests[0])
	if err != nil || l.Size != 3 || l.Entries != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	if target, err := os.Readlink(filepath.Join(l.Root(), "usr/bin/sh")); err != nil || target != "/opt/cove/system/usr/bin/sh" {
		t.Errorf("the host's shell is %q, %v", target, err)
	}
	if info, err := os.Stat(filepath.Join(l.Root(), "usr/bin/dot")); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	if found := s.Find([]string{"poppler-utils", "graphviz"}); found == nil || found.Digest != l.Digest || s.Find([]string{"graphviz"}) != nil {
		t.Errorf("found %v", found)
	}
	if _, err := s.Open("../x"); !problem.Has(err, problem.SystemPackagesMissing) {
		t.Errorf("another digest: %v", err)
	}
}

// TestDigest has another layer for other packages, and when the host has changed.
func TestDigest(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t, nil)
	seen := map[string]string{}
	look := func(what string, packages ...string) {
		t.Helper()
		d, err := s.Digest(packages)
		if err != nil || seen[d] != "" {
			t.Errorf("%s has the digest %q of %s (%v)", what, d, seen[d], err)
		}
		seen[d] = what
	}
	look("one package", "graphviz")
	look("two", "graphviz", "ghostscript")
	for name, text := range map[string]string{"var/lib/dpkg/status": "Package: bash\n", "etc/os-release": "Debian 14"} {
		if err := os.WriteFile(filepath.Join(s.Host, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		look("another "+name, "graphviz")
	}
	if err := os.Remove(filepath.Join(s.Host, "var/lib/dpkg/status")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ensure(t.Context(), []string{"graphviz"}, io.Discard); !problem.Has(err, problem.SystemPackagesUnsupported) || problem.Of(err).Hint == "" {
		t.Errorf("without dpkg: %v", err)
	}
}

// TestHostileFiles has nothing leave a layer's folder, and nothing be kept of what cannot be used.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	many := make([]tar.Header, 200)
	for i := range many {
		many[i] = tar.Header{Name: strings.Repeat("x", i+1), Typeflag: tar.TypeDir}
	}
	for name, write := range map[string]func(context.Context, io.Writer) error{
		"leads out":    entries("", file("../../x")),
		"below a link": entries("", tar.Header{Name: "usr", Typeflag: tar.TypeSymlink, Linkname: "/nowhere"}, file("usr/bin/x")),
		"too many":     entries("", many...),
		"too large":    entries(strings.Repeat("x", 2<<20), file("usr/x")),
		"no tar file": func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, strings.Repeat("hostile", 1000))
			return err
		},
		"cut off": func(ctx context.Context, w io.Writer) error {
			var b bytes.Buffer
			_ = entries("abc", file("x"))(ctx, &b)
			_, err := w.Write(b.Bytes()[:514])
			return err
		},
		"endless": func(_ context.Context, w io.Writer) (err error) {
			for err == nil {
				_, err = w.Write(make([]byte, 64<<10))
			}
			return err
		},
	} {
		s, _ := newStore(t, write)
		if l, err := s.Ensure(t.Context(), []string{"graphviz"}, io.Discard); !problem.Has(err, problem.SystemPackagesFailed) || problem.Of(err).Hint == "" {
			t.Errorf("%s: %v, %+v", name, l, err)
		}
		if found := left(t, s); len(found) > 0 {
			t.Errorf("%s: left are %q", name, found)
		}
	}
	s, _ := newStore(t, entries("text", tar.Header{Name: "usr/bin/su", Typeflag: tar.TypeReg, Mode: 0o6755}, tar.Header{Name: "usr/dev", Typeflag: tar.TypeChar, Devmajor: 1}, tar.Header{Name: "usr/pipe", Typeflag: tar.TypeFifo},
		tar.Header{Name: "etc/out", Typeflag: tar.TypeSymlink, Linkname: "/etc/shadow"}, tar.Header{Name: "usr/share", Typeflag: tar.TypeDir, Mode: 0o1777}))
	l, err := s.Ensure(t.Context(), []string{"graphviz"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"usr/bin/su": 0o755, "usr/share": 0o755 | os.ModeDir} {
		if info, err := os.Lstat(filepath.Join(l.Root(), name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	for _, name := range []string{"usr/dev", "usr/pipe"} {
		if _, err := os.Lstat(filepath.Join(l.Root(), name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
}

// TestHostChanges has a process go on with the layer that it began with, which the next one makes anew.
func TestHostChanges(t *testing.T) {
	t.Parallel()
	s, m := newStore(t, entries("x", file("usr/bin/x")))
	first, err := s.Ensure(t.Context(), []string{"graphviz"}, io.Discard)
	if err != nil || s.IsStale(first) {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"var/lib/dpkg/status": "Package: dash\n\nPackage: libx\n", "etc/ld.so.cache": "libx"} {
		if err := os.WriteFile(filepath.Join(s.Host, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, err := s.Ensure(t.Context(), []string{"graphviz"}, io.Discard)
	if err != nil || again.Digest != first.Digest || !s.IsStale(again) || m.made.Load() != 1 {
		t.Errorf("%+v, %v", again, err)
	}
	if s.Find([]string{"graphviz"}) != nil {
		t.Error("the next process finds the former layer")
	}
	if err := os.RemoveAll(filepath.Dir(first.Root())); err != nil {
		t.Fatal(err)
	}
	if anew, err := s.Ensure(t.Context(), []string{"graphviz"}, io.Discard); err != nil || anew.Digest == first.Digest || s.IsStale(anew) {
		t.Errorf("%+v, %v", anew, err)
	}
}

// TestFailureLeavesNothing has the next call try again.
func TestFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	broken := problem.New(problem.SystemPackageUnknown, "there is none")
	s, m := newStore(t, func(ctx context.Context, w io.Writer) error {
		_ = entries("x", file("usr/bin/x"))(ctx, w)
		return broken
	})
	if _, err := s.Ensure(t.Context(), []string{"graphviz"}, io.Discard); !problem.Has(err, problem.SystemPackageUnknown) || len(left(t, s)) > 0 {
		t.Errorf("%v; left are %q", err, left(t, s))
	}
	if err := os.Mkdir(filepath.Join(s.Dir, ".tmp-of-a-killed-process"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m.write = func(ctx context.Context, _ io.Writer) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	if _, err := s.Ensure(ctx, []string{"graphviz"}, io.Discard); problem.Of(err).Kind != problem.Canceled || len(left(t, s)) > 0 {
		t.Errorf("%v; left are %q", err, left(t, s))
	}
	m.write = entries("x", file("usr/bin/x"))
	if _, err := s.Ensure(t.Context(), []string{"graphviz"}, io.Discard); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "-o", "graphviz-", "Graphviz", "a b", "x;y", "../x", "graphviz=", "--help", "g/sid"} {
		if _, err := s.Ensure(t.Context(), []string{name}, io.Discard); !problem.Has(err, problem.SystemPackageName) {
			t.Errorf("the name %q: %v", name, err)
		}
	}
	for _, name := range []string{"g++", "libc6:i386", "r-base-core=4.2.2-1", "7zip", "python3.11-venv"} {
		if err := debs.CheckName(name); err != nil {
			t.Error(err)
		}
	}
}

// TestSweep removes what nobody uses, and neither what a session needs nor what a sandbox has.
func TestSweep(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t, entries("x", file("usr/bin/x")))
	var layers []*debs.Layer
	for _, name := range []string{"unused", "needed", "running", "new"} {
		l, err := s.Ensure(t.Context(), []string{name}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, l)
		long := time.Now().Add(-time.Hour)
		if name == "new" {
			continue
		}
		if err := os.Chtimes(filepath.Join(filepath.Dir(l.Root()), image.UseName), long, long); err != nil {
			t.Fatal(err)
		}
	}
	release, err := image.Hold(sandbox.Spec{Layer: layers[2].Root()})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := s.Sweep(t.Context(), []string{layers[1].Digest}, time.Minute); err != nil {
		t.Fatal(err)
	}
	for i, l := range layers {
		if _, err := s.Open(l.Digest); (err == nil) != (i > 0) {
			t.Errorf("layer %d: %v", i, err)
		}
	}
	if _, err := image.Hold(sandbox.Spec{Layer: layers[0].Root()}); !problem.Has(err, problem.SystemPackagesMissing) {
		t.Errorf("holding a layer that is gone: %v", err)
	}
	if environment, digest := debs.CutKey(debs.Key("standard-1", "2")); environment != "standard-1" || digest != "2" {
		t.Errorf("the key is of %q and %q", environment, digest)
	}
}
