package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/llm/model/modeltest"
	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
)

// jupyter makes a Python that has what reads and runs notebooks, or says why it cannot.
func jupyter(t *testing.T) string {
	t.Helper()
	cfg, err := testneeds.Config()
	if err != nil {
		t.Fatal(err)
	}
	uv, err := pyenv.UV(t.Context(), cfg.Folders.Data, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "venv")
	for _, args := range [][]string{{"venv", "-q", dir}, {"pip", "install", "-q", "--python", dir, "nbformat", "nbclient", "ipykernel"}} {
		if out, err := exec.CommandContext(t.Context(), uv, args...).CombinedOutput(); err != nil {
			testneeds.Absent(t, testneeds.Index, fmt.Sprintf("it gives no Jupyter: uv %s: %v\n%s", args[0], err, out))
		}
	}
	return filepath.Join(dir, "bin", "python")
}

// checkNotebook validates a notebook with Jupyter's own code, runs it, and prints what it showed before and what it shows then.
const checkNotebook = `
import json, sys, nbformat
from nbclient import NotebookClient
nb = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(nb)
def shown():
    out = []
    for c in nb.cells:
        if c.cell_type == 'code':
            for o in c.outputs:
                out.append(o.get('text') or o.get('ename') or sorted(o.get('data', {})))
    return out
before = shown()
NotebookClient(nb, timeout=60, allow_errors=True, resources={'metadata': {'path': sys.argv[2]}}).execute()
print(json.dumps([before, shown()]))
`

// TestExportedNotebooks asks, exports, and has Jupyter read and run what came out.
func TestExportedNotebooks(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	python := jupyter(t)
	c, _ := asking(t, "openai/scripted", []modeltest.Turn{
		modeltest.Run("print(open('数据.csv').read().strip())\n1/0"),
		modeltest.Run("import base64\nfrom IPython.display import Image, display\ndisplay(Image(base64.b64decode('" + pixel + "')))\nprint('流失', 6 * 7)\n{'a': 1}"),
		modeltest.Say("It is **42**."),
	}, "-f", "数据.csv", "流失多少？")
	c.file("数据.csv", "region,churn\nNorth,42\n")
	c.run().ended(t, 0)

	export := c.again("export", "-o", "churn.ipynb")
	export.run().ended(t, 0)
	script := c.path("check.py")
	c.file("check.py", checkNotebook)
	out, err := exec.CommandContext(t.Context(), python, script, c.path("churn.ipynb"), c.cmd.Dir).Output()
	if err != nil {
		text, _ := os.ReadFile(c.path("churn.ipynb"))
		t.Fatalf("Jupyter does not take it: %v\n%s\n%s", err, stderrOf(err), text)
	}
	var shown [2]json.RawMessage
	if err := json.Unmarshal(out, &shown); err != nil {
		t.Fatal(err)
	}
	if string(shown[0]) != string(shown[1]) {
		t.Errorf("the notebook showed\n%s\nand shows when it is run\n%s", shown[0], shown[1])
	}
	for _, want := range []string{"North,42", "ZeroDivisionError", "42", "image/png"} {
		if !strings.Contains(string(shown[1]), want) {
			t.Errorf("what the notebook shows lacks %q: %s", want, shown[1])
		}
	}
}

func stderrOf(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(exit.Stderr)
	}
	return ""
}

// again is another command in the same folder, with the same settings and history.
func (c *command) again(args ...string) *command {
	next := newCommand(c.t, args...)
	next.cmd.Dir, next.cmd.Env, next.runtime = c.cmd.Dir, c.cmd.Env, c.runtime
	return next
}
