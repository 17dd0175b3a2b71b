package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/tools/bench"
)

// scripted is a subject whose rounds a test writes down.
type scripted struct {
	id       string
	startErr error
	values   []float64 // one for each round, warm-up first; NaN is not used: a negative one fails

	log     *[]string
	asked   int
	stopped bool
}

func (s *scripted) About() bench.About {
	return bench.About{ID: s.id, Title: "the " + s.id, Note: "a note"}
}
func (s *scripted) Start(context.Context) error { return s.startErr }
func (s *scripted) Stop(context.Context) error  { s.stopped = true; return nil }

// mute is a subject that no row can ask.
type mute struct{ scripted }

// row asks scripted subjects in n rounds.
func row(n int, then func(round int)) bench.Row {
	return bench.Row{
		ID: "r", Title: "a row", Rounds: n, Quick: 1,
		Measures: []bench.Measure{{ID: "r", Title: "a row", Unit: "ms", Detail: "how."}},
		Able: func(s bench.Subject) string {
			if _, ok := s.(*scripted); ok {
				return ""
			}
			return "it is mute"
		},
		Round: func(_ context.Context, s bench.Subject, rec bench.Recorder) error {
			subject := s.(*scripted)
			v := subject.values[subject.asked]
			subject.asked++
			*subject.log = append(*subject.log, subject.id)
			if then != nil {
				then(len(*subject.log))
			}
			if v < 0 {
				return fmt.Errorf("no answer in round %d", subject.asked)
			}
			rec.Value(0, v)
			return nil
		},
	}
}

func runner(rows []bench.Row, subjects ...bench.Subject) *bench.Runner {
	return &bench.Runner{Rows: rows, Subjects: subjects, Progress: io.Discard}
}

func TestRoundsTakeTurnsAndTheFirstDoesNotCount(t *testing.T) {
	t.Parallel()
	var log []string
	cove := &scripted{id: "cove", values: []float64{999, 1, 2, 3}, log: &log}
	peer := &scripted{id: "peer", values: []float64{999, 20, 40, 60}, log: &log}
	report := runner([]bench.Row{row(3, nil)}, peer, cove).Run(t.Context())
	if want := strings.Fields(strings.Repeat("peer cove ", 4)); !slices.Equal(log, want) {
		t.Errorf("asked %v, want %v", log, want)
	}
	results := report.Rows[0].Results
	if diff := cmp.Diff([]float64{20, 40, 60}, results[0].Samples); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	if results[0].Ratio != 20 || results[1].Ratio != 1 {
		t.Errorf("ratios %v and %v, want 20 and 1", results[0].Ratio, results[1].Ratio)
	}
	if !report.Complete || report.CoveFailed() || !cove.stopped || !peer.stopped {
		t.Errorf("complete %v, cove failed %v, stopped %v %v", report.Complete, report.CoveFailed(), cove.stopped, peer.stopped)
	}
}

func TestRatiosToAnotherThanCove(t *testing.T) {
	t.Parallel()
	log := new([]string)
	cove := &scripted{id: "cove", values: []float64{9, 5}, log: log}
	peer := &scripted{id: "peer", values: []float64{9, 20}, log: log}
	based := row(1, nil)
	based.Base, based.Rounds = "peer", 2
	runs := runner([]bench.Row{based}, cove, peer)
	runs.Rounds = 1
	report := runs.Run(t.Context())
	if results := report.Rows[0].Results; results[0].Ratio != 0.25 || results[1].Ratio != 1 {
		t.Errorf("ratios %v and %v, want 0.25 and 1", results[0].Ratio, results[1].Ratio)
	}
	var text strings.Builder
	if err := report.Text(&text); err != nil || !strings.Contains(text.String(), "vs the peer") {
		t.Errorf("%v:\n%s", err, text.String())
	}
}

