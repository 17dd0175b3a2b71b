package e2e_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

const secret = "sk-secret-of-the-user"

// asking returns `cove ask` with a scripted model service at its other end. The model's name decides whether it sees.
func asking(t *testing.T, model string, turns []modeltest.Turn, args ...string) (*command, *modeltest.Server) {
	t.Helper()
	server := modeltest.NewServer(turns...)
	t.Cleanup(server.Close)
	c := newCommand(t, append([]string{"ask", "--model", model}, args...)...)
	c.setenv("OPENAI_BASE_URL="+server.OpenAIURL(), "OPENAI_API_KEY="+secret, "ANTHROPIC_BASE_URL="+server.AnthropicURL(), "ANTHROPIC_API_KEY="+secret)
	return c, server
}

func eachProvider(t *testing.T, test func(t *testing.T, provider string)) {
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			test(t, provider)
		})
	}
}

// TestAskRepairsAndCharts is the whole path, in Chinese: a failure, its repair, a chart that the model sees, a file, the answer.
func TestAskRepairsAndCharts(t *testing.T) {
	t.Parallel()
	seeing := map[string]string{"openai": "openai/gpt-4o", "anthropic": "anthropic/claude-scripted"}
	eachProvider(t, func(t *testing.T, provider string) {
		c, server := asking(t, seeing[provider], []modeltest.Turn{
			{Text: []string{"我先看看", "数据。"}, Calls: []modeltest.Call{{Code: "import pandas as pd\n销售 = pd.read_csv('销售.csv')\n销售['金额'].sum()"}}},
			modeltest.Run("import matplotlib.pyplot as plt\n销售.plot.bar(x='地区', y='收入', title='各地区的收入')\nopen('结果.txt', 'w').write('北方')\nplt.show()"),
			modeltest.Say("最大的是", "北方", "。"),
		}, "-f", "销售.csv", "-o", "图", "哪个地区最大？画一张图。")
		c.setenv("COVE_PACKAGES=standard")
		c.file("销售.csv", "地区,收入\n北方,10\n南方,5\n")
		r := c.run()
		r.ended(t, 0)
		if r.stdout != "最大的是北方。\n" {
			t.Errorf("the answer is %q", r.stdout)
		}
		r.told(t, "我先看看数据。", "pd.read_csv('销售.csv')", "KeyError: '金额'", "[figure: 图/figure-1.png]", "图/结果.txt")
		if text, err := os.ReadFile(c.path("图/结果.txt")); string(text) != "北方" {
			t.Errorf("the file is %q, %v", text, err)
		}
		chart, err := os.ReadFile(c.path("图/figure-1.png"))
		if err != nil {
			t.Fatal(err)
		}
		checkChart(t, chart)
		if unwanted := c.path("图/销售.csv"); exists(unwanted) {
			t.Error("a file that the code only read was given back")
		}

		requests := server.Requests()
		if len(requests) != 3 {
			t.Fatalf("%d requests", len(requests))
		}
		for _, want := range []string{"哪个地区最大？画一张图。", "销售.csv", "地区", "北方", "pandas"} {
			if !strings.Contains(requests[0].Text(), want) {
				t.Errorf("the model is not told %q:\n%s", want, requests[0].Text())
			}
		}
		if text := requests[1].Text(); !strings.Contains(text, "KeyError: '金额'") || strings.Contains(requests[0].Text(), "KeyError") {
			t.Errorf("the request after the failure does not tell it:\n%s", text)
		}
		if len(requests[1].Images()) != 0 || len(requests[2].Images()) != 1 {
			t.Fatalf("%d and %d images, want one after the chart", len(requests[1].Images()), len(requests[2].Images()))
		}
		checkChart(t, requests[2].Images()[0])
		for _, r := range requests {
			if len(r.Tools()) != 1 || r.Tools()[0] != "python" {
				t.Errorf("the tools are %q", r.Tools())
			}
		}
	})
}

// checkChart wants a picture that shows something: a blank one has a single colour.
func checkChart(t *testing.T, data []byte) {
	t.Helper()
	chart, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("not a PNG: %v", err)
	}
	bounds := chart.Bounds()
	if n := colours(chart); bounds.Dx() < 200 || bounds.Dy() < 150 || n < 10 {
		t.Errorf("a chart of %v with %d colours", bounds, n)
	}
}

func colours(m image.Image) int {
	seen := map[color.Color]bool{}
	for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
		for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
			seen[m.At(x, y)] = true
		}
	}
	return len(seen)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestAskBlindModel draws for a model that cannot see: it is told of the figure, and no picture is sent.
func TestAskBlindModel(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	eachProvider(t, func(t *testing.T, provider string) {
		c, server := asking(t, provider+"/scripted", []modeltest.Turn{
			modeltest.Run("from IPython.display import Image, display\nimport base64\ndisplay(Image(base64.b64decode('" + pixel + "')))"),
			modeltest.Say("Drawn."),
		}, "-o", "out", "Draw.")
		c.run().ended(t, 0)
		if !exists(c.path("out/figure-1.png")) {
			t.Error("the figure was not saved")
		}
		after := server.Requests()[1]
		if n := len(after.Images()); n != 0 || !strings.Contains(after.Text(), "figure") {
			t.Errorf("%d images were sent; the model was told:\n%s", n, after.Text())
		}
	})
}

// pixel is a PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

