package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cove/internal/llm/model/modeltest"
	"cove/internal/python/deps/indextest"
	"cove/internal/testkit/testneeds"
)

// evalFiles are tasks in every format, with a model that is known to be right in some of them: see evalSteps and evalShares.
var evalFiles = map[string]string{
	"humaneval.jsonl": `{"task_id": "HE/add", "prompt": "def add(a, b):\n    \"\"\"Return the sum.\"\"\"\n", "entry_point": "add", "canonical_solution": "    return a + b\n", "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n"}
{"task_id": "HE/mul", "prompt": "def mul(a, b):\n    \"\"\"Return the product.\"\"\"\n", "entry_point": "mul", "canonical_solution": "    return a * b\n", "test": "def check(candidate):\n    assert candidate(1, 2) == 2\n"}
{"task_id": "HE/div", "prompt": "def div(a, b):\n    \"\"\"Return the quotient.\"\"\"\n", "entry_point": "div", "canonical_solution": "    return a / b\n", "test": "def check(candidate):\n    assert candidate(1, 2) == 0.5\n"}
{"task_id": "HE/fib", "prompt": "def helper(n):\n    return n\n\ndef fib(n):\n    \"\"\"Return a Fibonacci number.\"\"\"\n", "entry_point": "fib", "canonical_solution": "    return n if n < 2 else fib(n - 1) + fib(n - 2)\n", "test": "def check(candidate):\n    assert candidate(10) == helper(55)\n"}
`,
	"bigcodebench.json": `[{"task_id": "BigCodeBench/0", "complete_prompt": "import math\n\ndef task_func(x):\n    \"\"\"Return the root of x.\"\"\"\n", "instruct_prompt": "Write task_func, which returns the root of x.",
  "code_prompt": "import math\ndef task_func(x):\n", "canonical_solution": "    return math.sqrt(x)", "entry_point": "task_func", "libs": "['math']",
  "test": "import unittest\nfrom unittest.mock import patch\nclass TestCases(unittest.TestCase):\n    def test_case_1(self):\n        self.assertEqual(task_func(9), 3)\n    @patch('__main__.math')\n    def test_case_2(self, fake):\n        fake.sqrt.return_value = 7\n        self.assertEqual(task_func(9), 7)\n"}]`,
	"odex.jsonl": `{"task_id": 42, "intent": "decode the hex string x", "prompt": "def f_42(x):\n\treturn ", "suffix": "", "canonical_solution": "codecs.decode(x, 'hex')", "test_start": "\nimport codecs\n\ndef check(candidate):", "test": ["\n    assert candidate('4a') == b'J'\n"], "entry_point": "f_42", "library": ["codecs"]}
`,
	"da-questions.jsonl": `{"id": 0, "question": "What is the mean of a?", "concepts": ["Summary Statistics"], "constraints": "Round to two places.", "format": "@mean_a[value]", "file_name": "numbers.csv", "level": "easy"}
{"id": 5, "question": "What is the largest b?", "concepts": [], "constraints": "", "format": "@max_b[value]", "file_name": "numbers.csv", "level": "easy"}
`,
	"da-labels.jsonl": `{"id": 0, "common_answers": [["mean_a", "2.0"]]}
{"id": 5, "common_answers": [["max_b", "6"]]}
`,
	"da-tables/numbers.csv": "a,b\n1,4\n2,5\n3,6\n",
	"lab.py": `# %%
base = 40

# %%
"""
question: Add two to base and call it total.
validator:
  namespace_check:
    total:
"""

total = base + 2

# %%
"""
question: |
  What is the double of total?
"""

total * 2
`,
	"tasks.yaml": `tasks:
  - id: own/number
    prompt: How much is a thousand and a quarter?
    check: {number: 1000.25, tolerance: 0.01}
  - id: own/contains
    prompt: Which sea is it?
    check: [{contains: Baltic}, {regex: "(?i)sea"}]
  - id: own/file
    prompt: Write the file greeting.txt.
    files: {data/in.txt: in.txt}
    check: {file: greeting.txt, content: "hello\n"}
  - id: own/code
    prompt: Name a prime above ten.
    check:
      code: |
        n = int(answer.split()[-1].strip("."))
        assert n > 10 and all(n % k for k in range(2, n))
`,
	"in.txt": "hello\n",
}

// evalArgs are the files in the order in which the run has them.
var evalArgs = []string{"humaneval.jsonl", "bigcodebench.json", "odex.jsonl", "da-questions.jsonl", "lab.py", "tasks.yaml"}

