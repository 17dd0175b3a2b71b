package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Row is one question that subjects are asked, in rounds.
type Row struct {
	ID       string
	Title    string
	Measures []Measure     // what one round brings
	Base     string        // the subject whose median the others' are multiples of; "" is cove
	Rounds   int           // samples of each subject
	Quick    int           // the same with Options.Quick
	Timeout  time.Duration // of one round; 0: five minutes
	// Able says why s cannot be asked, or "".
	Able func(s Subject) string
	// Round asks once and hands what it measured to rec. An error fails every measure of the round.
	Round func(ctx context.Context, s Subject, rec Recorder) error
}

// Measure is one figure of a row.
type Measure struct {
	ID     string
	Title  string
	Unit   string // "ms", "MB" (10^6 bytes), "kB" (10^3), or what is counted: "sessions", "calls", "requests", "tokens"
	Detail string // how it is measured
}

// Recorder receives what a round measured.
type Recorder struct {
	Quick bool
	// Value takes a sample of a measure, Fail a failed one, Note what a reader must know about this subject's figures.
	Value func(measure int, value float64)
	Fail  func(measure int, err error)
	Note  func(text string)
}

func (rec Recorder) took(measure int, d time.Duration) { rec.Value(measure, milliseconds(d)) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// timed runs a task and checks its answer.
func timed(ctx context.Context, begun time.Time, l Live, t Task) (time.Duration, error) {
	out, err := l.Run(ctx, t)
	d := time.Since(begun)
	if err == nil {
		err = t.Check(out)
	}
	return d, err
}

// free closes l and joins what went wrong to err. It works when ctx has ended, too.
func free(ctx context.Context, l interface {
	Close(ctx context.Context) error
}, err *error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardown)
	defer cancel()
	if e := l.Close(ctx); e != nil {
		*err = errors.Join(*err, fmt.Errorf("close: %w", e))
	}
}

// quiet lets p fill its pool again now, so that the next subject is not measured while it does.
func quiet(ctx context.Context, p interface{ Refill(context.Context) error }) {
	_ = p.Refill(ctx) // the next round says what is wrong
}

// Rows are all rows, in the order in which they are measured.
func Rows() []Row {
	return []Row{
		firstRow(), poolRow(), roundTripRow(), outputRow(), processRow(), terminalRow(), portRow(), networkRow(),
		serveRow(), eventsRow(), followersRow(), createRow(), createManyRow(), sandboxRow(), loopRow(),
		pauseRow(), forkRow(), installRow(), memoryRow(), crowdRow(), densityRow(),
	}
}

// as says that s lacks something, unless it is a T.
func as[T any](lack string) func(Subject) string {
	return func(s Subject) string {
		if _, ok := s.(T); ok {
			return ""
		}
		if v, ok := s.(Variant); ok {
			return "the same as " + v.Otherwise()
		}
		return lack
	}
}

func firstRow() Row {
	return Row{
		ID: "first", Title: "first result from nothing", Rounds: 20, Quick: 5,
		Measures: []Measure{{ID: "first", Title: "first result from nothing", Unit: "ms",
			Detail: "import numpy, pandas, matplotlib.pyplot; 1+1. cove restores its template, nothing prepared. Page cache warm for all."}},
		Able: as[Cold]("it runs only inside something that is there already"),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			begun := time.Now()
			l, err := s.(Cold).Cold(ctx)
			if err != nil {
				return err
			}
			defer free(ctx, l, &err)
			d, err := timed(ctx, begun, l, imports())
			if err == nil {
				rec.took(0, d)
			}
			return err
		},
	}
}

func poolRow() Row {
	return Row{
		ID: "pool", Title: "first result from the pool", Rounds: 30, Quick: 8,
		Measures: []Measure{{ID: "pool", Title: "first result from the pool", Unit: "ms",
			Detail: "1+1 in an interpreter of one's own, prepared ahead as far as the subject can. cove's has numpy, pandas and matplotlib imported, the others' nothing."}},
		Able: as[Pooled]("it needs something that is there already"),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			p := s.(Pooled)
			if err := p.Refill(ctx); err != nil {
				return fmt.Errorf("prepare: %w", err)
			}
			defer quiet(ctx, p)
			begun := time.Now()
			l, err := p.Claim(ctx)
			if err != nil {
				return err
			}
			defer free(ctx, l, &err)
			d, err := timed(ctx, begun, l, sum())
			if err == nil {
				rec.took(0, d)
			}
			return err
		},
	}
}

const noSession = "no live session; every execution is a new process"

func roundTripRow() Row {
	const warm, perRound = 5, 20
	return Row{
		ID: "roundtrip", Title: "round trip of 1+1 in a live session", Rounds: 12, Quick: 3,
		Measures: []Measure{{ID: "roundtrip", Title: "round trip of 1+1 in a live session", Unit: "ms",
			Detail: fmt.Sprintf("%d in each of several sessions, one after the other, after %d that do not count.", perRound, warm)}},
		Able: as[Reusable](noSession),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			l, err := s.(Reusable).Open(ctx)
			if err != nil {
				return err
			}
			defer free(ctx, l, &err)
			return sums(ctx, l, rec, warm, perRound)
		},
	}
}

// sums has 1+1 computed again and again, and records how long each took but the first warm ones.
func sums(ctx context.Context, l Live, rec Recorder, warm, counted int) error {
	for i := range warm + counted {
		d, err := timed(ctx, time.Now(), l, sum())
		if err != nil {
			return err
		}
		if i >= warm {
			rec.took(0, d)
		}
	}
	return nil
}

func outputRow() Row {
	return Row{
		ID: "output", Title: "10 MB of output", Rounds: 10, Quick: 3,
		Measures: []Measure{{ID: "output", Title: "10 MB of output from one execution", Unit: "ms",
			Detail: "100,000 calls of print with 99 characters; every byte has to arrive."}},
		Able: as[Reusable](noSession),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			l, err := s.(Reusable).Open(ctx)
			if err != nil {
				return err
			}
			defer free(ctx, l, &err)
			if _, err := timed(ctx, time.Now(), l, sum()); err != nil {
				return err
			}
			d, err := timed(ctx, time.Now(), l, flood())
			if err == nil {
				rec.took(0, d)
			}
			return err
		},
	}
}

const cannotPause = "it cannot become files; `docker pause` frees no memory and `docker checkpoint` is experimental"

// marked is what a session knows before it is paused or forked.
func marked() Task {
	return Task{Setup: "import numpy, pandas, matplotlib.pyplot\nx = 41", Expr: "x", Want: "41"}
}

func remembered() Task { return Task{Expr: "x+1", Want: "42"} }