// TestAskFencedBlocks asks models that write their code as text.
func TestAskFencedBlocks(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	block := modeltest.Say("Let me compute.\n\n``", "`python\nprint(6", " * 7)\n```")
	check := func(t *testing.T, c *command, server *modeltest.Server, notice string) {
		t.Helper()
		r := c.run()
		r.ended(t, 0)
		r.told(t, "print(6 * 7)", "42", notice)
		if r.stdout != "It is 42.\n" {
			t.Errorf("the answer is %q", r.stdout)
		}
		requests := server.Requests()
		last := requests[len(requests)-1]
		if !strings.Contains(last.Text(), "42") || len(last.Tools()) != 0 {
			t.Errorf("the last request offers %q and says:\n%s", last.Tools(), last.Text())
		}
	}
	t.Run("the server has no tools", func(t *testing.T) {
		t.Parallel()
		c, server := asking(t, "openai/scripted", []modeltest.Turn{block, modeltest.Say("It is 42.")}, "6 times 7?")
		server.SetDialect(modeltest.Dialect{RejectTools: true})
		check(t, c, server, "tools")
		if first, second := server.Requests()[0], server.Requests()[1]; len(first.Tools()) != 1 || len(second.Tools()) != 0 || !strings.Contains(second.Text(), "```python") {
			t.Errorf("tools %q, then %q with the prompt:\n%s", first.Tools(), second.Tools(), second.Text())
		}
	})
	eachProvider(t, func(t *testing.T, provider string) {
		c, server := asking(t, provider+"/scripted", []modeltest.Turn{block, modeltest.Say("It is 42.")}, "6 times 7?")
		check(t, c, server, "wrote its code as text")
	})
}

// TestAskQuietWithPipedData wants the answer alone; the piped data is a file, whose name fits what it is.
func TestAskQuietWithPipedData(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	eachProvider(t, func(t *testing.T, provider string) {
		c, server := asking(t, provider+"/scripted", []modeltest.Turn{
			{Text: []string{"I'll read it."}, Calls: []modeltest.Call{{Code: "import sys\nprint(open('stdin.csv').read(), file=sys.stderr)"}}},
			modeltest.Say("Two ", "months."),
		}, "--quiet", "How many months?")
		c.cmd.Stdin = strings.NewReader("month,price\nJan,17\nFeb,19\n")
		r := c.run()
		r.ended(t, 0)
		if r.stdout != "Two months.\n" || r.stderr != "" {
			t.Errorf("stdout %q, stderr %q", r.stdout, r.stderr)
		}
		if text := server.Requests()[0].Text(); !strings.Contains(text, "stdin.csv") || !strings.Contains(text, "Feb") {
			t.Errorf("the model is not told of the data:\n%s", text)
		}
		if text := server.Requests()[1].Text(); !strings.Contains(text, "month,price\nJan,17\nFeb,19") {
			t.Errorf("the code did not read the data:\n%s", text)
		}
	})
}

// TestAskEvents holds what --json writes against its documentation.
func TestAskEvents(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	eachProvider(t, func(t *testing.T, provider string) {
		pictured := modeltest.Run("import base64\nfrom IPython.display import Image, clear_output\nprint('hi', flush=True)\nclear_output()\nopen('made.txt', 'w').write('x')\nImage(base64.b64decode('" + pixel + "'))")
		pictured.Input, pictured.Output = 150, 10
		c, _ := asking(t, provider+"/scripted", []modeltest.Turn{
			modeltest.Error(429, "rate_limit_error", "slow down", "Retry-After", "0"),
			{Reasoning: []string{"Hm."}, Text: []string{"I try."}, Calls: []modeltest.Call{{Code: "1/0"}}, Input: 100, Output: 10},
			pictured,
			{Text: []string{"Done."}, Input: 200, Output: 20},
		}, "--json", "-o", "out", "Try.")
		r := c.run()
		r.ended(t, 0)
		seen := documented(t, r.stdout)
		for _, kind := range []string{"text", "code", "start", "output", "saved", "notice", "answer", "stream", "result", "error", "clear_output", "file", "done"} {
			if !seen[kind] {
				t.Errorf("no %s among the events:\n%s", kind, r.stdout)
			}
		}
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		var answer struct {
			Type, Text, Reason string
			Steps              int
			Usage              struct {
				Input int `json:"input_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &answer); err != nil {
			t.Fatal(err)
		}
		if answer.Type != "answer" || answer.Text != "Done." || answer.Reason != "complete" || answer.Steps != 2 || answer.Usage.Input != 450 {
			t.Errorf("the last line is %+v", answer)
		}
	})
}

// documented checks that every line is a JSON object of a type and with fields that docs/events.md has, events inside
// of events included, and returns the types.
func documented(t *testing.T, output string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "events.md"))
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]map[string]bool{}
	word := regexp.MustCompile("`([a-z_]+)`")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|(.*?)\\|").FindAllStringSubmatch(string(text), -1) {
		if fields[row[1]] == nil {
			fields[row[1]] = map[string]bool{"type": true}
		}
		for _, name := range word.FindAllStringSubmatch(row[2], -1) {
			fields[row[1]][name[1]] = true
		}
	}
	seen := map[string]bool{}
	var check func(event map[string]any)
	check = func(event map[string]any) {
		kind, _ := event["type"].(string)
		seen[kind] = true
		for name := range event {
			if !fields[kind][name] {
				t.Errorf("%s with the field %s is not documented", kind, name)
			}
		}
		if inner, ok := event["event"].(map[string]any); ok {
			check(inner)
		}
	}
	for line := range strings.Lines(output) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("not JSON: %q: %v", line, err)
		}
		check(event)
	}
	return seen
}
