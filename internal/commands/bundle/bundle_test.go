package bundle_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/commands/bundle"
	"cove/internal/core/problem"
)

func about() bundle.About {
	return bundle.About{Cove: "1.2.3", Platform: "linux/amd64", Set: "minimal", Recipe: "r", Python: "3.11"}
}

// contents are the files of a bundle by what they are called in it.
var contents = map[string]string{"cove": "#!/bin/sh\n", "wheels/a-1.0-py3-none-any.whl": "a wheel", "wheels/b-2.0+local-cp311-cp311-manylinux_2_17_x86_64.whl": strings.Repeat("b", 100_000)}

// written is a bundle with these files.
func written(t *testing.T, names ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	var sources []bundle.Source
	for _, name := range names {
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, []byte(contents[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		sources = append(sources, bundle.Source{Name: name, Path: path})
	}
	var out bytes.Buffer
	if err := bundle.Write(t.Context(), &out, about(), sources); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var all = []string{"cove", "wheels/a-1.0-py3-none-any.whl", "wheels/b-2.0+local-cp311-cp311-manylinux_2_17_x86_64.whl"}

// TestRoundTrip wants what was put in to come out, and the same files to be the same bundle.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	text, dir := written(t, all...), t.TempDir()
	if !bytes.Equal(text, written(t, all...)) {
		t.Error("two bundles of the same files differ")
	}
	a, err := bundle.Unpack(t.Context(), bytes.NewReader(text), about(), dir)
	if err != nil || a.Python != "3.11" || len(a.Files) != 3 {
		t.Fatalf("got %+v: %v", a, err)
	}
	for name, want := range contents {
		path := filepath.Join(dir, filepath.Base(name))
		got, err := os.ReadFile(path)
		info, serr := os.Stat(path)
		if err != nil || serr != nil || string(got) != want || (info.Mode().Perm()&0o100 != 0) != (name == "cove") {
			t.Errorf("%s has %d bytes and the mode %v: %v, %v", name, len(got), info.Mode(), err, serr)
		}
	}
}

// change copies a bundle with each member as f wants it, which leaves one out with an empty name.
func change(t *testing.T, text []byte, f func(h *tar.Header, content []byte) []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, r := tar.NewWriter(&out), tar.NewReader(bytes.NewReader(text))
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		content, err2 := io.ReadAll(r)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		content = f(h, content)
		if h.Name == "" {
			continue
		}
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// replaced is a bundle whose description has one text for another.
func replaced(t *testing.T, text []byte, from, to string) []byte {
	t.Helper()
	return change(t, text, func(h *tar.Header, content []byte) []byte {
		if h.Name == "bundle.json" {
			if !bytes.Contains(content, []byte(from)) {
				t.Fatalf("the description has no %q", from)
			}
			return bytes.Replace(content, []byte(from), []byte(to), 1)
		}
		return content
	})
}

// TestHostile has bundles that are damaged, forged or of others refused in words, with nothing outside of the folder.
func TestHostile(t *testing.T) {
	t.Parallel()
	good := written(t, all...)
	on := func(name string, f func(h *tar.Header, content []byte) []byte) []byte {
		return change(t, good, func(h *tar.Header, content []byte) []byte {
			if h.Name == name {
				return f(h, content)
			}
			return content
		})
	}
	renamed := func(to string) []byte {
		return on(all[1], func(h *tar.Header, content []byte) []byte { h.Name = to; return content })
	}
	for name, test := range map[string]struct {
		text []byte
		code problem.Code
		says string
	}{
		"nothing":          {nil, problem.BundleInvalid, ""},
		"no tar file":      {bytes.Repeat([]byte("x"), 10_000), problem.BundleInvalid, ""},
		"cut off":          {good[:len(good)-60_000], problem.BundleInvalid, ""},
		"cut off early":    {good[:700], problem.BundleInvalid, ""},
		"another byte":     {bytes.Replace(good, []byte("bbbbb"), []byte("bbxbb"), 1), problem.BundleInvalid, "SHA-256"},
		"a path":           {renamed("../../evil.whl"), problem.BundleInvalid, "evil"},
		"an absolute path": {renamed("/tmp/evil.whl"), problem.BundleInvalid, "evil"},
		"a listed path":    {replaced(t, good, "wheels/a-1.0", "wheels/../../a-1.0"), problem.BundleInvalid, "lists"},
		"an unlisted file": {renamed("wheels/c-1.0-py3-none-any.whl"), problem.BundleInvalid, "should be"},
		"twice":            {replaced(t, good, all[2], all[1]), problem.BundleInvalid, "lists"},
		"a link": {on(all[1], func(h *tar.Header, _ []byte) []byte {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "/etc", 0
			return nil
		}), problem.BundleInvalid, ""},
		"a file less":        {on(all[2], func(h *tar.Header, _ []byte) []byte { h.Name = ""; return nil }), problem.BundleInvalid, ""},
		"a longer file":      {on(all[1], func(_ *tar.Header, c []byte) []byte { return append(c, 'x') }), problem.BundleInvalid, ""},
		"no program":         {replaced(t, good, `"name": "cove"`, `"name": "wheels/z-1-py3-none-any.whl"`), problem.BundleInvalid, ""},
		"a negative size":    {replaced(t, good, `"size": 7`, `"size": -7`), problem.BundleInvalid, ""},
		"a huge size":        {replaced(t, good, `"size": 7`, `"size": 999999999999`), problem.BundleInvalid, ""},
		"no sum":             {replaced(t, good, `"sha256": "`, `"sha256": "../`), problem.BundleInvalid, ""},
		"another form":       {replaced(t, good, `"form": 1`, `"form": 2`), problem.BundleUnfit, "form 2"},
		"another version":    {replaced(t, good, "1.2.3", "1.2.4"), problem.BundleUnfit, "1.2.4"},
		"another processor":  {replaced(t, good, "amd64", "arm64"), problem.BundleUnfit, "linux/arm64"},
		"no description":     {on("bundle.json", func(h *tar.Header, c []byte) []byte { h.Name = "other.json"; return c }), problem.BundleInvalid, ""},
		"a description less": {on("bundle.json", func(*tar.Header, []byte) []byte { return []byte("{") }), problem.BundleInvalid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outer := t.TempDir()
			dir := filepath.Join(outer, "a", "b")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			_, err := bundle.Unpack(t.Context(), bytes.NewReader(test.text), about(), dir)
			if !problem.Has(err, test.code) || !strings.Contains(problem.Of(err).Error(), test.says) {
				t.Errorf("got %v, want %v with %q", err, test.code, test.says)
			}
			for _, place := range []string{outer, filepath.Join(outer, "a")} {
				if entries, err := os.ReadDir(place); err != nil || len(entries) != 1 {
					t.Errorf("%s has %v: %v", place, entries, err)
				}
			}
		})
	}
}

// TestMore wants a bundle that goes on after its last file refused, and one that is given up to say so.
func TestMore(t *testing.T) {
	t.Parallel()
	good := written(t, all...)
	var more bytes.Buffer
	more.Write(good[:len(good)-1024]) // without the two blocks that end it
	w := tar.NewWriter(&more)
	if err := w.WriteHeader(&tar.Header{Name: "more", Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.Unpack(t.Context(), &more, about(), t.TempDir()); !problem.Has(err, problem.BundleInvalid) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bundle.Unpack(ctx, bytes.NewReader(good), about(), t.TempDir()); !problem.Has(err, problem.GivenUp) {
		t.Errorf("got %v", err)
	}
}
