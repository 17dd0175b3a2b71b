package advice_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"cove/internal/code/advice"
	"cove/internal/core/problem"
	"cove/internal/python/kernel"
)

// scripted is a session that answers each script with lines of its own.
type scripted struct {
	answers  []string         // what each execution prints, in their order
	outcomes []kernel.Outcome // of each execution; those beyond are ok
	files    map[string][]byte
	codes    []string
	values   []map[string]any // what each script was told
}

var told = regexp.MustCompile(`b64decode\("([^"]*)"`)

func (s *scripted) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		n := len(s.codes)
		s.codes = append(s.codes, req.Code)
		var values map[string]any
		if m := told.FindStringSubmatch(req.Code); m != nil {
			text, _ := base64.StdEncoding.DecodeString(m[1])
			_ = json.Unmarshal(text, &values)
		}
		s.values = append(s.values, values)
		if n >= len(s.answers) {
			yield(nil, errors.New("one execution too many"))
			return
		}
		for chunk := range strings.SplitAfterSeq(s.answers[n], "\n") {
			// A line may come in two pieces.
			half := len(chunk) / 2
			for _, piece := range []string{chunk[:half], chunk[half:]} {
				if ctx.Err() == nil && !yield(kernel.Stream{Name: "stdout", Data: []byte(piece)}, nil) {
					return
				}
			}
		}
		outcome := kernel.OutcomeOK
		if n < len(s.outcomes) {
			outcome = s.outcomes[n]
		}
		yield(kernel.Done{Outcome: outcome, Message: "it ended so"}, nil)
	}
}

func (s *scripted) ReadFile(_ context.Context, path string, limit int64) ([]byte, error) {
	content, ok := s.files[path]
	if !ok {
		return nil, problem.New(problem.FileNotFound, path)
	}
	return content[:min(int64(len(content)), limit)], nil
}

const parsed = `{"kind":"source","parsed":true,"imports":["numpy","a;import os","os.path"],"applications":[["app","flask"]],"types":false}` + "\n"

