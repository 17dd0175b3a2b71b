package session_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"image/png"
	"math"
	"strings"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

const (
	figure    = "display [image/png text/plain]"
	plotlyFig = "import plotly.graph_objects as go\nfig = go.Figure(data=[go.Bar(y=[1, 2])])\n"
	altairFig = "import altair as alt, pandas as pd\nchart = alt.Chart(pd.DataFrame({'a': [1, 2]})).mark_bar().encode(x='a')\n"
)

// TestDisplays shows everything that data people show. The first row must stay the first of its session.
func TestDisplays(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		runRows(t, s, []row{
			{"figure in the very first cell", []cell{code("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint('after')", figure+"\nstdout \"after\\n\"\nok")}},
			{"figure at the end of a cell", []cell{code("plt.plot([1, 2]);", figure+"\nok")}},
			{"two figures", []cell{code("for i in range(2): plt.figure(); plt.plot([i])", figure+"\n"+figure+"\nok")}},
			{"figure as the result", []cell{code("fig, ax = plt.subplots()\nfig", "result [image/png text/plain]\nok")}},
			{"figure of a cell that fails", []cell{codeLike("plt.plot([1])\n1/0", `(display \[image/png text/plain\]\n)?error ZeroDivisionError.*`), codeLike("plt.close('all')", ".*ok")}},
			{"saved figure", []cell{codeLike("plt.plot([1])\nplt.savefig('f.png')\nplt.close()", `created f.png \d+`+"\nok")}},
			{"figure is a PNG", []cell{codeCheck("plt.plot([1, 2]);", wantPNG)}},
			{"image", []cell{codeCheck("from PIL import Image\nImage.new('RGB', (8, 4), 'red')", wantPNG)}},
			{"data frame", []cell{codeCheck("import pandas as pd\npd.DataFrame({'a': [1, 2], '名': ['x', None]})", func(t *testing.T, r *run) {
				wantBundle(t, r, "text/html", "<table", "<th>名</th>")
				wantBundle(t, r, "text/plain", "a", "名")
			})}},
			{"series", []cell{codeLike("pd.Series([1, 2])", "result 0    1\n1    2\n.*ok")}},
			{"SVG", []cell{codeCheck("from IPython.display import *\nSVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')", func(t *testing.T, r *run) { wantBundle(t, r, "image/svg+xml", "<svg") })}},
			{"HTML", []cell{codeCheck("HTML('<b>好</b>')", func(t *testing.T, r *run) { wantBundle(t, r, "text/html", "<b>好</b>") })}},
			{"LaTeX", []cell{codeCheck("Latex('$x^2$')", func(t *testing.T, r *run) { wantBundle(t, r, "text/latex", "$x^2$") })}},
			{"Markdown", []cell{codeCheck("Markdown('# t')", func(t *testing.T, r *run) { wantBundle(t, r, "text/markdown", "# t") })}},
			{"sympy", []cell{codeCheck("import sympy\nsympy.sqrt(8)", func(t *testing.T, r *run) { wantBundle(t, r, "text/latex", "sqrt{2}") })}},
			{"JSON", []cell{code("JSON({'a': 1})", "result [application/json text/plain]\nok")}},
			{"NaN in JSON", []cell{codeCheck("display({'application/json': {'a': float('nan'), 'b': [float('inf')]}}, raw=True)", func(t *testing.T, r *run) {
				v := objectWith(t, r, "application/json")
				if v["a"] != nil || len(v) != 2 {
					t.Errorf("got %v", v)
				}
			})}},
			{"Plotly", []cell{codeCheck(plotlyFig+"fig", wantPlotly), codeCheck("fig.show()", wantPlotly), {
				req:   kernel.Request{Code: "fig", Standalone: true},
				check: func(t *testing.T, r *run) { wantBundle(t, r, "text/html", "<html", "Plotly.newPlot") },
			}}},
			{"Altair", []cell{codeCheck(altairFig+"chart", func(t *testing.T, r *run) {
				wantPNG(t, r)
				for mime := range r.bundles()[0] {
					if strings.HasPrefix(mime, "application/vnd.vegalite.") {
						return
					}
				}
				t.Errorf("got %s", r.transcript())
			}), codeLike("chart.save('chart.png')", `created chart.png \d+`+"\nok"),
				code("try:\n    bytearray(1 << 40)\nexcept MemoryError:\n    print('still refused')", "stdout \"still refused\\n\"\nok")}},
			{"bytes", []cell{codeCheck("display({'image/png': b'\\x89PNG'}, raw=True)", func(t *testing.T, r *run) { wantBundle(t, r, "image/png", "iVBORw==") })}},
			{"update", []cell{codeCheck("h = display('a', display_id='one')\nh.update('b')", func(t *testing.T, r *run) {
				first, ok1 := r.events[0].(kernel.Display)
				second, ok2 := r.events[1].(kernel.Display)
				if !ok1 || !ok2 || first.ID != "one" || second.ID != "one" || first.Update || !second.Update {
					t.Errorf("got %+v", r.events)
				}
			})}},
			{"clear_output", []cell{code("print(1)\nclear_output(wait=True)\nprint(2)\nclear_output()\nprint(3)", "stdout \"1\\n\"\nclear wait=true\nstdout \"2\\n\"\nclear wait=false\nstdout \"3\\n\"\nok")}},
			{"huge display", []cell{codeCheck("display({'text/html': 'x' * 30_000_000, 'text/plain': 'small'}, raw=True)", func(t *testing.T, r *run) {
				wantBundle(t, r, "text/plain", "small", "text/html", "larger than the limit")
				if _, ok := r.bundles()[0]["text/html"]; ok || r.done.Outcome != kernel.OutcomeOK {
					t.Error("the huge part is still there")
				}
			})}},
			{"huge result", []cell{codeCheck("'x' * 30_000_000", func(t *testing.T, r *run) {
				if r.done.Outcome != kernel.OutcomeOK || len(r.bundles()) != 1 {
					t.Errorf("got %s", describe(r.done))
				}
			})}},
			{"progress bar", []cell{codeLike("from tqdm.auto import tqdm\nfor i in tqdm(range(3)): pass", `stderr ".*3/3.*"`+"\nok")}},
		})
	})
}

