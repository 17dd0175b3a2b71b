package volume_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cove/internal/machine/volume"
)

func folders(t *testing.T) volume.Folders {
	t.Helper()
	return volume.Folders{Dir: filepath.Join(t.TempDir(), "volumes"), Own: func(string) error { return nil }}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestContent: what is in a volume is found, changed and removed, and nothing outside is, whatever links there are.
func TestContent(t *testing.T) {
	t.Parallel()
	f := folders(t)
	must(t, f.Make("prj_1", "vol_1"))
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("kingfisher"), 0o600))
	in := filepath.Join(f.Dir, "prj_1", "vol_1")
	must(t, os.Symlink(outside, filepath.Join(in, "out")))
	must(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(in, "file")))
	c, err := f.Open("prj_1", "vol_1")
	must(t, err)
	defer func() { _ = c.Close() }()
	if _, err := c.Write("a/b", strings.NewReader("text"), 0o640, true, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write("c/d", strings.NewReader("x"), 0o640, false, 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v", err)
	}
	if _, err := c.Write("a/large", strings.NewReader("01234567890"), 0o640, true, 10); !errors.Is(err, volume.ErrTooMuch) {
		t.Errorf("more than may be: %v", err)
	}
	r, size, err := c.Read("a/b")
	must(t, err)
	text, _ := io.ReadAll(r)
	if _ = r.Close(); string(text) != "text" || size != 4 {
		t.Errorf("it has %q", text)
	}
	_, err = c.MakeFolder("e", 0o700, false)
	must(t, err)
	if _, err := c.MakeFolder("e", 0o700, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder twice: %v", err)
	}
	all, err := c.List(".", 2)
	must(t, err)
	var names []string
	for _, e := range all {
		names = append(names, e.Path)
	}
	if !slices.Equal(names, []string{"a", "a/b", "e", "file", "out"}) {
		t.Errorf("there are %v", names)
	}
	for name, do := range map[string]func() error{
		"reading": func() error { _, _, err := c.Read("file"); return err }, "listing": func() error { _, err := c.List("out", 1); return err },
		"writing": func() error { _, err := c.Write("out/x", strings.NewReader("x"), 0o644, true, 10); return err }, "modes": func() error { _, err := c.SetMode("file", 0o777); return err },
		"above": func() error { _, err := c.Stat("../vol_1"); return err }, "a folder": func() error { _, _, err := c.Read("a"); return err },
	} {
		if do() == nil {
			t.Errorf("%s leads out", name)
		}
	}
	must(t, c.Remove("out"))
	if text, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(text) != "kingfisher" {
		t.Errorf("outside: %q, %v", text, err)
	}
}

// TestMeasure counts what is there, and stops where that is too much.
func TestMeasure(t *testing.T) {
	t.Parallel()
	f := folders(t)
	must(t, f.Make("prj_1", "vol_1"))
	in := filepath.Join(f.Dir, "prj_1", "vol_1")
	must(t, os.WriteFile(filepath.Join(in, "a"), make([]byte, 1<<20), 0o600))
	must(t, os.Link(filepath.Join(in, "a"), filepath.Join(in, "b")))
	must(t, os.Symlink("/", filepath.Join(in, "root")))
	taken, err := f.Measure("prj_1", "vol_1")
	must(t, err)
	if taken.Entries != 3 || taken.Bytes < 1<<20 || taken.Bytes > 3<<19 || taken.TooDeep {
		t.Errorf("it takes %+v", taken)
	}
	if taken.Above(0) || taken.Above(2<<20) || !taken.Above(1<<19) {
		t.Error("the bound is another one")
	}
	deep, err := os.OpenRoot(in)
	must(t, err)
	for range 2000 {
		must(t, deep.Mkdir("d", 0o700))
		next, err := deep.OpenRoot("d")
		must(t, errors.Join(err, deep.Close()))
		deep = next
	}
	must(t, deep.Close())
	if taken, err = f.Measure("prj_1", "vol_1"); err != nil || !taken.TooDeep || !taken.Above(0) {
		t.Errorf("it takes %+v, %v", taken, err)
	}
	must(t, f.Remove("prj_1", "vol_1"))
	if _, err := os.Lstat(in); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a deep volume stays: %v", err)
	}
}

// TestFolders: folders below a volume are made, and what has no record is removed.
func TestFolders(t *testing.T) {
	t.Parallel()
	f := folders(t)
	must(t, f.Sweep(nil))
	for _, id := range []string{"vol_1", "vol_2", "vol_3"} {
		must(t, f.Make("prj_1", id))
	}
	if f.Make("prj_1", "vol_1") == nil {
		t.Error("a volume is made twice")
	}
	must(t, f.MakeSub("prj_1", "vol_1", "a/b/c"))
	must(t, f.MakeSub("prj_1", "vol_1", "a/b/c"))
	if info, err := os.Stat(filepath.Join(f.Dir, "prj_1", "vol_1", "a", "b", "c")); err != nil || !info.IsDir() {
		t.Errorf("there is %v, %v", info, err)
	}
	outside := t.TempDir()
	must(t, os.Symlink(outside, filepath.Join(f.Dir, "prj_1", "vol_1", "out")))
	if f.MakeSub("prj_1", "vol_1", "out/x") == nil {
		t.Error("a folder is made outside")
	}
	must(t, f.Remove("prj_1", "vol_2"))
	must(t, f.Remove("prj_1", "vol_2"))
	must(t, os.Mkdir(filepath.Join(f.Dir, "prj_1", ".gone-vol_9"), 0o700))
	must(t, f.Sweep(func(_, id string) (bool, error) { return id == "vol_1", nil }))
	left, err := os.ReadDir(filepath.Join(f.Dir, "prj_1"))
	must(t, err)
	if len(left) != 1 || left[0].Name() != "vol_1" {
		t.Errorf("there are %v", left)
	}
}
