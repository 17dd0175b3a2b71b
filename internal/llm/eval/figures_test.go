package eval_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"cove/internal/llm/eval"
)

func TestWilson(t *testing.T) {
	t.Parallel()
	// The limits are those of statsmodels.stats.proportion.proportion_confint(right, of, method="wilson").
	for _, c := range []struct {
		right, of int
		low, high float64
	}{
		{0, 10, 0, 0.2775327998628892}, {10, 10, 0.7224672001371107, 1}, {8, 10, 0.4901624715366418, 0.9433178485456247},
		{1, 2, 0.09453120573423074, 0.9054687942657694}, {133, 164, 0.7441994269930745, 0.8635169305545987},
	} {
		s := eval.NewShare(c.right, c.of)
		if math.Abs(s.Low-c.low) > 1e-9 || math.Abs(s.High-c.high) > 1e-9 || s.Share != float64(c.right)/float64(c.of) {
			t.Errorf("%d of %d: %v, want %g to %g", c.right, c.of, s, c.low, c.high)
		}
	}
	if s := eval.NewShare(0, 0); s.Share != 0 || s.Low != 0 || s.High != 1 || s.String() != "-" {
		t.Errorf("of nothing: %+v", s)
	}
}

// executions makes them of letters: o ended well, x did not.
func executions(letters string) []eval.Execution {
	var out []eval.Execution
	for _, c := range letters {
		outcome := "ok"
		if c == 'x' {
			outcome = "error"
		}
		out = append(out, eval.Execution{Outcome: outcome})
	}
	return out
}

func checked(kind eval.CheckKind, right bool) []eval.CheckResult {
	return []eval.CheckResult{{Kind: kind, Right: right}}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	records := []eval.Record{
		{Task: "a", Judged: true, Right: true, Checks: checked(eval.CheckTests, true), Executions: executions("oxoxxo"), Tokens: eval.Tokens{Input: 10, Output: 1}, Cost: eval.Cost{Amount: 0.1, Currency: "USD"},
			Seconds: eval.Seconds{Total: 1}, Reason: "complete"},
		{Task: "b", Judged: true, Checks: append(checked(eval.CheckNumber, false), checked(eval.CheckTests, true)...), Executions: executions("xxxx"), Seconds: eval.Seconds{Total: 3}, Reason: "step_limit",
			Cost: eval.Cost{Amount: 0.2, Currency: "USD"}},
		{Task: "c", Judged: true, Right: true, Checks: checked(eval.CheckFile, true), Executions: executions("xxxxo"), Installs: []eval.Install{{Name: "p", Right: true}, {Name: "q"}}, Seconds: eval.Seconds{Total: 2}},
		{Task: "d", Executions: executions("x"), Tokens: eval.Tokens{Input: 5}, Seconds: eval.Seconds{Total: 100}},
	}
	f := eval.Compute(6, records)
	want := map[string][2]int{"right": {2, 3}, "generated": {2, 2}, "answered": {1, 2}, "installed": {1, 2}, "executed": {4, 15}, "repaired_1": {1, 4}, "repaired_2": {2, 4}, "repaired_3": {2, 4}}
	for _, name := range eval.ShareNames() {
		if s := f.Shares[name]; [2]int{s.Right, s.Of} != want[name] {
			t.Errorf("%s is %v, want %v", name, s, want[name])
		}
	}
	if f.Tasks != 6 || f.Judged != 3 || f.Unjudged != 1 || f.Limited != 1 || f.Tokens.Input != 15 || f.Cost != (eval.Cost{Amount: 0.3, Currency: "USD"}) {
		t.Errorf("%+v", f)
	}
	if s := f.Seconds["total"]; s.Median != 2 || math.Abs(s.P95-2.9) > 1e-9 || s.Sum != 6 {
		t.Errorf("the times are %+v", s)
	}
	for range 20 {
		rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		if again := eval.Compute(6, records); !reflect.DeepEqual(again, f) {
			t.Fatalf("in another order the figures are %+v, want %+v", again, f)
		}
	}
	if none := eval.Compute(2, nil); none.Judged != 0 || none.Seconds["total"].P95 != 0 {
		t.Errorf("of no records: %+v", none)
	}
}

func TestThresholds(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "right", "right=", "right=1.1", "right=-1", "right=NaN", "wrong=0.5", "right=80%"} {
		if _, err := eval.ParseThreshold(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	f := eval.Compute(1, []eval.Record{{Judged: true, Right: true}})
	for text, met := range map[string]bool{"right=1": true, "right=0.5": true, "executed=0": false} {
		threshold, err := eval.ParseThreshold(text)
		if got := threshold.Against(f); err != nil || got.Met != met {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}
