package kernel_test

import (
	"encoding/json"
	"strings"
	"testing"

	"cove/internal/python/kernel"
	"cove/internal/testkit/testneeds"
)

// shownBy runs code and returns what it printed and how many figures it showed.
func shownBy(t *testing.T, k *kernel.Kernel, mode kernel.Mode, code string) (printed string, figures int) {
	t.Helper()
	for ev, err := range k.Execute(t.Context(), kernel.Request{Code: code, Mode: mode}) {
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		switch e := ev.(type) {
		case kernel.Stream:
			printed += string(e.Data)
		case kernel.Display:
			if _, ok := e.Data["image/png"]; ok {
				figures++
			}
		case kernel.Error:
			t.Errorf("%s: %s", code, strings.Join(e.Traceback, "\n"))
		}
	}
	return printed, figures
}

// TestInteractiveFigures has every way to ask for a window or a widget show figures inline, with a word the first time.
func TestInteractiveFigures(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	_, _, k := begin(t)
	const word = "figures are shown inline"
	const plot = "\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
	for n, code := range []string{
		"%matplotlib notebook", "%matplotlib widget", "%matplotlib ipympl", "%matplotlib qt", "%matplotlib tk", "%matplotlib", "%matplotlib inline",
		"import matplotlib\nmatplotlib.use('TkAgg')", "import matplotlib\nmatplotlib.use('module://ipympl.backend_nbagg')", "import matplotlib.pyplot as plt\nplt.switch_backend('Qt5Agg')",
	} {
		printed, figures := shownBy(t, k, kernel.Cell, code+plot)
		if figures != 1 || strings.Contains(printed, word) != (n == 0) {
			t.Errorf("%s shows %d figures and prints %q", code, figures, printed)
		}
	}
	if _, figures := shownBy(t, k, kernel.Cell, "import matplotlib\nmatplotlib.use('agg')"+plot); figures != 0 {
		t.Errorf("a back end without a screen shows %d figures", figures)
	}
	shownBy(t, k, kernel.Cell, "%matplotlib inline")
}

// TestProcessesFigures has a kernel show figures that is told no backend, as in an image, where the processes that code starts may have no backend of the kernel's; and one that code has chosen used.
func TestProcessesFigures(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	printed, figures := shownBy(t, k, kernel.Cell, `import os, subprocess, sys
import matplotlib.pyplot as plt
plt.plot([1, 2])
plt.show()
child = "import matplotlib.pyplot as plt; plt.plot([1]); print(plt.get_backend())"
print(os.environ.get("MPLBACKEND"), subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout)`)
	if figures != 1 || strings.ToLower(printed) != "none agg\n\n" {
		t.Errorf("it shows %d figures and prints %q", figures, printed)
	}
	_, _, other := begin(t)
	if _, figures := shownBy(t, other, kernel.Cell, "import os\nos.environ['MPLBACKEND'] = 'agg'\nimport matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()"); figures != 0 {
		t.Errorf("a backend that code has chosen shows %d figures", figures)
	}
}

// TestScriptsFigures has show() leave a script's figures as they are, and show each once until it is changed.
func TestScriptsFigures(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	const lines = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\n"
	for _, c := range []struct {
		code    string
		printed string
		figures int
	}{
		{lines + "plt.show()\nprint(plt.get_fignums(), len(plt.gca().lines))", "[1] 1\n", 1},
		{lines + "plt.show()\nplt.savefig('a.png')\nplt.show()", "", 1},
		{lines + "plt.show()\nplt.plot([3, 4])\nplt.show()\nprint(len(plt.gca().lines))", "2\n", 2},
		{lines + "plt.show()\nplt.figure()\nplt.plot([1])", "", 2},
		{lines + "plt.show()\nplt.close()\nprint(plt.get_fignums())", "[]\n", 1},
		{lines, "", 1},
		{"import matplotlib.pyplot as plt\nprint(plt.get_fignums())", "[]\n", 0},
	} {
		if printed, figures := shownBy(t, k, kernel.Script, c.code); printed != c.printed || figures != c.figures {
			t.Errorf("%s\nprints %q and shows %d figures, not %q and %d", c.code, printed, figures, c.printed, c.figures)
		}
	}
	if printed, figures := shownBy(t, k, kernel.Cell, lines+"plt.show()\nprint(plt.get_fignums())"); printed != "[]\n" || figures != 1 {
		t.Errorf("a cell prints %q and shows %d figures", printed, figures)
	}
}

