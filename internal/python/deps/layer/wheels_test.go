package layer_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/python/deps/layer"
	"cove/internal/testkit/testneeds"
)

// file is one of an archive that a test writes.
type file struct {
	name   string
	text   string
	header func(*zip.FileHeader) // changes it; may be nil
	record string                // its hash in RECORD; "" computes it, "-" leaves the file out
}

// distribution is what a wheel is made of.
type distribution struct {
	name, version string
	files         []file
	noInfo        bool
}

func dist(name string, files ...string) distribution {
	d := distribution{name: name, version: "1.0"}
	for i := 0; i+1 < len(files); i += 2 {
		d.files = append(d.files, file{name: files[i], text: files[i+1]})
	}
	return d
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// all returns the files with the metadata.
func (d distribution) all() []file {
	files := slices.Clone(d.files)
	info := strings.ReplaceAll(d.name, "-", "_") + "-" + d.version + ".dist-info/"
	if !d.noInfo {
		files = append(files, file{name: info + "METADATA", text: fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n\nText\n", d.name, d.version)},
			file{name: info + "WHEEL", text: "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"})
	}
	var record strings.Builder
	for _, f := range files {
		if f.record == "-" || strings.HasSuffix(f.name, "/") {
			continue
		}
		if f.record == "" {
			f.record = hashOf(f.text)
		}
		fmt.Fprintf(&record, "\"%s\",%s,%d\n", f.name, f.record, len(f.text))
	}
	record.WriteString(info + "RECORD,,\n")
	if !d.noInfo {
		files = append(files, file{name: info + "RECORD", text: record.String()})
	}
	return files
}

// pack makes an archive.
func (d distribution) pack(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range d.all() {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		if strings.HasSuffix(f.name, "/") {
			h.Method = zip.Store
		}
		if f.header != nil {
			f.header(h)
		}
		in, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(in, f.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// index serves wheels to a store and counts.
type index struct {
	mu      sync.Mutex
	files   map[string][]byte // by hash
	fetched map[string]int    // by hash
}

func newIndex() *index { return &index{files: map[string][]byte{}, fetched: map[string]int{}} }

// add returns the wheel of a distribution.
func (x *index) add(t testing.TB, d distribution) layer.Wheel {
	t.Helper()
	return x.addBytes(d, d.pack(t))
}

func (x *index) addBytes(d distribution, text []byte) layer.Wheel {
	sum := sha256.Sum256(text)
	w := layer.Wheel{Name: strings.ReplaceAll(strings.ToLower(d.name), "_", "-"), Version: d.version, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(text))}
	w.File = fmt.Sprintf("%s-%s-py3-none-any.whl", strings.ReplaceAll(d.name, "-", "_"), d.version)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.files[w.SHA256] = text
	return w
}

func (x *index) fetch(_ context.Context, w layer.Wheel, out io.Writer, told func(received, total int64)) error {
	x.mu.Lock()
	text := x.files[w.SHA256]
	x.fetched[w.SHA256]++
	x.mu.Unlock()
	if text == nil {
		return problem.New(problem.FileUnknown, "there is no such file")
	}
	for len(text) > 0 {
		n := min(len(text), 32<<10)
		if _, err := out.Write(text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	told(int64(len(text)), int64(len(text)))
	return nil
}

func closure(t testing.TB, wheels ...layer.Wheel) layer.Closure {
	t.Helper()
	return layer.Closure{Environment: "test", Python: testneeds.FindPython(t).Path, Wheels: wheels}
}

func open(t testing.TB, dir string, limits layer.Limits) *layer.Store {
	t.Helper()
	s, err := layer.Open(dir, limits)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ensure(t testing.TB, s *layer.Store, c layer.Closure, x *index) *layer.Layer {
	t.Helper()
	l, _, err := s.Ensure(t.Context(), c, x.fetch, nil)
	if err != nil {
		t.Fatalf("%v (hint: %s)", err, problem.Of(err).Hint)
	}
	return l
}

// names lists what is in a folder.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// contents returns the files below a folder that are no bytecode.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, ".pyc") {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