// evalSteps says what the model runs for each question, one program after the other, and answers then. A question is recognized by some of its words.
var evalSteps = map[string][]string{
	"the Python function add": {"def add(a, b):\n    return a + b", "Done."},
	"the Python function mul": {"def mul(a, b):\n    return a + b", "Done."}, // wrong
	"the Python function div": {"dif add(a, b):", "def div(a, b):\n    return a / b", "Done."},
	"the Python function fib": {"1/0", "{}['n']", "int('n')", "def fib(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a", "Done."},
	"Write task_func":         {"import math\ndef task_func(x):\n    return math.sqrt(x)", "Done."},
	"decode the hex string":   {"def f_42(x):\n    return codecs.decode(x, 'hex')", "Done."}, // by an import of the tests
	"the mean of a":           {"import csv\nsum(int(r['a']) for r in csv.DictReader(open('numbers.csv'))) / 3", "The mean: @mean_a[2.00]"},
	"the largest b":           {"max([4, 5])", "@max_b[5]"}, // wrong
	"Add two to base":         {"total = base + 2", "It is 42."},
	"double of total":         {"total * 3", "It is 126."}, // wrong
	"a thousand and":          {"import cowsay\ncowsay.say()", "It is 1,000.25."},
	"Which sea":               {"import nosuchmodule", "The Dead Sea."}, // wrong, and what it imports does not exist
	"greeting.txt":            {"open('greeting.txt', 'w').write(open('data/in.txt').read())", "Written."},
	"a prime":                 {"11", "It is 11."},
}

const evalTasks, evalExecutions = 14, 18

// evalShares are the shares that follow from that: how many are right, and of how many.
var evalShares = map[string][2]int{
	"right": {10, 14}, "generated": {6, 8}, "answered": {4, 6}, "installed": {1, 2}, "executed": {13, 18}, "repaired_1": {1, 3}, "repaired_2": {1, 3}, "repaired_3": {2, 3},
}

// evalModel answers by evalSteps. It keeps nothing in mind: what comes next follows from the conversation that a request has. before is called with the question
// and with how many programs have run for it.
func evalModel(t *testing.T, before func(question string, step int)) *modeltest.Server {
	t.Helper()
	server := modeltest.NewServer()
	t.Cleanup(server.Close)
	server.Decide(func(_ int, r modeltest.Request) modeltest.Turn {
		question, step := "", 0
		for _, m := range r.Messages() {
			switch m["role"] {
			case "user":
				text, _ := json.Marshal(m["content"])
				question, step = string(text), 0
			case "tool":
				step++
			}
		}
		for words, steps := range evalSteps {
			if !strings.Contains(question, words) {
				continue
			}
			before(words, step)
			turn := modeltest.Run(steps[min(step, len(steps)-1)])
			if step >= len(steps)-1 {
				turn = modeltest.Say(steps[len(steps)-1])
			}
			turn.Input, turn.Output = 100, 10
			return turn
		}
		return modeltest.Error(400, "invalid_request_error", "nobody knows "+question)
	})
	return server
}

// evalWorld is what the runs of a test share.
type evalWorld struct {
	home, dir string
	index     *indextest.Index
	server    *modeltest.Server
}

