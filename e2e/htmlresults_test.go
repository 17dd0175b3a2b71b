package e2e_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// pagesOf are programs of libraries that draw for browsers, with what is in the page that is saved, and what the model is told of it.
var pagesOf = []struct{ name, code, page, told string }{
	{"folium", "import folium\nfolium.Map([48.2, 16.4])", "leaflet", `\[HTML of \d+ bytes shown to the user: folium.folium.Map\]`},
	{"Styler", "import pandas as pd\npd.DataFrame({'a': [1], 'b': [2.25]}).style.format(precision=1).set_caption('Prices')", "<caption>Prices</caption>", `Prices\n.*a \| b\n0 \| 1 \| 2\.2`},
	{"great_tables", "import pandas as pd\nfrom great_tables import GT\nGT(pd.DataFrame({'a': [1], 'b': [2]})).tab_header(title='Sums')", "gt_table", `Sums\na \| b\n1 \| 2`},
	{"pyecharts", "from pyecharts.charts import Bar\nBar().add_xaxis(['a', 'b']).add_yaxis('s', [1, 2]).render_notebook()", "echarts.init(", `\[HTML of \d+ bytes shown to the user: Awesome-pyecharts\]`},
	{"Bokeh", "from bokeh.plotting import figure, show\np = figure(title='Line <1>'); p.line([1, 2], [3, 4])\nshow(p)", "Line &lt;1&gt;", `\[HTML of \d+ bytes shown to the user: Line <1>\]`},
	{"Bokeh in a notebook", "from bokeh.io import output_notebook, reset_output\noutput_notebook(); show(p)\nreset_output()", `Bokeh.embed`, `\[HTML of \d+ bytes shown to the user: Line <1>\]`},
	{"Bokeh in rows", "from bokeh.layouts import row\nshow(row(p, figure()))", `Bokeh.embed`, `\[HTML of \d+ bytes shown to the user: Bokeh plot\]`},
	{"HTML", "from IPython.display import HTML\ndisplay(HTML('<h1>Title</h1><p>text</p>'))", "<h1>Title</h1>", `\[HTML of 25 bytes shown to the user: IPython.core.display.HTML\]\nTitle\ntext`},
}

// TestPagesOfLibraries has what libraries draw for browsers be saved as pages, and the model be told what they are.
func TestPagesOfLibraries(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	var turns []modeltest.Turn
	for _, p := range pagesOf {
		turns = append(turns, modeltest.Run(p.code))
	}
	turns = append(turns, modeltest.Run("from bokeh.io import output_file\noutput_file('mine.html'); show(p)"), modeltest.Say("Done."))
	c, server := asking(t, "openai/scripted", turns, "-o", "out", "Draw.")
	c.setenv("COVE_PACKAGES=standard")
	c.run().ended(t, 0)
	requests := server.Requests()
	if len(requests) != len(turns) {
		t.Fatalf("%d requests", len(requests))
	}
	for n, p := range pagesOf {
		page, err := os.ReadFile(c.path(fmt.Sprintf("out/figure-%d.html", n+1)))
		if err != nil || !strings.Contains(string(page), p.page) || strings.Contains(string(page), "require.config") {
			t.Errorf("%s: the page has no %s, %v: %.500s", p.name, p.page, err, page)
		}
		if !regexp.MustCompile(p.told).MatchString(requests[n+1].Text()) {
			t.Errorf("%s: the model is not told %s: %s", p.name, p.told, requests[n+1].Text()[len(requests[n].Text()):])
		}
	}
	if !exists(c.path("out/mine.html")) || exists(c.path(fmt.Sprintf("out/figure-%d.html", len(pagesOf)+1))) {
		t.Error("with output_file() it is not the file alone that is delivered")
	}
}
