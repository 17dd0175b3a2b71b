// Package advice looks at Python programs and notebooks in a session: for mistakes, for slow forms, for what a run takes by line, for their documentation, and for how
// their time grows. The work is done in the sandbox by Python scripts (scripts/), with libraries of the field that the session installs when they are first
// used: Ruff, mypy, Scalene, Griffe, pyperf. Each line that a script prints is one JSON object.
//
// The code that is looked at is hostile, and so is everything that comes out of the sandbox: it is bounded and validated here.
package advice

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"cove/internal/python/kernel"
)

// Session is what advice needs of a session.
type Session interface {
	// Execute runs code and yields what it emits, a kernel.Done last. An error means that the session cannot go on.
	Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error]
	// ReadFile returns at most the first limit bytes of a workspace file.
	ReadFile(ctx context.Context, path string, limit int64) ([]byte, error)
}

// Checker looks at code in one session.
type Checker struct {
	Session Session
	Timeout time.Duration      // wall clock of one look, of one run, and of all runs of a benchmark's program with one size; 0 means none
	Told    func(kernel.Event) // hears of installations (kernel.Install); nil: nobody does
}

// Severity says how much a finding matters.
type Severity string

// The severities, the lowest first.
const (
	Note    Severity = "note"    // a matter of taste, or of a reader's time
	Warning Severity = "warning" // probably a mistake, or slow
	Error   Severity = "error"   // fails when it runs
)

var severities = []Severity{Note, Warning, Error}

// AtLeast says whether a severity is that one or a higher one.
func (s Severity) AtLeast(least Severity) bool {
	return slices.Index(severities, s) >= slices.Index(severities, least)
}

// Finding is one thing that was found. Its texts are as tools in the sandbox say: one line each, bounded, of characters that can be printed.
type Finding struct {
	Rule     string    `json:"rule" example:"slow-iterrows" doc:"A rule of Ruff (F821), type- and mypy's code, or slow- and a form"`
	Severity Severity  `json:"severity" enum:"note,warning,error" doc:"error: fails when it runs; warning: probably a mistake, or slow; note: a matter of taste, or of a reader's time"`
	Cell     int       `json:"cell,omitempty" doc:"Of a notebook: which of its cells with code, from 1"`
	Line     int       `json:"line" doc:"Of the file or the cell, from 1"`
	Column   int       `json:"column" doc:"From 1"`
	Message  string    `json:"message"`
	Better   string    `json:"better,omitempty" doc:"What to write instead"`
	Measured *Measured `json:"measured,omitempty"`
}

// Measured is how long a slow form and the faster one took, on the same data with the same result.
type Measured struct {
	Rule string  `json:"rule"`
	Slow float64 `json:"slow" doc:"Seconds"`
	Fast float64 `json:"fast" doc:"Seconds"`
	Size int     `json:"size" doc:"Rows, elements or turns"`
}

// Ratio is how many times faster the faster form is.
func (m Measured) Ratio() float64 { return m.Slow / m.Fast }

// Report is what was found in one file.
type Report struct {
	File     string       `json:"file"`
	Findings []Finding    `json:"findings" doc:"By place"`
	Notes    []string     `json:"notes,omitempty" doc:"What could not be looked at, and why"`
	Profile  *LineProfile `json:"profile,omitempty"`
}

// Options say what else Check does.
type Options struct {
	Measure bool     // run each slow form that is found, and the faster one
	Profile bool     // run the program, and say what its lines take
	Args    []string // of the program
	Ignore  []string // rules, or the beginnings of their names
	cell    int      // of a notebook: what is found in this cell alone, from 1; 0: in all
}

// Check looks at one file: its quality and its slow forms, and what o asks for. What a tool of the sandbox fails at is a note of the report; an
// error means that the code could not be looked at at all, that the session cannot go on, or that ctx has ended.
func (c *Checker) Check(ctx context.Context, src Source, o Options) (Report, error) {
	r := Report{File: src.Name}
	seen, err := c.look(ctx, src, &r)
	if err != nil {
		return r, err
	}
	if seen.Parsed {
		err = c.quality(ctx, src, seen.Types, &r)
	}
	if err != nil {
		return r, err
	}
	r.Findings = tidy(src, r.Findings, o)
	if o.Measure {
		if err := c.measure(ctx, &r); err != nil {
			return r, err
		}
	}
	if o.Profile && seen.Parsed {
		r.Profile, err = c.profile(ctx, src, seen, o.Args, &r)
	}
	return r, err
}

// tidy gives findings their places, leaves out what the code or the caller does not want to hear of, and sorts them.
func tidy(src Source, found []Finding, o Options) []Finding {
	kept := []Finding{}
	for _, f := range found {
		if src.silences(f) || slices.ContainsFunc(o.Ignore, func(rule string) bool { return rule != "" && strings.HasPrefix(f.Rule, rule) }) {
			continue
		}
		f.Cell, f.Line = src.place(f.Line)
		if o.cell != 0 && f.Cell != o.cell {
			continue
		}
		kept = append(kept, f)
	}
	order := func(a, b Finding) int {
		for _, d := range []int{a.Cell - b.Cell, a.Line - b.Line, a.Column - b.Column} {
			if d != 0 {
				return d
			}
		}
		return strings.Compare(a.Rule, b.Rule)
	}
	slices.SortStableFunc(kept, order)
	return slices.CompactFunc(kept, func(a, b Finding) bool { return order(a, b) == 0 && a.Message == b.Message })
}

// Worst is the highest severity of a report's findings, or "".
func (r Report) Worst() Severity {
	worst := Severity("")
	for _, f := range r.Findings {
		if slices.Index(severities, f.Severity) > slices.Index(severities, worst) {
			worst = f.Severity
		}
	}
	return worst
}
