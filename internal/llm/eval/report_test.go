package eval_test

import (
	"fmt"
	"strings"
	"testing"

	"cove/internal/llm/eval"
)

// TestReportNamesWrongTasks reads the text that a terminal shows.
func TestReportNamesWrongTasks(t *testing.T) {
	t.Parallel()
	r := eval.Report{Records: []eval.Record{
		{Task: "gbk", Judged: true, Checks: []eval.CheckResult{{Right: true}, {Why: "the answer has no number within 1\n of 10089"}}},
		{Task: "raises", Judged: true, Checks: []eval.CheckResult{{Why: "Traceback (most recent call last):\n  File \"x\"\nAssertionError: " + strings.Repeat("九", 200)}}},
		{Task: "limited", Judged: true, Failure: &eval.Failure{Code: "c", Message: "the model took too long"}},
		{Task: "says", Judged: true, Answer: "four\n", Checks: []eval.CheckResult{{}}},
		{Task: "fine", Judged: true, Right: true}, {Task: "later"},
	}}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nwrong: gbk: the answer has no number within 1 of 10089\n", "\nwrong: raises: AssertionError: 九", "九…\n", "\nwrong: limited: the model took too long\n", "\nwrong: says: its answer is \"four\\n\"\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "fine") || strings.Contains(b.String(), "later") {
		t.Errorf("a task that is not wrong is named:\n%s", &b)
	}
	for n := range 30 {
		r.Records = append(r.Records, eval.Record{Task: fmt.Sprint("more", n), Judged: true})
	}
	b.Reset()
	if err := r.WriteText(&b); err != nil || strings.Count(b.String(), "\nwrong: ") != 20 || !strings.Contains(b.String(), "\n14 more are wrong; ") {
		t.Errorf("%v\n%s", err, &b)
	}
}
