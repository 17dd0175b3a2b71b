package layer_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"cove/internal/python/deps/layer"
)

// TestProgramsOfOlderLayers: a layer from before programs were kept stays as it is for who has it, and is made anew for who wants it.
func TestProgramsOfOlderLayers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "packages")
	x, s := newIndex(), open(t, dir, layer.Limits{})
	c := closure(t, x.add(t, dist("tool", "tool.py", "x = 1\n", "tool-1.0.data/scripts/tool", "\x7fELF", "tool-1.0.data/scripts/other", "#!python\n")))
	first := ensure(t, s, c, x)
	undate(t, filepath.Join(dir, "manifests", "*.json"))
	undate(t, filepath.Join(dir, "wheels", "*", "wheel.json"))
	if err := os.RemoveAll(filepath.Join(s.Folder(), first.Name, "bin")); err != nil {
		t.Fatal(err)
	}

	second := ensure(t, s, c, x)
	if second.Name == first.Name {
		t.Error("the layer without programs was taken")
	}
	if _, err := os.Stat(filepath.Join(s.Folder(), second.Name, "bin/tool")); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(first.Name); err != nil {
		t.Error(err)
	}
	if found, ok := s.Find(c); !ok || found.Name != second.Name {
		t.Errorf("found %v, %v", found, ok)
	}
}

// undate takes away what says that programs were kept.
func undate(t *testing.T, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %q, %v", pattern, files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	older := regexp.MustCompile(`,?\s*"format":\s*2`).ReplaceAll(text, nil)
	if len(older) == len(text) {
		t.Fatalf("%s does not say its format: %s", files[0], text)
	}
	if err := os.WriteFile(files[0], older, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestProgramsInTheWay: a program yields to a file of the module path.
func TestProgramsInTheWay(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, filepath.Join(t.TempDir(), "packages"), layer.Limits{})
	c := closure(t, x.add(t, dist("tool", "bin/tool", "not a program\n", "tool-1.0.data/scripts/tool", "\x7fELF")))
	l := ensure(t, s, c, x)
	text, err := os.ReadFile(filepath.Join(s.Folder(), l.Name, "bin/tool"))
	if err != nil || string(text) != "not a program\n" || len(l.Stripped) != 1 {
		t.Errorf("%q, %v, stripped %q", text, err, l.Stripped)
	}
}
