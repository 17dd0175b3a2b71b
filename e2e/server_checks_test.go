package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// serverCheck is what POST /api/v1/checks answers.
type serverCheck struct {
	Report struct {
		Findings []struct {
			Rule, Severity, Message, Better string
			Cell, Line                      int
			Measured                        *struct{ Slow, Fast float64 }
		}
		Notes   []string
		Profile *struct {
			Exit  *int `json:"exit_code"`
			Lines []struct {
				Line   int
				Python float64
			}
		}
	}
	Reference struct {
		Markdown     string
		Undocumented int
	}
	OpenAPI   struct{ Paths map[string]any }
	Benchmark struct {
		Timed []struct{ Size int }
		Plot  []byte
	}
}

// rules are those of the findings and their lines.
func (c serverCheck) rules() string {
	var out []string
	for _, f := range c.Report.Findings {
		out = append(out, fmt.Sprintf("%s:%d", f.Rule, f.Line))
	}
	return strings.Join(out, " ")
}

const slowProgram = `import pandas as pd
import os
df = pd.DataFrame({"a": range(20000), "b": range(20000)})
total = 0
for _, row in df.iterrows():
    total += row["a"] * row["b"]
open("left.txt", "w").write(os.path.exists("mark.txt") and "seen" or "alone")
`

// TestChecksOfAServer checks code, a notebook and a file of a session, with the real tools.
func TestChecksOfAServer(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, t.TempDir(), testKey(t), append([]string{"COVE_PACKAGES=standard"}, crowd...)...)
	check := func(body map[string]any) serverCheck {
		t.Helper()
		var out serverCheck
		s.must("POST", "/api/v1/checks", body, &out)
		return out
	}
	code := check(map[string]any{"name": "f.py", "code": "def f(items=[]):\n    return items + [x]\n"})
	if got := code.rules(); got != "B006:1 F821:2" || len(code.Report.Notes) > 0 {
		t.Errorf("of a program: %s, %v", got, code.Report.Notes)
	}
	notebook := `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"cell_type":"code","source":"import pandas as pd","metadata":{},"outputs":[]},{"cell_type":"code","source":["x = 1\n","x == None\n"],"metadata":{},"outputs":[]}]}`
	if got := check(map[string]any{"name": "n.ipynb", "code": notebook, "ignore": []string{"F401"}}); got.rules() != "E711:2" || got.Report.Findings[0].Cell != 2 {
		t.Errorf("of a notebook: %+v", got.Report)
	}
	// Names of programs before the code are there, and what is found in them is not told.
	step := map[string]any{"code": "def g(items={}):\n    return frame\n", "before": []string{"frame = 1\ndef f(items=[]): pass", "import os"}}
	if got := check(step); got.rules() != "B006:1" || got.Report.Findings[0].Cell != 0 {
		t.Errorf("of a step: %+v", got.Report)
	}
	session := s.session()
	s.says(session, "open('mark.txt', 'w').write('m'); open('slow.py', 'w').write("+fmt.Sprintf("%q", slowProgram)+")")
	slow := check(map[string]any{"session": session, "path": "slow.py", "measure": true, "profile": true})
	if slow.rules() != "slow-iterrows:5" || slow.Report.Findings[0].Measured == nil {
		t.Fatalf("of a file: %+v", slow.Report)
	}
	if m := slow.Report.Findings[0].Measured; m.Slow < 2*m.Fast {
		t.Errorf("the slow form took %v s, the faster one %v", m.Slow, m.Fast)
	}
	p := slow.Report.Profile
	if p == nil || p.Exit == nil || *p.Exit != 0 || len(p.Lines) == 0 {
		t.Fatalf("no profile: %+v", slow.Report)
	}
	loop := false
	for _, l := range p.Lines {
		loop = loop || l.Line == 5 || l.Line == 6
	}
	if !loop {
		t.Errorf("the loop is not in the profile: %+v", p.Lines)
	}
	// The program ran with the session's files, and not in the session.
	if got := s.says(session, "import os; print(sorted(os.listdir('.')))"); got != "['mark.txt', 'slow.py']\n" {
		t.Errorf("the session has %q", got)
	}
	if got := check(map[string]any{"kind": "reference", "name": "m.py", "code": "def f(x: int) -> str:\n    \"\"\"Say x.\"\"\"\n"}); !strings.Contains(got.Reference.Markdown, "Say x.") {
		t.Errorf("the reference is %q", got.Reference.Markdown)
	}
	if got := check(map[string]any{"kind": "openapi", "code": "import flask\napp = flask.Flask('shop')\n\n@app.get('/items/<int:id>')\ndef item(id):\n    return {}\n"}); got.OpenAPI.Paths["/items/{id}"] == nil {
		t.Errorf("the OpenAPI document has %v", got.OpenAPI.Paths)
	}
	work := "import sys\nn = int(sys.argv[1])\nx = 0\nfor i in range(n * 20000):\n    x += i\n"
	if got := check(map[string]any{"kind": "benchmark", "code": work, "sizes": []int{1, 20}, "runs": 2}); len(got.Benchmark.Timed) != 2 || len(got.Benchmark.Plot) == 0 {
		t.Errorf("the benchmark is %+v", got.Benchmark)
	}
	for _, wrong := range []struct {
		want string
		body map[string]any
	}{
		{"check_invalid", map[string]any{"measure": true}},
		{"check_invalid", map[string]any{"code": "x", "before": []string{"y"}, "profile": true}},
		{"session_not_found", map[string]any{"session": "ses_000000000000000000000000000", "path": "a.py"}},
		{"file_not_found", map[string]any{"session": session, "path": "missing.py"}},
		{"notebook_invalid", map[string]any{"name": "n.ipynb", "code": "x"}},
		{"code_invalid", map[string]any{"kind": "reference", "code": "def ("}},
		{"no_application", map[string]any{"kind": "openapi", "code": "x = 1"}},
	} {
		r, err := s.call(t.Context(), "POST", "/api/v1/checks", wrong.body)
		if err != nil || !strings.Contains(string(r.body), `"code":"`+wrong.want+`"`) {
			t.Errorf("%v: %v, %s, want %s", wrong.body, err, r.body, wrong.want)
		}
	}
	// What checks needed is gone with them.
	var left struct{ Items []struct{ ID string } }
	s.must("GET", "/api/v1/sessions?state=active", nil, &left)
	if len(left.Items) != 1 {
		t.Errorf("%d sessions are left", len(left.Items))
	}
}

