package eval_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/llm/eval"
)

const humanRow = `{"task_id": "HE/0", "prompt": "def f(x):\n", "entry_point": "f", "canonical_solution": "    return x\n", "test": "def check(c):\n    assert c(1) == 1\n"}`

// folder has files of these names and contents, in pairs.
func folder(t *testing.T, pairs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(pairs); i += 2 {
		path := filepath.Join(dir, pairs[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(pairs[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func packed(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write([]byte(text))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestLoadCode(t *testing.T) {
	t.Parallel()
	dir := folder(t, "he.jsonl.gz", packed(t, humanRow+"\n\n"), "list.json", "["+strings.Replace(humanRow, "HE/0", "HE/1", 1)+"]")
	set, err := eval.Load([]string{filepath.Join(dir, "he.jsonl.gz"), filepath.Join(dir, "list.json")}, eval.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Tasks) != 2 || set.Name != "he+list" || set.Sources[0].Format != "humaneval" || len(set.Sources[0].Sum) != 64 {
		t.Fatalf("%+v", set)
	}
	task := set.Tasks[0]
	if task.ID != "HE/0" || task.Reference != "def f(x):\n    return x\n" || !strings.Contains(task.Prompt, "def f(x):") || strings.Contains(task.Prompt, "assert") || task.Checks[0].Entry != "f" {
		t.Errorf("%+v", task)
	}
}

// TestLoadAnnotations reads the tasks of BigCodeBench as the repository in which they were written has them.
func TestLoadAnnotations(t *testing.T) {
	t.Parallel()
	row := `{"task_id": "f_1", "prompt": "import math\ndef f_1(x):\n    \"\"\"Root.\"\"\"\n", "entry_point": "f_1", "canonical_solution": "    return math.sqrt(x)\n", ` +
		`"test": "import unittest\nclass TestCases(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(f_1(4), 2)\n"}`
	dir := folder(t, "bcb.jsonl", row)
	set, err := eval.Load([]string{filepath.Join(dir, "bcb.jsonl")}, eval.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	task := set.Tasks[0]
	if set.Sources[0].Format != "bigcodebench" || !task.Checks[0].Unittest || task.Reference != "import math\ndef f_1(x):\n    \"\"\"Root.\"\"\"\n    return math.sqrt(x)\n" ||
		!strings.Contains(task.Prompt, "Root.") || task.Checks[0].Prelude == "" {
		t.Errorf("%+v of %+v", task, set.Sources)
	}
}

func TestLoadSeries(t *testing.T) {
	t.Parallel()
	text := `"""What is before the first cell does not count."""
# %%
import math

# %%
"""
question: Call the root of 4 r.
validator:
  namespace_check:
    r:
"""
r = math.sqrt(4)

# %%
"""
question: Train a model.
validator:
  model:
    metric: accuracy
"""
m = 1

# %%
"""
question: |
  Is r even?
validator:
  template: basic
"""
r % 2 == 0

# %%
"""
question: Double r.
"""
r * 2
`
	dir := folder(t, "bench/walk.py", text, "bench/_skipped.py", "", "bench/_inputs/walk/a/t.csv", "x\n")
	set, err := eval.Load([]string{filepath.Join(dir, "bench")}, eval.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Tasks) != 2 || len(set.Notices) != 2 {
		t.Fatalf("%d tasks, notices %q", len(set.Tasks), set.Notices)
	}
	first, second := set.Tasks[0], set.Tasks[1]
	if first.ID != "walk/1" || first.Series != "walk" || first.Before != "import math" || len(first.Files) != 1 || first.Files[0].Path != "inputs/a/t.csv" {
		t.Errorf("%+v", first)
	}
	if c := first.Checks[0]; c.Kind != eval.CheckCompare || len(c.Names) != 1 || c.Names[0] != "r" || !c.Result || c.Text != "r = math.sqrt(4)" {
		t.Errorf("%+v", c)
	}
	if second.Before != "m = 1\n\nr % 2 == 0" || len(second.Files) != 0 {
		t.Errorf("%+v", second)
	}
}

// TestLoadProblems wants what is wrong with a file to be said by the file and the place.
func TestLoadProblems(t *testing.T) {
	t.Parallel()
	da := `{"id": 1, "question": "q", "format": "@a[v]", "file_name": "t.csv"}`
	task := "tasks:\n  - {id: a, prompt: p, check: "
	for name, c := range map[string]struct {
		files []string // the first is loaded
		want  string
		code  problem.Code
	}{
		"nothing there":          {[]string{"no/x", ""}, "has no problem set", problem.EvalEmpty},
		"no tasks":               {[]string{"x.jsonl", "\n"}, "no task", problem.EvalEmpty},
		"not JSON":               {[]string{"x.jsonl", humanRow + "\n{"}, "line 2", problem.EvalFormat},
		"unknown fields":         {[]string{"x.jsonl", `{"a": 1}`}, "fields of no format", problem.EvalFormat},
		"no check of HumanEval":  {[]string{"x.jsonl", `{"task_id": "a", "prompt": "p", "entry_point": "f", "test": "assert f()"}`}, "task 1: its test defines no check", problem.EvalFormat},
		"no entry point":         {[]string{"x.jsonl", `{"task_id": "a", "prompt": "p", "test": "t"}`}, "task 1: it has no entry_point", problem.EvalFormat},
		"twice":                  {[]string{"x.jsonl", humanRow + "\n" + humanRow}, "HE/0 is there already", problem.EvalFormat},
		"damaged gzip":           {[]string{"x.jsonl.gz", "\x1f\x8b garbage"}, "cannot be read", problem.InputUnreadable},
		"ODEX without a list":    {[]string{"x.jsonl", `{"task_id": 1, "test_start": "s", "test": "t", "entry_point": "f"}`}, "not a list", problem.EvalFormat},
		"no labels":              {[]string{"questions.jsonl", da}, "labels.jsonl does not exist", problem.InputUnreadable},
		"unknown labels":         {[]string{"other.jsonl", da}, "--labels", problem.EvalFormat},
		"a question unlabelled":  {[]string{"questions.jsonl", da, "labels.jsonl", `{"id": 2, "common_answers": [["a", "1"]]}`}, "question 1 has no label", problem.EvalFormat},
		"no table":               {[]string{"questions.jsonl", da, "labels.jsonl", `{"id": 1, "common_answers": [["a", "1"]]}`}, "tables/t.csv does not exist", problem.InputUnreadable},
		"a table elsewhere":      {[]string{"questions.jsonl", strings.Replace(da, "t.csv", "../t.csv", 1), "labels.jsonl", `{"id": 1, "common_answers": [["a", "1"]]}`}, "plain name", problem.EvalFormat},
		"a series without input": {[]string{"s.py", "# %%\n\"\"\"\nquestion: q\ndata:\n  t.csv: the-address\n\"\"\"\n1\n"}, "put the-address into", problem.EvalFormat},
		"a series without any":   {[]string{"s.py", "print(1)\n"}, "no question", problem.EvalFormat},
		"damaged YAML":           {[]string{"t.yaml", "tasks: [\n"}, "line", problem.EvalFormat},
		"an unknown field":       {[]string{"t.yaml", "tasks:\n  - {id: a, promt: p}\n"}, "line 2: there is no field promt here", problem.EvalFormat},
		"an unknown check":       {[]string{"t.yaml", task + "{is: 1}}\n"}, `line 2: a check has no "is"`, problem.EvalFormat},
		"no check":               {[]string{"t.yaml", task + "[]}\n"}, "the task a has no check", problem.EvalFormat},
		"two checks in one":      {[]string{"t.yaml", task + "{number: 1, equals: b}}\n"}, "exactly one of", problem.EvalFormat},
		"a bad expression":       {[]string{"t.yaml", task + "{regex: \"(\"}}\n"}, "missing closing )", problem.EvalFormat},
		"a file outside":         {[]string{"t.yaml", task + "{file: ../x}}\n"}, "not a path in the workspace", problem.EvalFormat},
		"a series in a series":   {[]string{"t.yaml", "tasks:\n  - series: s\n    tasks: [{series: t, tasks: []}]\n"}, `the series "s"`, problem.EvalFormat},
		"a file that is missing": {[]string{"t.yaml", "tasks:\n  - {id: a, prompt: p, files: [no.csv], check: {number: 1}}\n"}, "no.csv does not exist", problem.InputUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, c.files...)
			path := filepath.Join(dir, c.files[0])
			if strings.HasPrefix(c.files[0], "no/") {
				path = filepath.Dir(path)
			}
			_, err := eval.Load([]string{path}, eval.LoadOptions{})
			if !problem.Has(err, c.code) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the problem is %v", err)
			}
		})
	}
}

func TestLoadOwn(t *testing.T) {
	t.Parallel()
	dir := folder(t, "tasks.yaml", `tasks:
  - prompt: One.
    files: [data/a.csv]
    check: [{values: {n: 3}, tolerance: 0.5}, {file: out.csv, same_as: data/a.csv}]
  - series: lab
    files: {in/b.csv: data/a.csv}
    tasks:
      - {prompt: Two., check: {contains: x}}
      - {prompt: Three., check: {tests: assert x}, reference: x = 1}
`, "data/a.csv", "a\n")
	set, err := eval.Load([]string{dir}, eval.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Tasks) != 3 {
		t.Fatalf("%+v", set.Tasks)
	}
	one, two, three := set.Tasks[0], set.Tasks[1], set.Tasks[2]
	if one.ID != "tasks/1" || one.Files[0].Path != "a.csv" || one.Checks[0].Values["n"] != "3" || one.Checks[1].Sum != one.Files[0].Sum || !one.Checks[1].Exact {
		t.Errorf("%+v", one)
	}
	if two.ID != "tasks/lab/1" || two.Series != "lab" || two.Files[0].Path != "in/b.csv" || three.Files != nil || three.Reference != "x = 1" {
		t.Errorf("%+v\n%+v", two, three)
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	set := eval.Set{}
	for _, id := range []string{"a/1", "a/2", "s/1", "s/2", "b/1"} {
		task := eval.Task{ID: id}
		if strings.HasPrefix(id, "s/") {
			task.Series = "s"
		}
		set.Tasks = append(set.Tasks, task)
	}
	ids := func(c eval.Choice) string {
		chosen, err := set.Choose(c)
		if err != nil {
			return problem.Of(err).Code
		}
		var out []string
		for _, task := range chosen.Tasks {
			out = append(out, task.ID)
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct {
		choice eval.Choice
		want   string
	}{
		{eval.Choice{}, "a/1 a/2 s/1 s/2 b/1"},
		{eval.Choice{Most: 3}, "a/1 a/2 b/1"}, // the series does not fit
		{eval.Choice{Most: 4}, "a/1 a/2 s/1 s/2"},
		{eval.Choice{Only: []string{"a/*", "s"}}, "a/1 a/2 s/1 s/2"},
		{eval.Choice{Only: []string{"s/2"}}, "s/1 s/2"}, // which stands on the one before
		{eval.Choice{Only: []string{"x"}}, "eval_empty"},
		{eval.Choice{Only: []string{"["}}, "usage"},
	} {
		if got := ids(c.choice); got != c.want {
			t.Errorf("%+v chooses %q, want %q", c.choice, got, c.want)
		}
	}
	seen := map[string]bool{}
	for seed := range int64(20) {
		c := eval.Choice{Most: 1, Sample: true, Seed: seed}
		chosen := ids(c)
		if again := ids(c); again != chosen {
			t.Errorf("seed %d chooses %q, then %q", seed, chosen, again)
		}
		seen[chosen] = true
	}
	if len(seen) != 3 {
		t.Errorf("at random, %v were chosen", seen)
	}
}
