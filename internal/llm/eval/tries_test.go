package eval_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cove/internal/llm/eval"
)

// TestRunWithTries answers tasks three times at once. Of the first, two tries agree on the right answer; of the second, all differ, and the first try counts; of the third, one try cannot be done.
func TestRunWithTries(t *testing.T) {
	t.Parallel()
	set := tasksOf("agree", "differ", "fail", "series/1", "series/2")
	var mu sync.Mutex
	said := map[string][]string{"agree": {"no", "yes", "yes"}, "differ": {"no", "maybe", "never"}, "fail": {"", "yes", "yes"}, "series/1": {"yes"}, "series/2": {"yes"}}
	a := &answering{answer: func(prompt string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		next := said[prompt][0]
		if said[prompt] = said[prompt][1:]; next == "" {
			return "", errors.New("the service is away")
		}
		return next, nil
	}}
	plan, err := eval.NewPlan(eval.KindModel, set, 0)
	if err != nil {
		t.Fatal(err)
	}
	plan.Settings.Tries = 3
	folder := t.TempDir()
	f, err := eval.OpenFolder(folder, plan)
	if err != nil {
		t.Fatal(err)
	}
	result, err := (&eval.Runner{Platform: a, Folder: f, Plan: plan, Tasks: set.Tasks, Parallel: 2}).Run(t.Context())
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	figures := result.Figures
	if s := figures.Shares[eval.ShareRight]; s.Right != 4 || s.Of != 5 || figures.Unjudged != 0 {
		t.Errorf("right are %+v of %+v", s, figures)
	}
	if alone := figures.Alone; alone == nil || alone.Right != 4 || alone.Of != 8 {
		t.Errorf("right alone are %+v", alone)
	}
	if figures.Tokens.Input != 3*300+2*100 {
		t.Errorf("the tokens are %+v", figures.Tokens)
	}
	if first := result.Records[0]; first.Answer != "yes" || *first.Tried != (eval.Tried{Number: 3, Right: 2}) {
		t.Errorf("the record is %+v", first)
	}
	transcripts, err := filepath.Glob(filepath.Join(folder, "transcripts", "0001-*"))
	if err != nil || len(transcripts) != 3 {
		t.Errorf("the transcripts are %q, %v", transcripts, err)
	}
	report, err := eval.ReadReport(folder)
	if err != nil {
		t.Fatal(err)
	}
	text := &strings.Builder{}
	if err := errors.Join(report.WriteText(text), os.RemoveAll(folder)); err != nil || !strings.Contains(text.String(), "of one try alone") || !strings.Contains(text.String(), "4/8") {
		t.Errorf("the report is %s, %v", text, err)
	}
}