func bundleWith(t *testing.T, r *run, mime string) any {
	t.Helper()
	for _, b := range r.bundles() {
		if v, ok := b[mime]; ok {
			return v
		}
	}
	t.Errorf("no %s came:\n%s%s", mime, r.transcript(), r.explanation())
	return nil
}

func objectWith(t *testing.T, r *run, mime string) (object map[string]any) {
	t.Helper()
	text, _ := bundleWith(t, r, mime).(json.RawMessage)
	if err := json.Unmarshal(text, &object); err != nil {
		t.Errorf("%s is %.300q", mime, text)
	}
	return object
}

func wantBundle(t *testing.T, r *run, mime string, wants ...string) {
	t.Helper()
	got, _ := bundleWith(t, r, mime).(string)
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %q: %.300q", mime, want, got)
		}
	}
}

func wantPlotly(t *testing.T, r *run) {
	t.Helper()
	v := objectWith(t, r, "application/vnd.plotly.v1+json")
	if v["data"] == nil || v["layout"] == nil {
		t.Errorf("got %v", v)
	}
}

func wantPNG(t *testing.T, r *run) {
	t.Helper()
	text, _ := bundleWith(t, r, "image/png").(string)
	data, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(data)); err != nil {
		t.Error(err)
	}
}

// TestChartText draws labels in scripts that the default font lacks; matplotlib warns of every glyph that it cannot draw.
func TestChartText(t *testing.T) {
	testneeds.FullTier(t)
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		const plot = "import matplotlib.pyplot as plt\nplt.title('%s −1')\nplt.plot([-1, 1]);"
		for _, c := range []struct{ name, before, text string }{
			{"Chinese", "", "销售额 季度"},
			{"Japanese", "", "売上のグラフ"},
			{"Korean", "", "매출 현황"},
			{"SimHei", "import matplotlib\nmatplotlib.rcParams['font.sans-serif'] = ['SimHei']\nmatplotlib.rcParams['axes.unicode_minus'] = False\n", "销售额"},
			{"Microsoft YaHei", "import matplotlib\nmatplotlib.rcParams['font.family'] = 'Microsoft YaHei'\n", "销售额"},
			{"seaborn", "import seaborn\nseaborn.set_theme()\n", "销售额"},
		} {
			t.Run(c.name, func(t *testing.T) {
				runCell(t, s, code(c.before+strings.ReplaceAll(plot, "%s", c.text), figure+"\nok"))
				runCell(t, s, code("import matplotlib\nmatplotlib.rcdefaults()\n%matplotlib inline", "ok"))
			})
		}
	})
}

