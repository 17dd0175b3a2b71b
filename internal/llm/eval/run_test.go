package eval_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/eval"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

// answering is a platform whose sessions answer as a test says.
type answering struct {
	mu    sync.Mutex
	asked []string
	// answer returns what is said to a prompt, or why there is no answer.
	answer  func(prompt string) (string, error)
	unready error // what Prepare returns
	python  string
}

func (a *answering) Prepare(context.Context) error { return a.unready }

func (a *answering) Open(context.Context, []eval.File) (eval.Session, error) {
	return &answeringSession{platform: a}, nil
}

type answeringSession struct {
	platform *answering
}

func (s *answeringSession) Ask(_ context.Context, prompt string, hear func(loop.Event) error) (eval.Asked, error) {
	s.platform.mu.Lock()
	s.platform.asked = append(s.platform.asked, prompt)
	s.platform.mu.Unlock()
	asked := eval.Asked{Conversation: "cnv", Usage: model.Usage{InputTokens: 100, OutputTokens: 10}, Model: time.Millisecond}
	text, err := s.platform.answer(prompt)
	if err != nil {
		return asked, err
	}
	return asked, hear(loop.Answer{Text: text, Reason: loop.Complete})
}

func (s *answeringSession) Execute(context.Context, string, func(kernel.Event) error) error {
	return nil
}

func (s *answeringSession) Unrecorded(context.Context, string) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) { yield(kernel.Done{Outcome: kernel.OutcomeOK}, nil) }
}

func (s *answeringSession) Fetch(context.Context, string, io.Writer) error { return nil }

func (s *answeringSession) May() ([]string, bool) { return nil, false }

func (s *answeringSession) Python() (string, map[string]string) { return s.platform.python, nil }

func (s *answeringSession) Close() {}

// tasksOf makes a task of each prompt, whose answer is "yes". Those with a slash are series.
func tasksOf(prompts ...string) eval.Set {
	set := eval.Set{Name: "test"}
	for _, p := range prompts {
		series, _, is := strings.Cut(p, "/")
		if !is {
			series = ""
		}
		set.Tasks = append(set.Tasks, eval.Task{ID: p, Series: series, Prompt: p, Checks: []eval.Check{{Kind: eval.CheckEquals, Text: "yes"}}})
	}
	return set
}

