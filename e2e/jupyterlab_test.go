package e2e_test

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// TestClientsJupyterLab has people's way through JupyterLab and Notebook 7 done in a real browser: with cove as their gateway on one's own machine, and through JupyterLab with cove's files and terminals, too.
func TestClientsJupyterLab(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	chromium := browser(t)
	source := filepath.Join("testdata", "sdk", "jupyterlab")
	python := pythonFolder(t, source)
	cmd := nodeSDK(t, source)
	s := startServer(t, "", testKey(t), "COVE_PACKAGES=standard")
	own := t.TempDir()
	cmd.Env = append(os.Environ(), "COVE_TEST_URL="+s.base+"/jupyter", "COVE_TEST_KEY="+s.key, "CHROMIUM="+chromium, "COVE_JUPYTER_PYTHON="+filepath.Join(python, "venv", "bin", "python"),
		"COVE_WIDGETS="+widgets(t, python), "HOME="+own, "XDG_CONFIG_HOME="+own, "XDG_CACHE_HOME="+own, "JUPYTER_PLATFORM_DIRS=1", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	for _, told := range []string{"ok a gateway: run, plot, interrupt, restart", "ok Notebook 7: run, plot, interrupt, restart", "ok with files: run, plot, interrupt, restart", "ok files, widgets and a terminal"} {
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

// document has the kernel of a document run code beside the document's files, also when its session was paused, and returns the kernel's id.
func document(t *testing.T, s *server) string {
	t.Helper()
	s.must(http.MethodPut, "/jupyter/api/contents/work/word.txt", map[string]string{"type": "file", "format": "text", "content": "beside"}, nil)
	var made struct{ Kernel notebookKernel }
	s.must(http.MethodPost, "/jupyter/api/sessions", map[string]any{"path": "work/a.ipynb", "type": "notebook", "kernel": map[string]string{"name": "python3"}}, &made)
	n := s.notebook(made.Kernel.ID, "document", true)
	n.t = t
	if got := typesOf(n.run("word = open('word.txt').read()\nword")); got != "busy execute_input execute_result:'beside' execute_reply:ok:1 idle" {
		t.Errorf("beside a file: %s", got)
	}
	var all struct {
		Items []struct {
			ID       string
			Metadata map[string]string
		}
	}
	s.must(http.MethodGet, "/api/v1/sessions", nil, &all)
	paused := 0
	for _, one := range all.Items {
		if one.Metadata["jupyter.personal"] != "" {
			s.must(http.MethodPost, "/api/v1/sessions/"+one.ID+"/pause", nil, nil)
			paused++
		}
	}
	if paused != 1 {
		t.Fatalf("there are %d personal sessions", paused)
	}
	if got := typesOf(n.run("word")); got != "busy execute_input execute_result:'beside' execute_reply:ok:2 idle" {
		t.Errorf("after a pause: %s", got)
	}
	if got := typesOf(n.run("raise SystemExit(3)")); got != "busy execute_input error:SystemExit execute_reply:error:3 idle" {
		t.Errorf("a third cell: %s", got)
	}
	if r, err := s.call(t.Context(), http.MethodGet, "/jupyter/api/resolvePath?path=word.txt&kernel="+made.Kernel.ID, nil); err != nil || string(r.body) != fmt.Sprintln(`{"resolved":[{"scope":"kernel","path":"/home/user/work/word.txt"}]}`) {
		t.Errorf("%v: the path is %s", err, r.body)
	}
	return made.Kernel.ID
}