func source(t *testing.T, name, text string) advice.Source {
	t.Helper()
	src, err := advice.ReadSource(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestFindingsAreValidatedSortedAndSilenced(t *testing.T) {
	t.Parallel()
	s := &scripted{answers: []string{
		parsed + `{"kind":"finding","rule":"slow-iterrows","severity":"warning","line":3,"column":5,"message":"slow\nvery","better":"fast"}` + "\n" +
			`{"kind":"finding","rule":"slow-list-front","severity":"warning","line":2,"column":1,"message":"silenced by its line"}` + "\n",
		"a library says hello\n" +
			`{"kind":"finding","rule":"F821","severity":"error","line":1,"column":7,"message":"Undefined name"}` + "\n" +
			`{"kind":"finding","rule":"F821","severity":"error","line":1,"column":7,"message":"Undefined name"}` + "\n" + // twice
			`{"kind":"finding","rule":"bad rule","severity":"error","line":1,"column":1,"message":"m"}` + "\n" +
			`{"kind":"finding","rule":"F1","severity":"fatal","line":1,"column":1,"message":"m"}` + "\n" +
			`{"kind":"finding","rule":"F1","severity":"error","line":0,"column":1,"message":"m"}` + "\n" +
			`{"kind":"finding","rule":"F1","severity":"error","line":"1","message":"m"}` + "\n" +
			`{"kind":"finding","rule":"F2","severity":"note","line":99999,"column":-4,"message":"beyond"}` + "\n" +
			`{"kind":"finding","rule":"C901","severity":"note","line":1,"column":1,"message":"ignored"}` + "\n" +
			`{"kind":"missing","package":"mypy"}` + "\n" + `{"kind":"finding","rule":"F3"`,
	}}
	c := &advice.Checker{Session: s, Timeout: time.Minute}
	r, err := c.Check(t.Context(), source(t, "dir/a.py", "print(x)\nq.pop(0)  # NOQA: slow-list-front\nfor x in y: pass\n"), advice.Options{Ignore: []string{"C9"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Findings {
		got = append(got, fmt.Sprintf("%d:%d %s %s %s/%s", f.Line, f.Column, f.Severity, f.Rule, f.Message, f.Better))
	}
	want := "1:7 error F821 Undefined name/, 3:5 warning slow-iterrows slow very/fast, 4:1 note F2 beyond/"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
	if r.Worst() != advice.Error || !r.Worst().AtLeast(advice.Warning) || advice.Note.AtLeast(advice.Warning) {
		t.Errorf("worst %q", r.Worst())
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "mypy") {
		t.Errorf("notes %q", r.Notes)
	}
	if s.values[0]["file"] != "a.py" || s.values[0]["seconds"] != float64(60) {
		t.Errorf("told %v", s.values[0])
	}
}

func TestHostileOutputIsBounded(t *testing.T) {
	t.Parallel()
	one := `{"kind":"finding","rule":"F1","severity":"note","line":1,"column":1,"message":"` + strings.Repeat("é", 5000) + `"}` + "\n"
	long := `{"kind":"finding","rule":"F2","severity":"note","line":1,"column":2,"message":"` + strings.Repeat("x", 100_000) + `"}` + "\n"
	s := &scripted{answers: []string{parsed + one + long + "{\"kind\":\"note\",\"text\":\"\xff\"}\n", ""}}
	c := &advice.Checker{Session: s}
	r, err := c.Check(t.Context(), source(t, "a.py", "x\n"), advice.Options{})
	if err != nil || len(r.Findings) != 1 || len([]rune(r.Findings[0].Message)) != 1001 || len(r.Notes) != 0 {
		t.Errorf("%v, %d findings, notes %q", err, len(r.Findings), r.Notes)
	}

	var many strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&many, `{"kind":"finding","rule":"F1","severity":"note","line":1,"column":%d,"message":"m"}`+"\n", i+1)
	}
	s = &scripted{answers: []string{parsed, many.String()}}
	r, err = (&advice.Checker{Session: s}).Check(t.Context(), source(t, "a.py", "x\n"), advice.Options{})
	if err != nil || len(r.Findings) != 2000 || len(r.Notes) != 1 {
		t.Errorf("%v, %d findings, notes %q", err, len(r.Findings), r.Notes)
	}
}

func TestFailuresOfOneCheckAreNotes(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[kernel.Outcome]string{kernel.OutcomeTimeout: "it ended so", kernel.OutcomeMemory: "it ended so", kernel.OutcomeError: "ended without a result"} {
		s := &scripted{answers: []string{parsed, ""}, outcomes: []kernel.Outcome{kernel.OutcomeOK, outcome}}
		r, err := (&advice.Checker{Session: s}).Check(t.Context(), source(t, "a.py", "x\n"), advice.Options{})
		if err != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], want) {
			t.Errorf("%s: %v, notes %q", outcome, err, r.Notes)
		}
		s = &scripted{answers: []string{""}, outcomes: []kernel.Outcome{outcome}} // not even parsed
		if _, err := (&advice.Checker{Session: s}).Check(t.Context(), source(t, "a.py", "x\n"), advice.Options{}); !problem.Has(err, problem.CheckFailed) {
			t.Errorf("%s: %v", outcome, err)
		}
	}
	s := &scripted{} // the session cannot go on
	if _, err := (&advice.Checker{Session: s}).Check(t.Context(), source(t, "a.py", "x\n"), advice.Options{}); err == nil {
		t.Error("a lost session is no error")
	}
}

const book = `{"nbformat":4,"cells":[
 {"cell_type":"code","source":["import os\n","!ls\n","if True:\n","    %matplotlib inline\n","x = 5 % 3"]},
 {"cell_type":"markdown","source":"text"},
 {"cell_type":"code","source":"%%html\n<b>\n</b>"},
 {"cell_type":"code","source":"%%time\ny = x\r\ny?"},
 {"cell_type":"code","source":""},
 {"cell_type":"code","source":"z"}]}`

func TestNotebooksBecomePython(t *testing.T) {
	t.Parallel()
	src := source(t, "b.ipynb", book)
	want := "# %%\nimport os\npass  # !ls\nif True:\n    pass  # %matplotlib inline\nx = 5 % 3\n# %%\n# %%html\n# <b>\n# </b>\n# %%\n# %%time\ny = x\npass  # y?\n# %%\n\n# %%\nz\n"
	if src.Text != want {
		t.Errorf("got  %q\nwant %q", src.Text, want)
	}
	var lines strings.Builder
	for n := range strings.Count(want, "\n") {
		fmt.Fprintf(&lines, `{"kind":"finding","rule":"F1","severity":"note","line":%d,"column":1,"message":"line %d"}`+"\n", n+1, n+1)
	}
	s := &scripted{answers: []string{parsed, lines.String()}}
	r, err := (&advice.Checker{Session: s}).Check(t.Context(), src, advice.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range r.Findings {
		got[f.Message] = fmt.Sprintf("%d:%d", f.Cell, f.Line)
	}
	for message, place := range map[string]string{"line 1": "1:1", "line 2": "1:1", "line 6": "1:5", "line 7": "2:1", "line 10": "2:3", "line 13": "3:2", "line 16": "4:1", "line 18": "5:1"} {
		if got[message] != place {
			t.Errorf("%s is at %s, want %s", message, got[message], place)
		}
	}
	if s.values[0]["file"] != "b_notebook.py" || s.values[0]["notebook"] != true {
		t.Errorf("told %v", s.values[0])
	}
}

func TestSourcesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		code problem.Code
	}{
		"a.ipynb": {"print(1)", problem.NotebookInvalid},
		"b.ipynb": {`{"nbformat":5,"worksheets":[]}`, problem.NotebookInvalid},
		"c.ipynb": {`{"nbformat":4,"cells":[{"cell_type":"code","source":7}]}`, problem.NotebookInvalid},
		"d.py":    {"\xff\xfe", problem.InputUnreadable},
		"e.py":    {"x = '\x00'", problem.InputUnreadable},
		"f.py":    {strings.Repeat("#", advice.MaxSource+1), problem.CodeTooBig},
	} {
		if _, err := advice.ReadSource(name, []byte(test.text)); !problem.Has(err, test.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOnlyNamesOfModulesBecomeCode: what the sandbox says that a program imports is written into the code that installs it.
func TestOnlyNamesOfModulesBecomeCode(t *testing.T) {
	t.Parallel()
	s := &scripted{answers: []string{parsed, "", `{"kind":"line","line":2,"python":0.5,"native":0.25,"system":0,"peak":1024}` + "\n" +
		`{"kind":"line","line":1,"python":-1,"native":0,"system":0,"peak":0}` + "\n" + `{"kind":"profile","seconds":1.5,"peak":4096,"exit":3,"output":"failed","measured":true}` + "\n"}}
	src := source(t, "a.py", "# requirements: cowsay<6\nimport numpy\n")
	r, err := (&advice.Checker{Session: s}).Check(t.Context(), src, advice.Options{Profile: true, Args: []string{"-x"}})
	if err != nil || r.Profile == nil {
		t.Fatal(err, r)
	}
	code := s.codes[2]
	if !strings.Contains(code, "\n    import scalene\n    import numpy\n    import os.path\n\n") || strings.Contains(code, "a;import os") || !strings.HasPrefix(code, "# requirements: cowsay<6\n") {
		t.Errorf("the code begins with %q", code[:200])
	}
	p := r.Profile
	if len(p.Lines) != 1 || p.Lines[0].Code != "import numpy" || p.Lines[0].Seconds() != 0.75 || *p.Exit != 3 || p.Output != "failed" || p.Seconds != 1.5 {
		t.Errorf("%+v", p)
	}
}

func TestOpenAPIIsChecked(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		`{"openapi":"3.1.0","info":{},"paths":{}}`: true,
		`{"info":{},"paths":{}}`:                   false,
		`[]`:                                       false,
		"\xff":                                     false,
		`{"openapi":"3.1.0","info":{},"paths":{}} {}`: false,
	} {
		s := &scripted{answers: []string{parsed, `{"kind":"document"}` + "\n"}, files: map[string][]byte{".cove-check/document": []byte(text)}}
		got, err := (&advice.Checker{Session: s}).OpenAPI(t.Context(), source(t, "a.py", "x"))
		if ok != (err == nil) || ok && !json.Valid(got) || !ok && !problem.Has(err, problem.CheckFailed) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	s := &scripted{answers: []string{`{"kind":"source","parsed":true}` + "\n"}}
	if _, err := (&advice.Checker{Session: s}).OpenAPI(t.Context(), source(t, "a.py", "x")); !problem.Has(err, problem.NoApplication) {
		t.Error(err)
	}
	s = &scripted{answers: []string{`{"kind":"finding","rule":"syntax-error","severity":"error","line":1,"column":1,"message":"not Python"}` + "\n" + `{"kind":"source","parsed":false}` + "\n"}}
	if _, err := (&advice.Checker{Session: s}).Document(t.Context(), source(t, "a.py", "x")); !problem.Has(err, problem.CodeInvalid) {
		t.Error(err)
	}
	big := bytes.Repeat([]byte("a"), 9<<20)
	s = &scripted{answers: []string{parsed, `{"kind":"document"}` + "\n"}, files: map[string][]byte{".cove-check/document": big}}
	if _, err := (&advice.Checker{Session: s}).Document(t.Context(), source(t, "a.py", "x")); !problem.Has(err, problem.CheckFailed) {
		t.Error(err)
	}
}

func timed(program string, size int, values string) string {
	return fmt.Sprintf(`{"kind":"timed","program":%q,"size":%d,"values":[%s],"memory":1000}`+"\n", program, size, values)
}

func TestGrowthIsToldFromTimes(t *testing.T) {
	t.Parallel()
	// 0.1 s of Python's start, and 1 µs times the square of the size; one run of one size was disturbed.
	s := &scripted{answers: []string{parsed,
		timed("a.py", 100, "0.11, 0.11, 0.11") + timed("a.py", 1000, "1.1, 1.1, 9.0") + timed("a.py", 10000, "100.1, 100.1, 100.1") + timed("an empty program", 0, "0.1, 0.1, 0.1"),
		`{"kind":"plotted"}` + "\n"}, files: map[string][]byte{".cove-check/growth.png": []byte("\x89PNG\r\n\x1a\nrest")}}
	b, err := (&advice.Checker{Session: s}).Benchmark(t.Context(), source(t, "a.py", "x"), advice.Comparison{Sizes: []int{100, 1000, 10000}})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Growth) != 1 || math.Abs(b.Growth[0].Exponent-2) > 0.01 || b.Growth[0].Sizes != 2 || !strings.Contains(b.Growth[0].Words, "square") || b.Plot == nil {
		t.Errorf("%+v", b.Growth)
	}
	s.codes, s.files = nil, map[string][]byte{".cove-check/growth.png": []byte("<svg>")}
	if b, err := (&advice.Checker{Session: s}).Benchmark(t.Context(), source(t, "a.py", "x"), advice.Comparison{Sizes: []int{100, 1000, 10000}}); err != nil || b.Plot != nil {
		t.Errorf("a plot that is no PNG: %v, %q", err, b.Plot)
	}
}

func TestProgramsAreCompared(t *testing.T) {
	t.Parallel()
	other := source(t, "elsewhere/a.py", "y")
	for said, same := range map[string]bool{"true": true, "false": false} {
		s := &scripted{answers: []string{parsed, parsed,
			timed("a.py", 0, "1.0, 1.01, 1.02") + timed("a_other.py", 0, "0.3, 0.31, 0.32") + `{"kind":"compared","size":0,"same":` + said + "}\n" + timed("an empty program", 0, "0.01, 0.01")}}
		b, err := (&advice.Checker{Session: s}).Benchmark(t.Context(), source(t, "a.py", "x"), advice.Comparison{Against: &other})
		if err != nil || len(b.Timed) != 2 {
			t.Fatal(err, b)
		}
		if a := b.Timed[1].Against; a == nil || a.Same != same || !a.Certain || math.Abs(a.Ratio-0.29/0.99) > 0.001 {
			t.Errorf("same output %s: %+v", said, a)
		}
	}
}

// TestADifferenceIsCertainBeyondTheNoise: times that do not differ by more than twice what their spread explains, 0.024 s of these, are no difference.
func TestADifferenceIsCertainBeyondTheNoise(t *testing.T) {
	t.Parallel()
	other := source(t, "elsewhere/a.py", "y")
	for values, certain := range map[string]bool{"1.0, 1.01, 1.02": false, "1.02, 1.03, 1.04": false, "1.04, 1.05, 1.06": true, "0.96, 0.97, 0.98": true} {
		s := &scripted{answers: []string{parsed, parsed,
			timed("a.py", 0, "1.0, 1.01, 1.02") + timed("a_other.py", 0, values) + `{"kind":"compared","size":0,"same":true}` + "\n" + timed("an empty program", 0, "0.01, 0.01")}}
		b, err := (&advice.Checker{Session: s}).Benchmark(t.Context(), source(t, "a.py", "x"), advice.Comparison{Against: &other})
		if err != nil || len(b.Timed) != 2 {
			t.Fatal(err, b)
		}
		if a := b.Timed[1].Against; a == nil || a.Certain != certain {
			t.Errorf("%s beside 1.0, 1.01, 1.02: %+v", values, a)
		}
	}
}

func TestBenchmarksThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		what    advice.Comparison
		answers []string
		code    problem.Code
	}{
		"sizes that fall":   {advice.Comparison{Sizes: []int{10, 5}}, nil, problem.BenchmarkInvalid},
		"size 0":            {advice.Comparison{Sizes: []int{0}}, nil, problem.BenchmarkInvalid},
		"runs":              {advice.Comparison{Runs: 101}, nil, problem.BenchmarkInvalid},
		"a program fails":   {advice.Comparison{}, []string{parsed, `{"kind":"failed","why":"exit code 1"}` + "\n"}, problem.ProgramFailed},
		"no pyperf":         {advice.Comparison{}, []string{parsed, `{"kind":"missing","package":"pyperf"}` + "\n"}, problem.CheckToolMissing},
		"nothing measured":  {advice.Comparison{}, []string{parsed, ""}, problem.CheckFailed},
		"negative times":    {advice.Comparison{}, []string{parsed, timed("a.py", 0, "-1")}, problem.CheckFailed},
		"no times":          {advice.Comparison{}, []string{parsed, timed("a.py", 0, "")}, problem.CheckFailed},
		"something unasked": {advice.Comparison{}, []string{parsed, timed("b.py", 0, "1") + timed("an empty program", 0, "1")}, problem.CheckFailed},
	} {
		s := &scripted{answers: test.answers}
		if _, err := (&advice.Checker{Session: s}).Benchmark(t.Context(), source(t, "a.py", "x"), test.what); !problem.Has(err, test.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMeasuresAreChecked(t *testing.T) {
	t.Parallel()
	line := func(rule string, slow, fast float64, same bool) string {
		return fmt.Sprintf(`{"kind":"measured","rule":%q,"slow":%g,"fast":%g,"size":10,"same":%t}`+"\n", rule, slow, fast, same)
	}
	s := &scripted{answers: []string{line("slow-iterrows", 1, 0.5, true) + line("slow-apply-rows", 1, 0, true) + line("slow-list-sum", 1, 1, true)}}
	got, err := (&advice.Checker{Session: s}).Measure(t.Context(), []string{"slow-apply-rows", "slow-iterrows", "slow-nothing"})
	if err != nil || len(got) != 1 || got[0].Ratio() != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	s = &scripted{answers: []string{line("slow-iterrows", 1, 0.5, false)}}
	if _, err := (&advice.Checker{Session: s}).Measure(t.Context(), []string{"slow-iterrows"}); !problem.Has(err, problem.CheckFailed) {
		t.Error(err)
	}
}

func TestTheLastOfManyPrograms(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("# a line\n", advice.MaxSource/9/2)
	for name, c := range map[string]struct {
		before []string
		last   string
		line   int // of the last program's first line in what is looked at
	}{
		"all":       {[]string{"a = 1", "b = 2\n"}, "c = 3", 6},
		"the last":  {[]string{big, big, "b = 2"}, "c = 3", strings.Count(big, "\n") + 1 + 2 + 2},
		"one alone": {[]string{big}, big + "c = 3", 2},
		"magics":    {[]string{strings.Repeat("%%bash\n"+strings.Repeat("\n", 1000), 400)}, "c = 3", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finding := fmt.Sprintf(`{"kind":"finding","rule":"F999","severity":"error","line":%d,"column":1,"message":"there"}`, c.line)
			s := &scripted{answers: []string{parsed + finding + "\n", ""}}
			checker := advice.Checker{Session: s}
			r, err := checker.CheckLast(t.Context(), "step", append(c.before, c.last), advice.Options{})
			if err != nil || len(r.Findings) != 1 || r.Findings[0].Line != 1 {
				t.Errorf("findings %v of %q, error %v", r.Findings, r.Notes, err)
			}
		})
	}
}
