package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
)

const things = `import pandas as pd, numpy as np, datetime, json
class Slow:
    def __repr__(self): raise SystemExit("code of the user's has run")
    __str__ = __lt__ = __eq__ = __len__ = __hash__ = __repr__
class Meta(type):
    def __getattribute__(self, name): raise SystemExit("code of the user's has run")
class Odd(metaclass=Meta):
    @property
    def __class__(self): raise SystemExit("code of the user's has run")
class Framed(pd.DataFrame):
    @property
    def shape(self): raise SystemExit("code of the user's has run")
def function(): pass
_hidden = 1
number, text, data = 2**70, "é" * 300, {"a": [1, 2], "b": Slow()}
slow, odd, framed = Slow(), object.__new__(Odd), Framed({"x": [1]})
grid = np.arange(12.0).reshape(3, 4)
df = pd.DataFrame({"n": range(1000), "city": ["Köln", "北京", None, "Oslo"] * 250, "x": [0.5, float("nan"), float("inf"), 1e300] * 250,
                   "day": pd.Timestamp("2026-01-02"), "odd": [Slow()] * 1000, "n2": np.int64(5)}).rename(columns={"n2": "n"})`

func TestVariables(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	run(t, k, things)
	said, err := k.Variables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range said.Items {
		line := fmt.Sprint(v.Name, " ", v.Type, " ", v.Shape, " ", v.Table, " ", strings.Split(v.Preview, ",")[0])
		got = append(got, line[:min(len(line), 60)])
	}
	want := []string{
		"number int [] false 1180591620717411303424", "text str [] false 'éééééééééééééééééééé", "data dict [] false {'a': list of 2",
		"slow Slow [] false ", "odd Odd [] false ", "framed Framed [] false ", "grid numpy.ndarray [3 4] true ", "df pandas.DataFrame [1000 6] true ",
	}
	for i := range got {
		if i < len(want) && strings.HasPrefix(got[i], want[i]) {
			got[i] = want[i]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if df := said.Items[len(said.Items)-1]; df.Bytes == nil || *df.Bytes < 10_000 {
		t.Errorf("df takes %v bytes", df.Bytes)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	run(t, k, things)
	column := func(n int) *int { return &n }
	read := func(q kernel.TableQuery) string {
		t.Helper()
		got, err := k.Table(t.Context(), q)
		if err != nil {
			t.Fatalf("%+v", err)
		}
		return fmt.Sprint(got.Total, got.Matching, got.Offset, got.Index, got.Rows)
	}
	for want, q := range map[string]kernel.TableQuery{
		"1000 1000 1 [1 2] [[1 北京 <nil> 2026-01-02 00:00:00 <Slow> 5] [2 <nil> inf 2026-01-02 00:00:00 <Slow> 5]]": {Name: "df", Offset: 1, Limit: 2},
		"1000 1000 0 [999] [[999 Oslo 1e+300 2026-01-02 00:00:00 <Slow> 5]]":                                       {Name: "df", Limit: 1, Sort: column(0), Descending: true},
		"1000 250 1 [4] [[4 Köln 0.5 2026-01-02 00:00:00 <Slow> 5]]":                                               {Name: "df", Offset: 1, Limit: 1, Filter: "kÖLN"},
		"1000 1000 0 [0] [[0 Köln 0.5 2026-01-02 00:00:00 <Slow> 5]]":                                              {Name: "df", Limit: 1, Sort: column(4)},
		"3 3 0 [2] [[8 9 10 11]]": {Name: "grid", Limit: 1, Sort: column(-1), Descending: true},
		"1000 1000 5000 [] []":    {Name: "df", Offset: 5000, Limit: 9},
		"1000 0 0 [] []":          {Name: "df", Limit: 9, Filter: "nowhere"},
	} {
		if got := read(q); got != want {
			t.Errorf("%+v\nis  %s\nnot %s", q, got, want)
		}
	}
	for code, q := range map[problem.Code]kernel.TableQuery{
		problem.VariableUnknown: {Name: "nothing", Limit: 1}, problem.NotATable: {Name: "framed", Limit: 1},
	} {
		if _, err := k.Table(t.Context(), q); !problem.Has(err, code) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if _, err := k.Table(t.Context(), kernel.TableQuery{Name: "df", Limit: 1, Sort: column(77)}); !problem.Has(err, problem.VariableUnknown) {
		t.Errorf("a column that is not there: %v", err)
	}
	for n, want := range []string{"{n int64 1000 0 1000 0 999", "{city object 1000 250 3", "{x float64 1000 250 3", "{day datetime64", "{odd object 1000 0 1", "{n int64 1000 0 1 5 5"} {
		p, err := k.Profile(t.Context(), "df", n)
		if got := fmt.Sprint(p.Name, " ", p.Type, " ", p.Rows, " ", p.Missing, " ", p.Distinct, " ", p.Min, " ", p.Max); err != nil || !strings.HasPrefix("{"+got, want) && !strings.HasPrefix("{"+strings.Replace(got, "city str", "city object", 1), want) {
			t.Errorf("column %d is %s, %v; not %s", n, got, err, want)
		}
	}
	if p, _ := k.Profile(t.Context(), "df", 0); len(p.Bars) != 20 || len(p.Edges) != 21 || p.Mean == nil || *p.Mean != 499.5 {
		t.Errorf("the profile of a column of numbers is %+v", p)
	}
	if got := run(t, k, "print(df.shape, len(grid))"); got != "(1000, 6) 3\n" {
		t.Errorf("afterwards: %s", got)
	}
}

// TestShownTables asks for the rest of tables by the names under which they were shown.
func TestShownTables(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	const mime = "application/vnd.cove.table+json"
	// Whoever stops reading interrupts the code, and the traceback of that would keep the table: all is read.
	shown := func(code string) (table map[string]any) {
		t.Helper()
		for ev, err := range k.Execute(t.Context(), kernel.Request{Code: code}) {
			if err != nil {
				t.Fatal(err)
			}
			var data kernel.Bundle
			switch e := ev.(type) {
			case kernel.Result:
				data = e.Data
			case kernel.Display:
				data = e.Data
			}
			if data != nil {
				text, _ := json.Marshal(data[mime])
				_ = json.Unmarshal(text, &table)
			}
		}
		return table
	}
	table := shown("import pandas as pd\ndf = pd.DataFrame({'a': range(300), 'b': 'x'}); display(df)")
	if rows, _ := table["rows"].([]any); len(rows) != 50 || fmt.Sprint(table["total"]) != "300" {
		t.Fatalf("shown as %v", table)
	}
	name, _ := table["name"].(string)
	if got, err := k.Table(t.Context(), kernel.TableQuery{Name: name, Offset: 299, Limit: 9}); err != nil || fmt.Sprint(got.Rows) != "[[299 x]]" {
		t.Errorf("the rest is %v, %v", got.Rows, err)
	}
	run(t, k, "del df\nimport gc; gc.collect()")
	if _, err := k.Table(t.Context(), kernel.TableQuery{Name: name, Limit: 1}); !problem.Has(err, problem.VariableUnknown) {
		t.Errorf("a table that is gone: %v", err)
	}
	for _, other := range []string{"df = pd.DataFrame({'a': [1]}); df.style", "class D(pd.DataFrame): pass\nD({'a': [1]})", "5", "[1]"} {
		if table := shown(other); table != nil {
			t.Errorf("%s is shown as %v", other, table)
		}
	}
}
