package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
)

// Patience with a subject.
const (
	roundTimeout = 5 * time.Minute
	giveUpAfter  = 3 // failed rounds in a row
	reportEvery  = 15 * time.Second
)

// Runner measures subjects row by row, in interleaved rounds.
type Runner struct {
	Rows     []Row
	Subjects []Subject
	Rounds   int  // of each row that takes several; 0 means its own number
	Quick    bool // take Row.Quick rounds
	Progress io.Writer

	lastSaid time.Time
}

// Run starts the subjects that some row can ask, measures and stops them. When ctx ends, the report holds what there is.
func (r *Runner) Run(ctx context.Context) *Report {
	report := &Report{Started: time.Now(), Machine: lookAtMachine(), Quick: r.Quick}
	var present []Subject
	for _, s := range r.Subjects {
		if !r.wanted(s) {
			continue
		}
		about, ok := r.start(ctx, s)
		report.Subjects = append(report.Subjects, about)
		if ok {
			present = append(present, s)
		}
		defer r.stop(ctx, s, report)
	}
	for i, row := range r.Rows {
		if ctx.Err() != nil {
			break
		}
		r.say("[%d/%d] %s", i+1, len(r.Rows), row.Title)
		report.Rows = append(report.Rows, r.row(ctx, row, present)...)
	}
	report.Complete = ctx.Err() == nil
	report.Machine.LoadEnd = load()
	report.Seconds = time.Since(report.Started).Seconds()
	report.compare()
	return report
}

func (r *Runner) say(format string, args ...any) {
	fmt.Fprintf(r.Progress, format+"\n", args...)
	r.lastSaid = time.Now()
}

func (r *Runner) wanted(s Subject) bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Able(s) == "" })
}

func (r *Runner) start(ctx context.Context, s Subject) (About, bool) {
	r.say("Preparing %s.", s.About().Title)
	err := ctx.Err()
	if err == nil {
		err = s.Start(ctx)
	}
	about := s.About()
	if err == nil {
		return about, true
	}
	about.Absent = explain(err)
	if ctx.Err() != nil {
		about.Absent = "stopped before it was ready"
	}
	r.say("  absent: %s", about.Absent)
	return about, false
}

func (r *Runner) stop(ctx context.Context, s Subject, report *Report) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardown)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		report.Warnings = append(report.Warnings, fmt.Sprintf("%s could not be stopped properly: %s", s.About().Title, explain(err)))
	}
}

// explain is an error for a reader: what happened and what to do.
func explain(err error) string {
	text := strings.TrimSpace(err.Error())
	if p := problem.Of(err); p.Hint != "" {
		text += "; " + p.Hint
	}
	return strings.Join(strings.Fields(text), " ")
}

// asked is one subject in one row.
type asked struct {
	subject Subject
	results []*Result // one for each measure
	fails   int       // in a row
	given   bool      // up

	mu sync.Mutex // guards results: a round may measure at the same time
}

func (r *Runner) row(ctx context.Context, row Row, present []Subject) []RowReport {
	var all []*asked
	for _, s := range present {
		a := &asked{subject: s}
		why := row.Able(s)
		for range row.Measures {
			a.results = append(a.results, &Result{Subject: s.About().ID, Title: s.About().Title, Unable: why})
		}
		a.given = why != ""
		all = append(all, a)
	}
	rounds := r.rounds(row)
	for round := range rounds + warmups(row) {
		for _, a := range all {
			if ctx.Err() != nil {
				break
			}
			if !a.given {
				r.ask(ctx, row, a, round < warmups(row))
			}
		}
		if time.Since(r.lastSaid) > reportEvery {
			r.say("  %d of %d rounds, warm-up included", round+1, rounds+warmups(row))
		}
	}
	reports := make([]RowReport, len(row.Measures))
	for i, m := range row.Measures {
		reports[i] = RowReport{ID: m.ID, Title: m.Title, Unit: m.Unit, Detail: m.Detail, Base: row.Base}
		for _, a := range all {
			reports[i].Results = append(reports[i].Results, *a.results[i])
		}
	}
	return reports
}

func (r *Runner) rounds(row Row) int {
	switch {
	case row.Rounds == 1:
		return 1
	case r.Rounds > 0:
		return r.Rounds
	case r.Quick:
		return row.Quick
	}
	return row.Rounds
}

// warmups is how many rounds do not count. A row of one round brings its own warmth.
func warmups(row Row) int {
	if row.Rounds == 1 {
		return 0
	}
	return 1
}

// ask takes one round of one subject.
func (r *Runner) ask(ctx context.Context, row Row, a *asked, warming bool) {
	round, cancel := context.WithTimeout(ctx, cmp.Or(row.Timeout, roundTimeout))
	defer cancel()
	rec := a.recorder(ctx, warming)
	rec.Quick = r.Quick
	err := row.Round(round, a.subject, rec)
	if ctx.Err() != nil {
		return // stopped, not failed
	}
	if err == nil {
		a.fails = 0
		return
	}
	if !warming {
		for i := range row.Measures {
			rec.Fail(i, err)
		}
	}
	a.fails++
	r.say("  %s: %s", a.subject.About().Title, explain(err))
	if a.fails == giveUpAfter {
		a.given = true
		rec.Note(fmt.Sprintf("given up after %d failed rounds in a row", giveUpAfter))
	}
}

func (a *asked) recorder(ctx context.Context, warming bool) Recorder {
	each := func(do func()) {
		a.mu.Lock()
		defer a.mu.Unlock()
		do()
	}
	rec := Recorder{
		Value: func(i int, v float64) { each(func() { a.results[i].Samples = append(a.results[i].Samples, v) }) },
		Fail: func(i int, err error) {
			if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
				each(func() { a.results[i].Errors = append(a.results[i].Errors, explain(err)) })
			}
		},
		Note: func(text string) {
			each(func() {
				for _, result := range a.results {
					result.Note = text
				}
			})
		},
	}
	if warming {
		rec.Value, rec.Fail = func(int, float64) {}, func(int, error) {}
	}
	return rec
}
