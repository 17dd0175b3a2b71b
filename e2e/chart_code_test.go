package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"cove/internal/testkit/testneeds"
)

// drawCharts runs the code of each chart as a cell would be, and says which of them came out otherwise than they should.
const drawCharts = `import contextlib, io, json, os, traceback, warnings
import matplotlib.pyplot as plt, pandas as pd, polars
shown = []
def show():
    for number in plt.get_fignums():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of letters that no font has
            plt.figure(number).canvas.draw()
        shown.append(number)
    plt.close("all")
plt.show = show
cases, wrong = json.load(open("cases.json")), []
for case in cases:
    names, out = {"pd": pd}, io.StringIO()
    shown.clear()
    try:
        names["__name__"] = "__main__"
        exec(case["setup"], names)
        before = {name for name in names if not name.startswith("_")}
        transformed = get_ipython().transform_cell(case["code"])
        with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            exec(compile(case["code"], "chart", "exec"), names)
        more = {name for name in names if not name.startswith("_")} - before
        said = [str(w.message) for w in warned]
        if len(shown) != case["figure"] or not shown and not out.getvalue() or said or more or transformed != case["code"]:
            wrong.append((case["name"], len(shown), out.getvalue(), said, more))
    except BaseException:
        wrong.append((case["name"], traceback.format_exc()[-600:]))
for w in wrong[:20]:
    print(*w)
print(len(cases) > 150, len(wrong), "wrong")
`

// TestChartCode runs the code of charts that the page makes, of tables with hostile names and of all kinds: each draws one figure or says in words why not, warns of nothing and leaves no names.
func TestChartCode(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	f := newFront(t)
	file := filepath.Join(t.TempDir(), "cases.json")
	f.run(nil, "node", "src/chart/record.mjs", file)
	cases, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := newCommand(t, "run", "--packages", "standard", "-f", "cases.json", "-c", drawCharts)
	c.file("cases.json", string(cases))
	r := c.run()
	r.ended(t, 0)
	if want := "True 0 wrong\n"; r.stdout != want {
		t.Errorf("%s\n%s", r.stdout, r.stderr)
	}
}