// once does a run, as far as it goes, in a folder.
func once(t *testing.T, folder string, set eval.Set, a *answering, change func(*eval.Runner)) (eval.Result, error) {
	t.Helper()
	plan, err := eval.NewPlan(eval.KindModel, set, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := eval.OpenFolder(folder, plan)
	if err != nil {
		return eval.Result{}, err
	}
	defer f.Close()
	r := &eval.Runner{Platform: a, Folder: f, Plan: plan, Tasks: set.Tasks, Parallel: 1}
	if change != nil {
		change(r)
	}
	return r.Run(t.Context())
}

func yes(string) (string, error) { return "yes", nil }

func TestRunInParallel(t *testing.T) {
	t.Parallel()
	var prompts []string
	for n := range 60 {
		prompts = append(prompts, fmt.Sprint("q", n))
	}
	set := tasksOf(prompts...)
	answer := func(prompt string) (string, error) {
		switch prompt[len(prompt)-1] {
		case '3':
			return "no", nil
		case '7':
			return "", problem.New(problem.ModelContextTooLong, "the conversation is too long") // of the model: it is wrong
		}
		return "yes", nil
	}
	var all []eval.Figures
	for _, parallel := range []int{1, 8} {
		var last eval.Progress
		result, err := once(t, t.TempDir(), set, &answering{answer: answer}, func(r *eval.Runner) {
			r.Parallel, r.Progress = parallel, func(p eval.Progress) { last = p }
		})
		if err != nil {
			t.Fatal(err)
		}
		f := result.Figures
		f.Seconds = nil
		all = append(all, f)
		if last.Done != 60 || last.Right != 48 || last.Running != 0 || last.Spent.Tokens != 6600 {
			t.Errorf("in the end the progress is %+v", last)
		}
	}
	if s := all[0].Shares["right"]; s.Right != 48 || s.Of != 60 || !reflect.DeepEqual(all[0], all[1]) {
		t.Errorf("one at a time: %+v\neight at once: %+v", all[0], all[1])
	}
}

func TestRunThatCannotGoOn(t *testing.T) {
	t.Parallel()
	set := tasksOf("a", "b", "c", "d", "e", "f", "g")
	folder := t.TempDir()
	refused := &answering{answer: func(string) (string, error) { return "", problem.New(problem.ModelAuth, "the key is refused") }}
	if result, err := once(t, folder, set, refused, nil); !problem.Has(err, problem.ModelAuth) || len(result.Records) != 0 || len(refused.asked) != 1 {
		t.Errorf("with a key that is refused: %v, %v, asked %q", result.Records, err, refused.asked)
	}
	down := &answering{answer: func(string) (string, error) { return "", problem.New(problem.ModelUnavailable, "the service is down") }}
	if result, err := once(t, folder, set, down, nil); !problem.Has(err, problem.EvalStopped) || result.Figures.Unjudged != 5 || len(down.asked) != 5 {
		t.Errorf("without a service: %+v, %v", result.Figures, err)
	}
	unready := &answering{unready: problem.New(problem.PythonNotFound, "there is no Python")}
	if _, err := once(t, folder, set, unready, nil); !problem.Has(err, problem.PythonNotFound) {
		t.Errorf("without Python: %v", err)
	}
	result, err := once(t, folder, set, &answering{answer: yes}, nil)
	if err != nil || result.Figures.Judged != 7 || result.Figures.Unjudged != 0 || result.Figures.Tokens.Input != 700 {
		t.Errorf("when it goes on: %+v, %v", result.Figures, err)
	}
	other := &answering{answer: yes, python: "3.99"}
	if _, err := once(t, folder, set, other, nil); err != nil {
		t.Errorf("with another Python, and nothing to do: %v", err)
	}
}

func TestRunWithAnotherPython(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	set := tasksOf("a", "b")
	if _, err := once(t, folder, set, &answering{answer: yes, python: "3.11"}, func(r *eval.Runner) { r.MaxTokens = 1 }); err != nil {
		t.Fatal(err)
	}
	if _, err := once(t, folder, set, &answering{answer: yes, python: "3.12"}, nil); !problem.Has(err, problem.EvalOther) {
		t.Errorf("the problem is %v", err)
	}
}

// TestSeriesIsDoneAsAWhole: what a question of a series stands on is in a session that is gone when the run goes on.
func TestSeriesIsDoneAsAWhole(t *testing.T) {
	t.Parallel()
	folder, set := t.TempDir(), tasksOf("s/1", "s/2", "s/3", "b")
	broken := true
	a := &answering{answer: func(prompt string) (string, error) {
		if prompt == "s/2" && broken {
			return "", problem.New(problem.ModelOverloaded, "try again")
		}
		return "yes", nil
	}}
	result, err := once(t, folder, set, a, nil)
	if err != nil || result.Figures.Judged != 2 || result.Figures.Unjudged != 2 || strings.Join(a.asked, " ") != "s/1 s/2 b" {
		t.Errorf("%+v, %v, asked %q", result.Figures, err, a.asked)
	}
	broken, a.asked = false, nil
	result, err = once(t, folder, set, a, nil)
	if err != nil || result.Figures.Shares["right"].Right != 4 || strings.Join(a.asked, " ") != "s/1 s/2 s/3" || result.Figures.Tokens.Input != 400 {
		t.Errorf("%+v, %v, asked %q", result.Figures, err, a.asked)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	folder, set := t.TempDir(), tasksOf("a", "b", "c", "d")
	result, err := once(t, folder, set, &answering{answer: yes}, func(r *eval.Runner) { r.MaxTokens = 220 })
	if err != nil || result.Figures.Judged != 2 || !strings.Contains(result.Bound, "220 tokens") {
		t.Errorf("%+v, %q, %v", result.Figures, result.Bound, err)
	}
	result, err = once(t, folder, set, &answering{answer: yes}, func(r *eval.Runner) { r.MaxTokens = 220 })
	if err != nil || result.Figures.Judged != 2 {
		t.Errorf("again, %d tasks are done", result.Figures.Judged)
	}
	report, err := eval.ReadReport(folder)
	if err != nil || report.Figures.Judged != 2 || report.Figures.Tasks != 4 {
		t.Errorf("the report: %+v, %v", report.Figures, err)
	}
}

// TestFolder has folders that are not what they should be.
func TestFolder(t *testing.T) {
	t.Parallel()
	set := tasksOf("a", "b")
	plan, err := eval.NewPlan(eval.KindModel, set, 0)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "new", "run")
	f, err := eval.OpenFolder(folder, plan)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := eval.OpenFolder(folder, plan); !problem.Has(err, problem.EvalBusy) {
		t.Errorf("a second one: %v", err)
	}
	if err := f.Append(eval.Record{Task: "a", Judged: true, Tokens: eval.Tokens{Input: 7}}, eval.Record{Task: "b"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	other := plan
	other.Model, other.Seed = "openai/x", 5
	if _, err := eval.OpenFolder(folder, other); !problem.Has(err, problem.EvalOther) || !strings.Contains(err.Error(), "the model") || !strings.Contains(err.Error(), "the seed") {
		t.Errorf("for another run: %v", err)
	}

	results := filepath.Join(folder, "results.jsonl")
	whole, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) { // a crash while the records are written
		if err := os.WriteFile(results, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := eval.OpenFolder(folder, plan)
		if err != nil {
			t.Fatalf("cut after %d bytes: %v", cut, err)
		}
		if err := f.Append(eval.Record{Task: "b", Judged: true}); err != nil {
			t.Fatal(err)
		}
		if r, ok := f.Done("b"); !ok || !r.Judged {
			t.Fatalf("cut after %d bytes: %+v", cut, r)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if report, err := eval.ReadReport(folder); err != nil || report.Figures.Judged == 0 {
			t.Fatalf("cut after %d bytes: %v", cut, err)
		}
	}
	for name, content := range map[string]string{"results.jsonl": "{\n", "run.json": "{"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := eval.ReadReport(folder); !problem.Has(err, problem.EvalFolder) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("with a damaged %s: %v", name, err)
		}
	}
	if _, err := eval.ReadReport(t.TempDir()); !problem.Has(err, problem.EvalFolder) {
		t.Errorf("of an empty folder: %v", err)
	}
}

// TestPageIsSafe has answers and ids that would be more than text in a page.
func TestPageIsSafe(t *testing.T) {
	t.Parallel()
	const hostile = `<script>alert(1)</script>"><img src=x onerror=alert(1)>`
	folder, set := filepath.Join(t.TempDir(), "run"), tasksOf(hostile, "../../etc/x", "b")
	set.Name = hostile
	if _, err := once(t, folder, set, &answering{answer: func(string) (string, error) { return hostile, nil }}, func(r *eval.Runner) { r.Plan.Model = hostile }); err != nil {
		t.Fatal(err)
	}
	report, err := eval.ReadReport(folder)
	if err != nil {
		t.Fatal(err)
	}
	report.Plan.Model = hostile
	var page strings.Builder
	if err := report.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, unwanted := range []string{"<script", "<img"} {
		if strings.Contains(page.String(), unwanted) {
			t.Errorf("the page has %s", unwanted)
		}
	}
	entries, err := os.ReadDir(filepath.Join(folder, "transcripts"))
	if err != nil || len(entries) != 3 {
		t.Errorf("%v, %v", entries, err)
	}
}
