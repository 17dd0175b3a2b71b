package bench_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
	"cove/tools/bench"
)

// loopIDs are the measures of the row loop.
func loopIDs() (ids []string) {
	for _, work := range []string{"dependent", "independent"} {
		for _, what := range []string{"0ms", "50ms", "200ms", "calls", "requests", "tokens", "link"} {
			ids = append(ids, "loop-"+work+"-"+what)
		}
	}
	return ids
}

// samples are those of each measure by subject. Nothing may have failed.
func samples(t *testing.T, report *bench.Report) map[string]map[string][]float64 {
	t.Helper()
	all := map[string]map[string][]float64{}
	for _, row := range report.Rows {
		all[row.ID] = map[string][]float64{}
		for _, result := range row.Results {
			if len(result.Errors) > 0 {
				t.Errorf("%s of %s failed: %q", row.ID, result.Subject, result.Errors)
			}
			all[row.ID][result.Subject] = result.Samples
		}
	}
	return all
}

func TestALoopInTheClient(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	report, err := bench.Run(t.Context(), bench.Options{Data: t.TempDir(), Env: python(t), Subjects: []string{"client-loop"}, Rows: []string{"loop"}, Rounds: 1, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	got := samples(t, report)
	want := map[string][]float64{"loop-dependent-calls": {21, 21}, "loop-dependent-requests": {21, 21}, "loop-independent-calls": {2, 2}, "loop-independent-requests": {2, 2}, "loop-dependent-200ms": nil}
	for id, values := range want {
		if !slices.Equal(got[id]["client-loop"], values) {
			t.Errorf("%s is %v, want %v", id, got[id]["client-loop"], values)
		}
	}
	for _, id := range loopIDs() {
		n := map[bool]int{true: 1, false: 2}[strings.HasSuffix(id, "ms")] // a count comes with each delay
		if values := got[id]["client-loop"]; !strings.HasSuffix(id, "-200ms") && (len(values) != n || slices.Min(values) <= 0) {
			t.Errorf("%s is %v", id, values)
		}
	}
	// The last of 21 requests has 20 results of about 2,000 bytes, the one before it 19: 210 of them in all.
	if tokens := got["loop-dependent-tokens"]["client-loop"][0]; tokens < 210*1500/4 || tokens > 210*2500/4 {
		t.Errorf("%.0f tokens", tokens)
	}
}

func TestAWrongAnswerOfAnAgent(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	program, _ := serverProgram(t)
	report, err := bench.Run(t.Context(), bench.Options{Data: t.TempDir(), Env: python(t), Command: program, Subjects: []string{"cove-host"}, Rows: []string{"loop"}, Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	result := report.Rows[0].Results[0]
	if len(result.Errors) != 1 || !strings.Contains(result.Errors[0], `answered "5"`) || !report.CoveFailed() {
		t.Errorf("%+v, cove failed %v", result, report.CoveFailed())
	}
}

// TestWhatCodeSaves holds what the row says of cove to what does not depend on the machine.
func TestWhatCodeSaves(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	cfg, err := testneeds.Config()
	if err != nil {
		t.Fatal(err)
	}
	o := bench.Options{Data: cfg.Folders.Data, Env: testneeds.Environment(t, pyenv.Standard), Command: sandboxtest.Binary(t),
		Subjects: []string{"client-loop", "cove-loop", "cove-code", "cove-host"}, Rows: []string{"loop"}, Rounds: 1, Quick: true}
	report, err := bench.Run(t.Context(), o)
	for until := time.Now().Add(3 * time.Minute); err != nil && problem.Of(err).Code == "bench_busy" && time.Now().Before(until); {
		time.Sleep(time.Second) // tests of another checkout have the folder
		report, err = bench.Run(t.Context(), o)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Subjects {
		if s.Absent != "" {
			t.Errorf("%s is absent: %s", s.ID, s.Absent)
		}
	}
	got := samples(t, report)
	for _, work := range []string{"loop-dependent-", "loop-independent-"} {
		for subject, most := range map[string]struct{ calls, requests float64 }{"cove-loop": {21, 21}, "cove-code": {3, 21}, "cove-host": {3, 1}} {
			calls, requests, tokens := got[work+"calls"][subject], got[work+"requests"][subject], got[work+"tokens"][subject]
			if len(calls) != 2 || len(requests) != 2 || len(tokens) != 2 {
				t.Errorf("%s%s: %v calls, %v requests, %v tokens", work, subject, calls, requests, tokens)
				continue
			}
			if slices.Max(calls) > most.calls || slices.Max(requests) > most.requests {
				t.Errorf("%s%s: %v calls of the model, %v requests of the client", work, subject, calls, requests)
			}
			if peer := got[work+"tokens"]["client-loop"]; subject != "cove-loop" && slices.Max(tokens) > peer[0]/2 {
				t.Errorf("%s%s: %v tokens, where a loop in the client has %v", work, subject, tokens, peer)
			}
		}
	}
}