func TestFailuresCountAndEndAfterThreeInARow(t *testing.T) {
	t.Parallel()
	var log []string
	shaky := &scripted{id: "shaky", values: []float64{1, 5, -1, 5, -1, -1, 5, 5, 5}, log: &log}
	broken := &scripted{id: "broken", values: slices.Repeat([]float64{-1}, 9), log: &log}
	report := runner([]bench.Row{row(8, nil)}, shaky, broken).Run(t.Context())
	results := report.Rows[0].Results
	if got := results[0]; got.Stats.N != 5 || len(got.Errors) != 3 || got.Success != 0.625 {
		t.Errorf("shaky: %d samples, errors %q, success %v", got.Stats.N, got.Errors, got.Success)
	}
	if got := results[1]; broken.asked != 3 || got.Success != 0 || !strings.Contains(got.Note, "given up") || got.Errors[0] != "no answer in round 2" {
		t.Errorf("broken: asked %d times, %+v", broken.asked, got)
	}
}

func TestCoveFailing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		subject scripted
		want    bool
	}{
		"cove answers":        {scripted{id: "cove", values: []float64{1, 1, 1}}, false},
		"cove fails once":     {scripted{id: "cove", values: []float64{1, 1, -1}}, true},
		"cove does not start": {scripted{id: "cove", startErr: errors.New("no")}, true},
		"a peer fails":        {scripted{id: "peer", values: []float64{1, 1, -1}}, false},
		"a peer is absent":    {scripted{id: "peer", startErr: errors.New("no")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.subject.log = new([]string)
			report := runner([]bench.Row{row(2, nil)}, &c.subject).Run(t.Context())
			if got := report.CoveFailed(); got != c.want {
				t.Errorf("CoveFailed is %v", got)
			}
		})
	}
}

func TestStoppingKeepsWhatThereIs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var log []string
	one := &scripted{id: "one", values: []float64{1, 2, 3, 4}, log: &log}
	stop := row(3, func(asked int) {
		if asked == 3 {
			cancel()
		}
	})
	report := runner([]bench.Row{stop, row(3, nil)}, one).Run(ctx)
	if len(report.Rows) != 1 || report.Complete || !one.stopped || len(log) != 3 {
		t.Fatalf("%d rows, complete %v, stopped %v, asked %d times", len(report.Rows), report.Complete, one.stopped, len(log))
	}
	if diff := cmp.Diff([]float64{2, 3}, report.Rows[0].Results[0].Samples); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	var text strings.Builder
	if err := report.Text(&text); err != nil || !strings.Contains(text.String(), "Stopped early") {
		t.Errorf("%v:\n%s", err, text.String())
	}
}

func TestReportSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	log := new([]string)
	absent := &scripted{id: "absent", log: log,
		startErr: problem.Received(problem.Unavailable, "x", "dockerd is not installed").WithHint("apt-get install docker.io")}
	cove := &scripted{id: "cove", values: []float64{9, 0.5, 0.25}, log: log}
	peer := &scripted{id: "peer", values: []float64{9, 1234.5, -1}, log: log}
	quiet := &mute{scripted{id: "quiet"}}
	everyone := row(2, nil)
	everyone.ID, everyone.Able = "all", func(bench.Subject) string { return "" }
	everyone.Round = func(context.Context, bench.Subject, bench.Recorder) error { return nil }
	report := runner([]bench.Row{row(2, nil), everyone}, cove, peer, quiet, absent).Run(t.Context())
	var text strings.Builder
	if err := report.Text(&text); err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{
		"n median p95 p99 ok vs cove",
		"the cove 2 0.38 0.50 0.50 100 % 1.00x",
		"the peer 1 1234 1234 1234 50.0 % 3292x",
		"not measured: the quiet: it is mute",
		"the peer failed 1 times, first: no answer in round 3",
		"the absent: a note. ABSENT: dockerd is not installed; apt-get install docker.io",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
	var document strings.Builder
	if err := report.JSON(&document); err != nil {
		t.Fatal(err)
	}
	var back bench.Report
	if err := json.Unmarshal([]byte(document.String()), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{0.5, 0.25}, back.Rows[0].Results[0].Samples); diff != "" {
		t.Errorf("samples in the JSON (-want +got):\n%s", diff)
	}
}

func TestASubjectThatNoRowCanAskIsNotStarted(t *testing.T) {
	t.Parallel()
	idle := &mute{scripted{id: "idle", startErr: errors.New("must not be started")}}
	report := runner([]bench.Row{row(1, nil)}, idle).Run(t.Context())
	if len(report.Subjects) != 0 || idle.stopped {
		t.Errorf("subjects %v, stopped %v", report.Subjects, idle.stopped)
	}
}