func newEvalWorld(t *testing.T, before func(question string, step int)) *evalWorld {
	t.Helper()
	home, index, _ := shopping(t)
	w := &evalWorld{home: home, dir: t.TempDir(), index: index, server: evalModel(t, before)}
	for name, content := range evalFiles {
		path := filepath.Join(w.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *evalWorld) command(t *testing.T, args ...string) *command {
	t.Helper()
	c := newCommand(t, append([]string{"eval"}, args...)...)
	c.cmd.Dir = w.dir
	c.setenv("COVE_HOME="+w.home, "UV_DEFAULT_INDEX="+w.index.URL, "OPENAI_BASE_URL="+w.server.OpenAIURL(), "OPENAI_API_KEY="+secret,
		"COVE_MODEL=openai/scripted", "COVE_MODELS_ABOUT=openai/scripted input=1 output=10")
	return c
}

// evalReport is what of a report is known beforehand.
type evalReport struct {
	Folder  string
	Figures struct {
		Tasks, Judged, Unjudged int
		Shares                  map[string]struct {
			Right, Of        int
			Share, Low, High float64
		}
		Seconds map[string]struct{ Median, P95 float64 }
		Tokens  struct{ Input, Output int64 }
		Cost    struct {
			Amount   float64
			Currency string
		}
	}
	Others []struct{ Folder string }
}

// known checks the figures of a whole run against what the script makes of them.
func (r evalReport) known(t *testing.T) {
	t.Helper()
	f := r.Figures
	got := map[string][2]int{}
	for name, s := range f.Shares {
		got[name] = [2]int{s.Right, s.Of}
		if s.Low > s.Share || s.High < s.Share || s.Low < 0 || s.High > 1 {
			t.Errorf("the interval of %s is %v", name, s)
		}
	}
	if !maps.Equal(got, evalShares) {
		t.Errorf("the shares are %v, want %v", got, evalShares)
	}
	if f.Tasks != evalTasks || f.Judged != evalTasks || f.Unjudged != 0 {
		t.Errorf("%d tasks, %d judged, %d not", f.Tasks, f.Judged, f.Unjudged)
	}
	requests := int64(evalExecutions + evalTasks)
	if f.Tokens.Input != 100*requests || f.Tokens.Output != 10*requests || f.Cost.Amount != 0.0064 || f.Cost.Currency != "USD" {
		t.Errorf("%+v tokens cost %+v", f.Tokens, f.Cost)
	}
	if total := f.Seconds["total"]; total.Median <= 0 || total.P95 < total.Median || f.Seconds["model"].Median <= 0 || f.Seconds["run"].Median <= 0 || f.Seconds["overhead"].Median <= 0 {
		t.Errorf("the times are %+v", f.Seconds)
	}
}

func evalReportOf(t *testing.T, stdout string) evalReport {
	t.Helper()
	var r evalReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("the report is no JSON: %v\n%s", err, stdout)
	}
	return r
}

// TestEvalKnown has a model that is right where it is known to be, one task after the other and eight at once: the figures are exactly the known ones.
func TestEvalKnown(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	w := newEvalWorld(t, func(string, int) {})
	for _, parallel := range []string{"1", "8"} {
		r := w.command(t, append(evalArgs, "--json", "--run", "runs/"+parallel, "--parallel", parallel, "--seed", "7")...).run()
		r.ended(t, 0)
		evalReportOf(t, r.stdout).known(t)
	}
	again := w.command(t, append(evalArgs, "--run", "runs/8", "--parallel", "8", "--seed", "7", "--min", "right=0.7", "--min", "executed=0.9")...).run()
	again.ended(t, 1)
	for _, want := range []string{"71.4 %", "10/14", "met: right >= 0.7", "NOT MET: executed >= 0.9"} {
		if !strings.Contains(again.stdout, want) {
			t.Errorf("the report lacks %q:\n%s", want, again.stdout)
		}
	}
	if head, _, _ := strings.Cut(again.stdout, "\n"); strings.Count(head, "openai/scripted") != 2 {
		t.Errorf("the run is not shown beside the other one: %s", head)
	}
	requests := w.server.Requests()
	if len(requests) != 2*(evalExecutions+evalTasks) {
		t.Errorf("%d requests: a run that was done was done again", len(requests))
	}
	if seed := fmt.Sprint(requests[0].Body["seed"]); seed != "7" {
		t.Errorf("the model was sent the seed %s", seed)
	}
	for _, one := range requests {
		if text := one.Text(); strings.Contains(text, "assert candidate") || strings.Contains(text, "all(n % k") || strings.Contains(text, "_cove") {
			t.Fatalf("the model is told of a check:\n%s", text)
		}
	}
	checkEvalFolder(t, filepath.Join(w.dir, "runs", "8"))
	show := newCommand(t, "history", "--json")
	show.setenv("COVE_DATABASE=" + filepath.Join(w.dir, "runs", "8", "cove.db"))
	if r := show.run(); strings.Count(r.stdout, "cnv_") < evalTasks-1 {
		t.Errorf("the run's database has these conversations:\n%s", r.stdout)
	}
}

// checkEvalFolder wants the page to need nothing else, and each task's transcript to be there and linked.
func checkEvalFolder(t *testing.T, folder string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(folder, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, unwanted := range []string{"<script", "http://", "https://", "<link", "<img", "url("} {
		if bytes.Contains(page, []byte(unwanted)) {
			t.Errorf("the page has %s", unwanted)
		}
	}
	if bytes.Count(page, []byte("<svg")) != 3 {
		t.Errorf("the page has %d plots", bytes.Count(page, []byte("<svg")))
	}
	transcripts, err := os.ReadDir(filepath.Join(folder, "transcripts"))
	if err != nil || len(transcripts) != evalTasks {
		t.Fatalf("%d transcripts, %v", len(transcripts), err)
	}
	for _, one := range transcripts {
		if !bytes.Contains(page, []byte("transcripts/"+one.Name())) {
			t.Errorf("the page does not link %s", one.Name())
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, "transcripts", transcripts[2].Name()))
	if err != nil || !bytes.Contains(text, []byte("SyntaxError")) || !bytes.Contains(text, []byte(`"type":"answer"`)) || !bytes.Contains(text, []byte(`"type":"checks"`)) {
		t.Errorf("the transcript of HE/div, %v:\n%s", err, text)
	}
}

// TestEvalKilled kills a run in the midst of a series, and leaves half a line behind. Gone on with, it has the figures of one that was not killed.
func TestEvalKilled(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w := newEvalWorld(t, func(question string, step int) {
		if question == "double of total" && step == 1 {
			once.Do(func() { close(arrived) })
			<-release
		}
	})
	args := append(slices.Clone(evalArgs), "--json", "--run", "run", "--parallel", "2")
	c := w.command(t, args...)
	c.start()
	select {
	case <-arrived:
	case <-time.After(2 * patience):
		t.Fatalf("the question was never asked: %s", c.stderr.String())
	}
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
	close(release)
	results := filepath.Join(w.dir, "run", "results.jsonl")
	text, err := os.ReadFile(results)
	if n := bytes.Count(text, []byte("\n")); err != nil || n < 5 || n >= evalTasks || bytes.Contains(text, []byte(`"lab/`)) {
		t.Fatalf("when it was killed the run had %d records, %v:\n%s", n, err, text)
	}
	if err := os.WriteFile(results, append(text, `{"task":"HE/add","judged":true,"ri`...), 0o644); err != nil {
		t.Fatal(err)
	}
	asked := len(w.server.Requests())
	r := w.command(t, args...).run()
	r.ended(t, 0)
	evalReportOf(t, r.stdout).known(t)
	if more := len(w.server.Requests()) - asked; more >= evalExecutions+evalTasks {
		t.Errorf("the run began anew: %d requests", more)
	}
}

// TestEvalStops has runs that end before all is done: by Ctrl-C, by a bound, and by a model that is not there.
func TestEvalStops(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	var once sync.Once
	arrived, release := make(chan struct{}), make(chan struct{})
	w := newEvalWorld(t, func(question string, step int) {
		if strings.HasSuffix(question, "fib") && step == 2 {
			once.Do(func() { close(arrived) })
			<-release
		}
	})
	args := []string{"humaneval.jsonl", "--run", "run", "--parallel", "1", "--json"}
	bounded := w.command(t, append(args, "--max-tokens", "400")...).run()
	bounded.ended(t, 1)
	if f := evalReportOf(t, bounded.stdout).Figures; f.Judged != 2 || f.Tasks != 4 || f.Tokens.Input != 400 {
		t.Errorf("after the bound: %+v", f)
	}

	c := w.command(t, args...)
	c.start()
	<-arrived
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	c.stderr.until(t, "with --run run goes on")
	close(release)
	c.wait().ended(t, 130)

	busy, err := os.OpenFile(filepath.Join(w.dir, "run", ".lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(busy.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	r := w.command(t, args...).run()
	r.ended(t, 125)
	r.told(t, "another command works on the run")
	_ = busy.Close()

	other := w.command(t, append(args, "--max-steps", "3")...).run()
	other.ended(t, 125)
	other.told(t, "has another run", "the settings")

	r = w.command(t, args...).run()
	r.ended(t, 0)
	if s := evalReportOf(t, r.stdout).Figures.Shares["right"]; s.Right != 3 || s.Of != 4 {
		t.Errorf("in the end: %+v", s)
	}

	w.server.Decide(func(int, modeltest.Request) modeltest.Turn {
		return modeltest.Error(401, "invalid_api_key", "no such key")
	})
	refused := w.command(t, "humaneval.jsonl", "--run", "refused", "--json").run()
	refused.ended(t, 125)
	refused.told(t, "key", "with --run refused goes on")
	if n := len(w.server.Requests()); n > 50 {
		t.Errorf("a key that is refused was tried %d times", n)
	}
}

// TestEvalReferences runs the programs that the files have: all are right, and no model is there.
func TestEvalReferences(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	w := newEvalWorld(t, func(string, int) {})
	r := w.command(t, append([]string{"references"}, append(evalArgs, "--json", "--parallel", "4")...)...).run()
	r.ended(t, 0)
	report := evalReportOf(t, r.stdout)
	if s := report.Figures.Shares["right"]; s.Right != 8 || s.Of != 8 {
		text, _ := os.ReadFile(filepath.Join(w.dir, report.Folder, "results.jsonl"))
		t.Errorf("%d of %d references are right:\n%s", s.Right, s.Of, text)
	}
	if len(w.server.Requests()) != 0 || report.Figures.Seconds["model"].P95 != 0 || report.Figures.Seconds["run"].Median <= 0 {
		t.Errorf("%d requests, %+v", len(w.server.Requests()), report.Figures.Seconds)
	}
	r.told(t, "6 tasks have no reference program")
	if !strings.HasPrefix(report.Folder, "cove-eval/humaneval+") {
		t.Errorf("the run is in %s", report.Folder)
	}
}

// TestEvalHostile has programs that end the interpreter, the tests or what the tests say, instead of being right.
func TestEvalHostile(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	w := newEvalWorld(t, func(string, int) {})
	bodies := map[string]string{
		"exit":     "    import sys; sys.exit(0)",
		"vanish":   "    import os; os._exit(0)",
		"kill":     "    import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
		"silence":  "    import sys; sys.__stdout__.close(); raise KeyboardInterrupt",
		"endless":  "    while True: pass",
		"flood":    "    import sys\n    while True: sys.__stdout__.write('x' * 100000)",
		"memory":   "    x = []\n    while True: x.append('x' * 10**8)",
		"empty":    "    return None",
		"no tests": "    return 1",
		"right":    "    print('much' * 100000); return 1",
	}
	var rows strings.Builder
	for name, body := range bodies {
		test := "def check(f):\n    assert f() == 1\n"
		row := map[string]string{"task_id": name, "prompt": "def f():\n", "entry_point": "f", "canonical_solution": body, "test": test}
		if name == "no tests" {
			delete(row, "prompt")
			row["complete_prompt"], row["code_prompt"] = "def f():\n", "def f():\n"
			row["test"] = "import unittest\nclass TestCases(unittest.TestCase):\n    def check_1(self):\n        assert f() == 1\n"
		}
		text, _ := json.Marshal(row)
		if row["complete_prompt"] != "" {
			if err := os.WriteFile(filepath.Join(w.dir, "bare.jsonl"), text, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		rows.Write(append(text, '\n'))
	}
	if err := os.WriteFile(filepath.Join(w.dir, "hostile.jsonl"), []byte(rows.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	r := w.command(t, "references", "hostile.jsonl", "bare.jsonl", "--json", "--run", "hostile", "--timeout", "5s", "--memory", "512MB", "--parallel", "4").run()
	r.ended(t, 0)
	if s := evalReportOf(t, r.stdout).Figures.Shares["right"]; s.Right != 1 || s.Of != len(bodies) {
		text, _ := os.ReadFile(filepath.Join(w.dir, "hostile", "results.jsonl"))
		t.Errorf("%d of %d are right:\n%s", s.Right, s.Of, text)
	}
}

// TestSoakReferences runs the references of data sets that the machine's owner has: what the platform itself gets wrong of programs that nobody here wrote. COVE_EVAL_FILES names the
// files and folders, with spaces between them; COVE_EVAL_RIGHT is the share that has to be right, 0.99 when it is not set.
func TestSoakReferences(t *testing.T) {
	testneeds.FullTier(t)
	if os.Getenv("COVE_SOAK") == "" || os.Getenv("COVE_EVAL_FILES") == "" {
		testneeds.RunsElsewhere(t, "make soak", "it takes data sets, which COVE_EVAL_FILES names and which do not come with cove")
	}
	least := os.Getenv("COVE_EVAL_RIGHT")
	if least == "" {
		least = "0.99"
	}
	for _, file := range strings.Fields(os.Getenv("COVE_EVAL_FILES")) {
		c := newCommand(t, "eval", "references", file, "--parallel", "4", "--min", "right="+least, "--run", filepath.Join(t.TempDir(), "run"))
		c.setenv("COVE_PACKAGES=standard")
		c.bound = time.Hour
		r := c.run()
		t.Logf("%s\n%s", file, r.stdout)
		if r.code != 0 {
			t.Errorf("%s: exit code %d\n%s", file, r.code, r.stderr)
		}
	}
}