// TestPlotStyle looks at the figures that kernels make where code says nothing of how they look.
func TestPlotStyle(t *testing.T) {
	testneeds.FullTier(t)
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		runCell(t, s, code("import matplotlib as mpl, matplotlib.pyplot as plt, plotly.graph_objects as go, plotly.io as pio\nfig = lambda **rest: (plt.subplots(**rest)[1].plot([1, 2]), plt.show())[1]", "ok"))
		for _, c := range []struct {
			name, code string
			dense      float64 // dots to the inch
		}{
			{"twice the points", "fig()", 200},
			{"dense already", "fig(dpi=300)", 300},
			{"very large", "fig(figsize=(40, 30))", 100},
			{"after %matplotlib inline", "%matplotlib inline\nfig()", 200},
		} {
			t.Run(c.name, func(t *testing.T) {
				runCell(t, s, codeCheck(c.code, func(t *testing.T, r *run) { wantDensity(t, r, c.dense) }))
			})
		}
		runRows(t, s, []row{
			{"our series", []cell{code("print(mpl.rcParams['axes.prop_cycle'].by_key()['color'][0], pio.templates.default, go.Figure().layout.template.layout.colorway[0])", "stdout \"#0F6B62 cove #0F6B62\\n\"\nok")}},
			{"no grid over a picture", []cell{code("print(any(line.get_visible() for line in plt.imshow([[1, 2]]).axes.get_ygridlines()))\nplt.close()", "stdout \"False\\n\"\nok")}},
			{"a grid that is asked for", []cell{code("plt.imshow([[1, 2]])\nplt.grid(True)\nprint(all(line.get_visible() for line in plt.gca().get_ygridlines()))\nplt.close()", "stdout \"True\\n\"\nok")}},
			{"a style of the code's", []cell{code("with plt.style.context('ggplot'):\n    print(mpl.rcParams['grid.color'], mpl.rcParams['axes.prop_cycle'].by_key()['color'][0])", "stdout \"white #E24A33\\n\"\nok")}},
			{"a setting of the code's", []cell{code("with mpl.rc_context({'axes.grid': False}):\n    print(any(line.get_visible() for line in plt.axes().get_ygridlines()))\nplt.close()", "stdout \"False\\n\"\nok")}},
			{"a format of the code's", []cell{codeCheck("%config InlineBackend.figure_format = 'png'\nfig()", func(t *testing.T, r *run) { wantDensity(t, r, 100) })}},
			{"a template of the code's", []cell{code("pio.templates.default = 'ggplot2'\nprint(go.Figure().layout.template.layout.plot_bgcolor)", "stdout \"rgb(237,237,237)\\n\"\nok")}},
		})
	})
}

// wantDensity wants a figure with so many dots to the inch, and that it says half its width where these are ours.
func wantDensity(t *testing.T, r *run, want float64) {
	t.Helper()
	wantPNG(t, r)
	text, _ := bundleWith(t, r, "image/png").(string)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte("pHYs"))
	if at < 0 {
		t.Fatal("the picture does not say its density")
	}
	if got := float64(binary.BigEndian.Uint32(data[at+4:])) * 0.0254; math.Abs(got-want) > 0.1 {
		t.Errorf("got %.1f dots to the inch, want %.1f", got, want)
	}
	for _, e := range r.events {
		shown, ok := e.(kernel.Display)
		if !ok {
			continue
		}
		text, ours := shown.Metadata["image/png"].(json.RawMessage)
		var said struct{ Width uint32 }
		if ours && json.Unmarshal(text, &said) != nil || ours != (want == 200) || ours && said.Width != binary.BigEndian.Uint32(data[16:])/2 {
			t.Errorf("a picture of %d dots says %s", binary.BigEndian.Uint32(data[16:]), text)
		}
	}
}

// TestPlotStyleOff has libraries make plots as they like.
func TestPlotStyleOff(t *testing.T) {
	testneeds.FullTier(t)
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		plain := *standard(t)
		plain.Plain = true
		s, err := session.Open(t.Context(), session.Options{Engine: e, Env: &plain})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
		runCell(t, s, codeCheck("import matplotlib.pyplot as plt\nplt.plot([1, 2]);", func(t *testing.T, r *run) { wantDensity(t, r, 100) }))
		runCell(t, s, code("import plotly.io as pio\nprint(plt.rcParams['axes.grid'], pio.templates.default)", "stdout \"False plotly\\n\"\nok"))
	})
}
