package kernel_test

import (
	"strings"
	"testing"

	"cove/internal/python/chart"
	"cove/internal/python/kernel"
)

// chartsOf runs a model's code and returns what it is told of each figure, in words.
func chartsOf(t *testing.T, k *kernel.Kernel, model bool, code string) (words []string) {
	t.Helper()
	for ev, err := range k.Execute(t.Context(), kernel.Request{Code: code, Model: model}) {
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		told := kernel.Told{}
		switch e := ev.(type) {
		case kernel.Result:
			told = e.Told
		case kernel.Display:
			told = e.Told
		case kernel.Stream:
			t.Logf("%s: %s", code, e.Data)
		case kernel.Error:
			t.Errorf("%s: %s", code, strings.Join(e.Traceback, "\n"))
		}
		if told.Chart != nil {
			c, err := chart.Parse(told.Chart)
			if err != nil {
				t.Fatalf("%s: %v: %s", code, err, told.Chart)
			}
			words = append(words, c.Words(6000))
		}
	}
	return words
}

// TestCharts has the figures of the usual calls told in words.
func TestCharts(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	run(t, k, `import matplotlib.pyplot as plt, numpy as np, pandas as pd
months = pd.date_range("2024-01-01", periods=24, freq="MS")
rng = np.random.default_rng(1)
sales = pd.DataFrame({"region": ["north", "south", "west"], "sales": [12.5, 30, 7], "cost": [3, 4, 5]})
`)
	for _, c := range []struct {
		code string
		want []string
	}{
		{"plt.plot([1, 2, 3], [4, 1, 9], label='a')\nplt.title('T')\nplt.xlabel('hour')\nplt.ylabel('EUR')\nplt.legend()\nplt.show()", []string{
			`title "T"; x: "hour", 0.9 to 3.1; y: "EUR", 0.6 to 9.4; legend: "a"`, `- line "a": (1, 4) (2, 1) (3, 9)`}},
		{"plt.plot(months, np.arange(24) ** 2)\nplt.axhline(100, label='goal')\nplt.yscale('log')\nplt.show()", []string{
			"log scale", "- line, 24 points: some of them (2024-01-01, 0)", "highest (2025-12-01, 529)", `- horizontal line "goal": 100`}},
		{"plt.bar(sales.region, sales.sales)\nplt.show()", []string{"- bar: north=12.5 south=30 west=7"}},
		{"plt.barh(sales.region, sales.sales)\nplt.show()", []string{"- bar, horizontal: north=12.5 south=30 west=7"}},
		{"sales.plot.bar(x='region', stacked=True)", []string{`- bar "sales": north=12.5 south=30 west=7`, `- bar "cost", stacked: north=3 south=4 west=5`}},
		{"sales.plot.bar(x='region')", []string{`- bar "sales": north=12.5 south=30 west=7`, `- bar "cost": north=3 south=4 west=5`}},
		{"sales.plot.barh(x='region')", []string{`- bar "sales", horizontal: north=12.5 south=30 west=7`, `- bar "cost", horizontal: north=3 south=4 west=5`}},
		{"x = np.arange(3)\nfor n, name in enumerate(['sales', 'cost']): plt.bar(x + (n - .5) * .4, sales[name], .4, label=name)\nplt.xticks(x, sales.region)\nplt.show()", []string{
			`- bar "sales": north=12.5 south=30 west=7`, `- bar "cost": north=3 south=4 west=5`}},
		{"x = np.arange(3)\nfor n in range(4): plt.bar(x + n * .2, x + n, .2, label=f's{n}')\nplt.xticks(x + .3, ['甲', '乙', '丙'])\nplt.show()", []string{`- bar "s0": 甲=0 乙=1 丙=2`, `- bar "s3": 甲=3 乙=4 丙=5`}},
		{"for n in (-.2, .2): plt.bar(np.array([2022, 2023]) + n, [1, 2], .4, label=f'{n}')\nplt.xticks([2022, 2023])\nplt.show()", []string{`- bar "-0.2": 2022=1 2023=2`, `- bar "0.2": 2022=1 2023=2`}},
		{"plt.bar([0, .4, .8, 1.2], [1, 2, 3, 4], .3)\nplt.xticks([0, 1], ['a', 'b'])\nplt.show()", []string{"- bar: a=1 0.4=2 0.8=3 1.2=4"}},
		{"import seaborn as sns\nsns.barplot(sales.melt('region'), x='region', y='value', hue='variable')\nplt.show()", []string{`- bar "sales": north=12.5 south=30 west=7`, `- bar "cost": north=3 south=4 west=5`}},
		{"pd.Series(range(24), index=months).plot()", []string{"(2024-01, 0)", "highest (2025-12, 23)"}},
		{"plt.hist([1, 1, 2, 3, 3, 3, 9], bins=4)\nplt.show()", []string{"- histogram, 1 to 9: 1=3 3=3 5=0 7=1"}},
		{"plt.pie([1, 3], labels=['yes', 'no'], autopct='%.0f%%')\nplt.show()", []string{"- pie: yes 25% no 75%"}},
		{"plt.scatter([1, 2, 3, 4], [2, 4, 6, 8.5])\nplt.show()", []string{"- scatter, x 1 to 4, correlation 0.998: (1, 2) (2, 4) (3, 6) (4, 8.5)"}},
		{"plt.boxplot([[1, 2, 3, 4, 50], [2, 2, 3]], tick_labels=['a', 'b'])\nplt.show()", []string{"- box", "a: low 1, q1 2, median 3, q3 4, high 4, outliers 1", "b: low 2"}},
		{"plt.violinplot([[1, 2, 3]])\nplt.show()", []string{"- violin", "median 2"}},
		{"plt.imshow([[1, 2], [3, np.nan]])\nplt.colorbar()\nplt.show()", []string{"- heat map, 2 rows × 2 columns, 1 to 3", "1,2", "3,missing"}},
		{"plt.imshow(np.zeros((5, 4, 3)))\nplt.show()", []string{"- picture"}},
		{"plt.stackplot([1, 2], [[1, 2], [3, 4]], labels=['a', 'b'])\nplt.show()", []string{`- area "a"`, `- area "b"`}},
		{"f, ax = plt.subplots(2, 2)\nax[0, 1].plot([1, 2])\nf.suptitle('All')\nplt.show()", []string{
			`title "All"`, "axes 1: ", "nothing is drawn", "axes 2: ", "- line: (0, 1) (1, 2)"}},
		{"plt.figure(figsize=(2, 2))\nplt.bar(['a very long name', 'another long name', 'the third name'], [1, 2, 3])\nplt.show()", []string{"2 of its labels overlap"}},
		{"plt.contourf(np.arange(9).reshape(3, 3))\nplt.show()", []string{"- contour"}},
		{"fig = plt.figure(); ax = fig.add_subplot(projection='3d'); ax.plot([1, 2], [1, 2], [1, 2])\nplt.show()", []string{"3d projection"}},
		{"plt.errorbar([1, 2], [3, 4], yerr=[.1, .2], label='measured')\nplt.show()", []string{"(1, 3) (2, 4)"}},
		{"import seaborn as sns\nsns.heatmap(sales[['sales', 'cost']].corr(), annot=True)\nplt.show()", []string{"- heat map, 2 rows × 2 columns", `x: ticks "sales", "cost"`}},
		{"sns.barplot(sales, x='region', y='sales', hue='region')\nplt.show()", []string{"north=12.5", "south=30"}},
		{"sns.boxplot(x=['a', 'a', 'b', 'b'], y=[1, 2, 3, 4])\nplt.show()", []string{"- box", "median 1.5", "median 3.5"}},
		{"sns.histplot(rng.normal(size=100), bins=5)\nplt.show()", []string{"- histogram, "}},
		{"sns.scatterplot(sales, x='cost', y='sales', hue='region')\nplt.show()", []string{`legend: "region", "north", "south", "west"`, "- scatter"}},
		{"sns.lineplot(x=months, y=range(24))\nplt.show()", []string{"highest (2025-12-01, 23)"}},
		{"plt.plot(range(1_000_000))\nplt.show()", []string{"- line, 1000000 points: some of them (0, 0)", "highest (999999, 999999)"}},
		{"import plotly.express as px\npx.bar(sales, x='region', y='sales', title='P')", []string{`title "P"`, `x: "region"`, "- bar: north=12.5 south=30 west=7"}},
		{"px.line(x=months, y=np.arange(24.0)).show()", []string{"- line, 24 points: some of them (2024-01-01, 0)", "highest (2025-12-01, 23)"}},
		{"px.pie(names=['a', 'b'], values=[1, 3])", []string{"- pie: a 25% b 75%"}},
		{"px.histogram(x=[1, 2, 3])", []string{"- histogram of raw values", "median 2"}},
		{"px.scatter(sales, x='sales', y='cost', color='region')", []string{`- scatter "north": (12.5, 3)`}},
	} {
		words := strings.Join(chartsOf(t, k, true, c.code), "\n----\n")
		for _, w := range c.want {
			if !strings.Contains(words, w) {
				t.Errorf("%s\nis told as\n%s\nwithout %q", c.code, words, w)
			}
		}
		t.Logf("%s\n%s\n\n", c.code, words)
	}
	if words := chartsOf(t, k, false, "plt.plot([1, 2])\nplt.show()"); words != nil {
		t.Errorf("people are told %q", words)
	}
}
