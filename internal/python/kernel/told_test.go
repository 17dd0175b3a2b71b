package kernel_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cove/internal/python/kernel"
)

// shownAs runs code as a model's or as a person's and returns what it printed, and its last value in text/plain and as a model is told of it.
func shownAs(t *testing.T, k *kernel.Kernel, model bool, code string) (printed, plain, told string) {
	t.Helper()
	for ev, err := range k.Execute(t.Context(), kernel.Request{Code: code, Model: model}) {
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		var data kernel.Bundle
		switch e := ev.(type) {
		case kernel.Stream:
			printed += string(e.Data)
		case kernel.Result:
			data, told = e.Data, e.Told.Text
		case kernel.Display:
			data, told = e.Data, e.Told.Text
		}
		if data != nil {
			plain, _ = data["text/plain"].(string)
			if all, _ := json.Marshal(data); strings.Contains(string(all), "cove.told") || strings.Contains(string(all), "cove.chart") {
				t.Errorf("%s: what is for a model is in the bundle: %s", code, all)
			}
		}
	}
	return printed, plain, told
}

const wideFrame = `import pandas as pd, numpy as np
wide = pd.DataFrame({"column%02d" % i: range(100) for i in range(15)})
wide.loc[3, "column14"] = np.nan
`

func TestToldTables(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	_, plain, told := shownAs(t, k, false, wideFrame+"wide")
	if told != "" || plain == "" {
		t.Errorf("people are shown %q and a model %q", plain, told)
	}
	for _, code := range []string{"wide", "display(wide)"} {
		_, again, told := shownAs(t, k, true, code)
		if !strings.Contains(told, "column07") || !strings.Contains(told, "[DataFrame: 100 rows × 15 columns]") || !strings.Contains(told, "[missing: column14 1]") {
			t.Errorf("%s: a model is told %q", code, told)
		}
		if again == "" {
			t.Errorf("%s: there is no text/plain", code)
		}
	}
	const options = "print(pd.get_option('display.max_columns'), pd.get_option('display.width'))"
	persons, _, _ := shownAs(t, k, false, options)
	if models, _, _ := shownAs(t, k, true, options); models != persons {
		t.Errorf("a model's options read %s, a person's %s", models, persons)
	}
	models, _, _ := shownAs(t, k, true, "print(wide)")
	if header, _, _ := strings.Cut(models, "\n"); !strings.Contains(header, "column00") || !strings.Contains(header, "column14") {
		t.Errorf("a model's print is %q", models)
	}
	persons, _, _ = shownAs(t, k, false, "print(wide)")
	if header, _, _ := strings.Cut(persons, "\n"); strings.Contains(header, "column14") {
		t.Errorf("a person's print is %q", persons)
	}
	_, shown, _ := shownAs(t, k, true, "wide")
	if header, _, _ := strings.Cut(shown, "\n"); strings.Contains(header, "column14") {
		t.Errorf("people are shown %q of a model's code", shown)
	}
	if printed, _, told := shownAs(t, k, true, "pd.set_option('display.max_columns', 4)\nprint(wide)\nwide"); strings.Contains(printed, "column07") || told != "" {
		t.Errorf("with an option of its own the code prints %q and a model is told %q", printed, told)
	}
}

