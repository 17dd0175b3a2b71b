package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	mostTries = 3  // of one test, the first among them
	mostTried = 12 // tests; where more fail, something else is wrong than chance
	mostFlaky = 5  // tests; with more of them a run has failed
)

// failure is a test that failed, or a package that failed without any of its tests doing so: then test is empty.
type failure struct {
	pkg, test string
	causes    string // the lines in which it said why, the first time
	final     string // why it is not tried again, or not any more; empty for what may have failed by chance
	tries     int    // how often it was run, when all is over
	passed    bool   // the last time
}

func (f failure) name() string { return strings.TrimSpace(f.pkg + " " + f.test) }

// String is the failure as the summary has it.
func (f failure) String() string {
	verdict := "FAIL"
	if f.passed {
		verdict = "FLAKY"
	}
	var how []string
	if f.tries > 1 {
		how = append(how, fmt.Sprintf("%d tries", f.tries))
	}
	if f.final != "" {
		how = append(how, "not tried again: "+f.final)
	}
	tries := ""
	if len(how) > 0 {
		tries = " (" + strings.Join(how, "; ") + ")"
	}
	return verdict + ": " + f.name() + tries + "\n" + f.causes
}

// goOn runs the tests of packages that ended before all of their tests had begun: one test that panics, hangs or kills its process takes the others with it.
func (s *suite) goOn(r *Report) error {
	for range mostTries {
		cut := r.cut
		r.cut = map[string]bool{}
		for _, pkg := range slices.Sorted(maps.Keys(cut)) {
			began := slices.Sorted(maps.Keys(r.began[pkg]))
			fmt.Fprintf(s.out, "%s ended early; its other tests go on\n", pkg)
			if err := s.test(r, append(skipTests(s.flags, began), pkg)); err != nil {
				return err
			}
		}
	}
	for pkg := range r.cut {
		r.failures = append(r.failures, failure{pkg: pkg, causes: "    its process ended early each time; some tests did not begin\n", final: fmt.Sprintf("it went on %d times", mostTries)})
	}
	return nil
}

// skipTests returns flags by which these tests do not run, in addition to those that do not anyway.
func skipTests(flags, tests []string) []string {
	skip := "^(" + strings.Join(tests, "|") + ")$"
	var rest []string
	for _, flag := range flags {
		if name, value := flagOf(flag); name == "skip" {
			skip = value + "|" + skip
		} else {
			rest = append(rest, flag)
		}
	}
	return append(rest, "-skip="+skip)
}

// tryAgain runs each test that failed again, alone, until it passes or was run mostTries times.
func (s *suite) tryAgain(r *Report) error {
	var again []*failure
	for i := range r.failures {
		if r.failures[i].final == "" {
			again = append(again, &r.failures[i])
		}
	}
	if len(again) > mostTried {
		for _, f := range again {
			f.final = fmt.Sprintf("%d tests failed", len(again))
		}
		return nil
	}
	for _, f := range again {
		for f.tries = 1; f.tries < mostTries && !f.passed && f.final == ""; {
			f.tries++
			fmt.Fprintf(s.out, "again, alone: %s (try %d)\n", f.name(), f.tries)
			try := NewReport(s.out)
			if err := s.test(try, append(aloneFlags(s.flags, f.test), f.pkg)); err != nil {
				return err
			}
			f.passed = len(try.failures) == 0 && (f.test == "" || try.ended[f.pkg][f.test])
			for _, other := range try.failures {
				f.final = cmp.Or(f.final, other.final)
				if f.test == "" && other.test != "" {
					f.causes += "    " + other.test + " failed in try " + strconv.Itoa(f.tries) + "\n" + other.causes
				}
			}
			if f.test == "" { // there may be tests that began now only
				maps.Copy(r.left, try.left)
				maps.Copy(r.silent, try.silent)
			}
		}
	}
	return nil
}

// aloneFlags returns the flags for another try of one test, or of a whole package: those that choose tests, and say how many run at once and for how long, do not hold for it.
func aloneFlags(flags []string, test string) []string {
	var rest []string
	for _, flag := range flags {
		name, _ := flagOf(flag)
		if name == "timeout" || name == "p" || name == "parallel" || test != "" && (name == "run" || name == "skip") {
			continue
		}
		rest = append(rest, flag)
	}
	if test != "" {
		rest = append(rest, "-run=^"+regexp.QuoteMeta(test)+"$")
	}
	return append(rest, "-count=1")
}

func flagOf(flag string) (name, value string) {
	name, value, _ = strings.Cut(strings.TrimLeft(flag, "-"), "=")
	return name, value
}