// TestChecksOfATurn has a turn's code looked at: the events tell of it, and so does what the model gets.
func TestChecksOfATurn(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	service := modeltest.NewServer()
	t.Cleanup(service.Close)
	programs := []string{"import pandas as pd\ndf = pd.DataFrame({'a': range(9)})", "total = 0\nfor _, row in df.iterrows():\n    total += row['a'] * 2\nprint(total)"}
	told := make(chan string, 10)
	service.Decide(func(n int, r modeltest.Request) modeltest.Turn {
		messages := r.Messages()
		if last := messages[len(messages)-1]; last["role"] == "tool" {
			told <- fmt.Sprint(last["content"])
		}
		if n < len(programs) {
			return modeltest.Run(programs[n])
		}
		return modeltest.Say("Done.")
	})
	s := startServer(t, t.TempDir(), testKey(t), append([]string{"COVE_PACKAGES=standard", "COVE_MODEL=openai/gpt-4o", "OPENAI_BASE_URL=" + service.OpenAIURL(), "OPENAI_API_KEY=sk-test"}, crowd...)...)
	var turn struct {
		State  string
		Events []struct {
			Type  string
			Step  int
			Items []struct {
				Rule string
				Line int
			}
			Notes []string
		}
	}
	s.must("POST", "/api/v1/turns?wait=true", map[string]any{"prompt": "compute", "check": true}, &turn)
	if turn.State != "completed" {
		t.Fatalf("the turn is %s", turn.State)
	}
	found := ""
	for _, e := range turn.Events {
		if e.Type == "findings" {
			found += fmt.Sprintf("%d %v %v; ", e.Step, e.Items, e.Notes)
		}
	}
	if found != "2 [{slow-iterrows 2}] []; " {
		t.Errorf("the events tell of %q", found)
	}
	if first := <-told; strings.Contains(first, "check of this code") {
		t.Errorf("the model is told of the first program: %s", first)
	}
	if second := <-told; !strings.Contains(second, "72") || !strings.Contains(second, "- line 2: a loop over iterrows()") {
		t.Errorf("the model is told of the second: %s", second)
	}
}