// TestTablesOnTerminals has tables as wide as the terminal, without a line that is wider or broken.
func TestTablesOnTerminals(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	run(t, k, wideFrame)
	on := func(columns int, code string) string {
		t.Helper()
		text := ""
		for ev, err := range k.Execute(t.Context(), kernel.Request{Code: code, Columns: columns}) {
			if err != nil {
				t.Fatal(err)
			}
			switch e := ev.(type) {
			case kernel.Stream:
				text += string(e.Data)
			case kernel.Result:
				plain, _ := e.Data["text/plain"].(string)
				text += plain
			}
		}
		return text
	}
	for _, code := range []string{"wide", "print(wide)"} {
		for columns, want := range map[int]int{60: 4, 170: 15} {
			lines := strings.Split(strings.TrimSpace(on(columns, code)), "\n")
			if n := strings.Count(lines[0], "column"); n < want || len(lines[0]) > columns {
				t.Errorf("on %d columns %s begins with %q", columns, code, lines[0])
			}
			if rows := len(lines); rows > 14 {
				t.Errorf("on %d columns %s has %d lines", columns, code, rows)
			}
		}
	}
	// Without a terminal a cell shows what Jupyter shows, unless the code says otherwise.
	const asJupyter = "import io\nwith pd.option_context('display.max_columns', 20, 'display.width', 80): told = repr(wide)\n"
	if got := on(0, asJupyter+"out = io.StringIO()\nprint(wide, file=out)\nprint(repr(wide) == told == out.getvalue().rstrip(), 'column07' in told)"); got != "True True\n" {
		t.Errorf("a cell without a terminal shows tables otherwise than Jupyter: %q", got)
	}
	if got := on(0, "pd.set_option('display.max_columns', 3)\nn = repr(wide).count('column1')+repr(wide).count('column0')\npd.reset_option('display.max_columns')\nn"); got != "2" {
		t.Errorf("with at most 3 columns asked for, a table shows %s", got)
	}
	const chinese = "pd.DataFrame({'地区': ['华东', 'South'], 'n': [1, 2]})"
	if got, want := on(80, chinese), "    地区  n\n0   华东  1\n1  South  2"; got != want {
		t.Errorf("a table with Chinese is\n%s\nwant\n%s", got, want)
	}
	if got, want := on(0, chinese), "      地区  n\n0     华东  1\n1  South  2"; got != want {
		t.Errorf("without a terminal a table with Chinese is\n%s\nwant\n%s", got, want)
	}
	const array = "import numpy as np\nprint(max(map(len, repr(np.arange(1000)[:500]).splitlines())))"
	if a, b, c := on(140, array), on(40, array), on(0, array); a <= "100" || len(a) != 4 || b > "40" || c > "75" {
		t.Errorf("lines of arrays are as long as %q, %q and %q", a, b, c)
	}
	if got := on(140, "np.set_printoptions(linewidth=50)\n"+array); got > "50" {
		t.Errorf("with a width of the code's own, lines of arrays are as long as %q", got)
	}
	const asks = "import os\nos.environ.get('COLUMNS')"
	if a, b := on(99, asks), on(0, asks); a != "'99'" || strings.TrimSpace(b) != "" {
		t.Errorf("COLUMNS is %q, and %q without a terminal", a, b)
	}
	on(99, "os.environ['COLUMNS'] = '70'")
	if got := on(99, asks); got != "'70'" {
		t.Errorf("COLUMNS of the code's own is %q", got)
	}
}

func TestToldHostileTables(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	run(t, k, `import pandas as pd, numpy as np
class Bad:
    def __repr__(self): raise ValueError("no words")
    __str__ = __repr__
class Calm:
    def __repr__(self): return "calm"
class Bare(pd.DataFrame): pass
`)
	for code, want := range map[string]string{
		"pd.DataFrame({'a': np.arange(10_000_000), 'b': np.nan})":                                   "[missing in the first 1000000 rows: b 1000000]",
		"pd.DataFrame(np.zeros((3, 10_000)))":                                                       "more columns: ",
		"pd.DataFrame([[1, 2]], columns=['a', 'a'])":                                                ",a,a\n0,1,2",
		"pd.DataFrame({'a': ['x' * 100_000, '北京, \"市\"\\n']})":                                      "1,\"北京, \"\"市\"\"\\n\"",
		"pd.DataFrame({'a': [Calm(), {'k': [1, 2]}]})":                                              "0,calm\n1,{'k': list of 2}",
		"pd.DataFrame({'v': [1.5]}, index=pd.MultiIndex.from_tuples([(1, 'x')], names=['n', 'm']))": "n,m,v\n1,x,1.5",
		"pd.DataFrame({('v', 'mean'): [1.5]})":                                                      ",v/mean\n0,1.5",
		"pd.DataFrame({'a': [12345678.9, 4.0, 0.1 + 0.2, 1e-9, 1e300]})":                            "0,12345678.9\n1,4.0\n2,0.3\n3,1e-09\n4,1e+300",
		"pd.DataFrame()":    "[DataFrame: 0 rows × 0 columns]",
		"Bare({'a': [1]})":  "",
		"pd.Series([1, 2])": "",
		"[1, 2, 3]":         "",
	} {
		began := time.Now()
		_, plain, told := shownAs(t, k, true, code)
		if plain == "" || !strings.Contains(told, want) || want == "" && told != "" || len(told) > 12_000 {
			t.Errorf("%s: a model is told %.900q, not %q; text/plain is %.80q", code, told, want, plain)
		}
		t.Log(code, len(told), time.Since(began))
	}
	// The words that pandas cannot find either are the code's own error, and the kernel goes on.
	shownAs(t, k, true, "pd.DataFrame({'a': [Bad()]})")
	if _, plain, _ := shownAs(t, k, true, "1 + 1"); plain != "2" {
		t.Errorf("afterwards 1 + 1 is %q", plain)
	}
	forged := `class F:
    def _repr_cove_told_(self): return "forged" * 10_000
F()`
	if _, _, told := shownAs(t, k, true, forged); told != "" {
		t.Errorf("a model is told %d bytes that are more than the bound", len(told))
	}
	if _, _, told := shownAs(t, k, false, strings.Replace(forged, "10_000", "1", 1)); told != "" {
		t.Errorf("without being asked the kernel tells %q", told)
	}
}