// TestSavedFigures has a figure say which file of the workspace it was saved as, until it is changed.
func TestSavedFigures(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	const lines = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.legend(['a'])\nplt.savefig('a.png')\n"
	for code, want := range map[string]string{
		lines + "plt.show()": `"saved":"a.png"`, lines: `"saved":"a.png"`, "import os\nos.makedirs('b', exist_ok=True)\n" + lines + "plt.savefig('b/c.pdf', dpi=200)": `"saved":"b/c.pdf"`,
		lines + "plt.title('x')": "", lines + "plt.plot([3])\nplt.show()": "", "import matplotlib.pyplot as plt, io\nplt.plot([1])\nplt.savefig(io.BytesIO())": "",
		"import matplotlib.pyplot as plt, io\nplt.plot([1])\nplt.savefig('/tmp/a.png')": "",
	} {
		about := "nothing was shown"
		for ev, err := range k.Execute(t.Context(), kernel.Request{Code: code}) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := ev.(kernel.Display); ok {
				raw, _ := d.Metadata["image/png"].(json.RawMessage)
				about = string(raw)
			}
		}
		if strings.Contains(about, "saved") != (want != "") || !strings.Contains(about, want) {
			t.Errorf("%s\nshows a figure of which it says %s, want %s in it", code, about, want)
		}
	}
}

// TestNotebookTools has %store, bars for notebooks and sources of cells work as in Jupyter.
func TestNotebookTools(t *testing.T) {
	t.Parallel()
	w, _, k := begin(t)
	for _, c := range []struct{ code, want string }{
		{"from tqdm.notebook import tqdm, trange\nfor i in tqdm(range(3)): pass\nfor i in trange(3): pass", "3/3"},
		{"from tqdm.auto import tqdm\nfor i in tqdm(range(3)): pass", "3/3"},
		{"kept = 41\n%store kept\ndel kept\n%store -r kept\nprint(kept + 1)", "42"},
	} {
		if printed, _ := shownBy(t, k, kernel.Cell, c.code); !strings.Contains(printed, c.want) {
			t.Errorf("%s prints %q", c.code, printed)
		}
	}
	// The part of line_profiler that says which names of files are cells, as line_profiler 5 has it.
	dir := w.layer(t, "profiler", map[string]string{
		"line_profiler/__init__.py": "", "line_profiler/line_profiler.py": "def is_generated_code(filename):\n    return filename.startswith('<generated')\n",
	})
	// What an extension for %sql has to be: a module that is loaded when the magic is first used.
	sql := w.layer(t, "sql", map[string]string{"sql/__init__.py": "def load_ipython_extension(shell):\n    shell.register_magic_function(lambda line, cell: print('asked', line, cell.strip()), 'cell', 'sql')\n"})
	add(t, k, kernel.Paths{Last: []string{dir, sql}})
	if printed, _ := shownBy(t, k, kernel.Cell, "%%sql sqlite://\nselect 1"); printed != "asked sqlite:// select 1\n" {
		t.Errorf("%%%%sql without its extension loaded prints %q", printed)
	}
	if printed, _ := shownBy(t, k, kernel.Cell, "from line_profiler.line_profiler import is_generated_code as cell\nprint(cell('<cell 3>'), cell('<generated 1>'), cell('a.py'))"); printed != "True True False\n" {
		t.Errorf("cells are told apart as %q", printed)
	}
}
