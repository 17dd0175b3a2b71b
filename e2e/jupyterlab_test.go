package e2e_test

import (
	"archive/zip"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJupyterLab has people's way through JupyterLab done in a real browser: with cove as the gateway of a JupyterLab on one's own machine, and with cove's files and terminals, too.
func TestJupyterLab(t *testing.T) {
	t.Parallel()
	chromium := browser(t)
	source := filepath.Join("testdata", "sdk", "jupyterlab")
	python := pythonFolder(t, source)
	cmd := nodeSDK(t, source)
	s := startServer(t, "", testKey(t), "COVE_PACKAGES=standard")
	own := t.TempDir()
	cmd.Env = append(os.Environ(), "COVE_TEST_URL="+s.base+"/jupyter", "COVE_TEST_KEY="+s.key, "CHROMIUM="+chromium, "COVE_JUPYTER_PYTHON="+filepath.Join(python, "venv", "bin", "python"),
		"COVE_WIDGETS="+widgets(t, python), "HOME="+own, "XDG_CONFIG_HOME="+own, "XDG_CACHE_HOME="+own, "JUPYTER_PLATFORM_DIRS=1", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	for _, told := range []string{"ok a gateway: run, plot, interrupt, restart", "ok with files: run, plot, interrupt, restart", "ok files, widgets and a terminal"} {
		if !strings.Contains(string(out), told) {
			t.Errorf("not told: %s", told)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v\n%s\nthe server: %s", err, out, s.log)
	}
}

// widgets packs the packages of widgets that a venv has, so that a notebook can import them from beside it.
func widgets(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "widgets.zip")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(out)
	for _, name := range []string{"ipywidgets", "comm"} {
		found, err := filepath.Glob(filepath.Join(folder, "venv", "lib", "python3*", "site-packages", name))
		if err != nil || len(found) != 1 {
			t.Fatalf("%v: %q", err, found)
		}
		err = filepath.WalkDir(found[0], func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(file) != ".py" {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			inside, err := filepath.Rel(filepath.Dir(found[0]), file)
			if err != nil {
				return err
			}
			w, err := archive.Create(filepath.ToSlash(inside))
			if err == nil {
				_, err = w.Write(text)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
