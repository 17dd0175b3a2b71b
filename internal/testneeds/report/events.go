package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cove/internal/testneeds"
)

// Tests that took slow seconds or more are listed, mostSlow of them.
const (
	slow     = 30
	mostSlow = 15
)

// event is a line of go test -json; see `go doc test2json`.
type event struct {
	Action, Package, Test, Output, ImportPath, FailedBuild string
	Elapsed                                                float64
}

// Report is what tests did, package by package.
type Report struct {
	out       io.Writer
	said      map[[2]string]*strings.Builder // what a test said, until it is known whether anybody wants to read it
	causes    map[[2]string]string           // of tests whose parts have failed: why
	left      map[string]map[string]int      // package, reason: how many tests
	elsewhere map[string]int
	late      []string                   // tests that time was too short for
	silent    []string                   // tests that were skipped for no reason that testneeds knows
	state     map[[2]string]string       // of tests that have not ended: the last action that tells of it
	began     map[string]map[string]bool // package, test: those that ran, to their end or not
	ended     map[string]map[string]bool // package, test: whether it passed
	whole     map[string]bool            // packages whose last line says that all of their tests have ended
	cut       map[string]bool            // packages that ended before their tests did
	slow      []slowTest
	failures  []failure
}

// slowTest is a test and its seconds, without those in which it waited for its turn.
type slowTest struct {
	name    string
	seconds float64
}

// NewReport returns one that writes to out.
func NewReport(out io.Writer) *Report {
	return &Report{
		out: out, said: map[[2]string]*strings.Builder{}, causes: map[[2]string]string{}, left: map[string]map[string]int{}, elsewhere: map[string]int{}, state: map[[2]string]string{},
		began: map[string]map[string]bool{}, ended: map[string]map[string]bool{}, whole: map[string]bool{}, cut: map[string]bool{},
	}
}

// Read reads what go test -json says to its end.
func (r *Report) Read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if len(line) > 0 && json.Unmarshal(line, &e) == nil {
			r.take(e)
		} else if len(line) > 0 {
			_, _ = r.out.Write(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *Report) take(e event) {
	key := [2]string{e.Package, e.Test}
	said := r.said[key]
	if said == nil {
		said = &strings.Builder{}
		r.said[key] = said
	}
	if e.Elapsed >= slow && e.Test != "" && !strings.Contains(e.Test, "/") {
		r.slow = append(r.slow, slowTest{e.Package + " " + e.Test, e.Elapsed})
	}
	switch e.Action {
	case "run", "pause", "cont":
		r.state[key] = e.Action
		delete(r.whole, e.Package)
	case "output":
		if strings.HasPrefix(e.Output, "=== ") {
			return // run, pause, cont
		}
		if e.Test == "" {
			r.leaves(e.Package, e.Output)
			r.whole[e.Package] = r.whole[e.Package] || e.Output == "PASS\n" || e.Output == "FAIL\n"
		}
		said.WriteString(e.Output)
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "fail":
		fmt.Fprint(r.out, said)
		if e.Test == "" {
			r.binaryFailed(e)
		} else {
			r.testFailed(key, said.String())
		}
		delete(r.said, key)
	case "skip", "pass":
		if e.Test == "" {
			r.passed(e)
			break
		}
		r.end(key, e.Action == "pass")
		if e.Action == "skip" && !r.leaves(e.Package, said.String()) {
			r.silent = append(r.silent, e.Package+" "+e.Test)
		}
		delete(r.said, key)
	}
}

// end notes that a test has ended.
func (r *Report) end(key [2]string, passed bool) {
	delete(r.state, key)
	pkg, test := key[0], key[1]
	if r.began[pkg] == nil {
		r.began[pkg], r.ended[pkg] = map[string]bool{}, map[string]bool{}
	}
	if !strings.Contains(test, "/") {
		r.began[pkg][test], r.ended[pkg][test] = true, passed
	}
}

// testFailed notes that a test or a part of one failed, and why.
func (r *Report) testFailed(key [2]string, said string) {
	r.end(key, false)
	test, _, part := strings.Cut(key[1], "/")
	top := [2]string{key[0], test}
	r.causes[top] += causes(said)
	if part {
		return
	}
	r.failures = append(r.failures, failure{pkg: key[0], test: test, causes: r.causes[top], final: neverAgain(said + r.causes[top])})
	delete(r.causes, top)
}

// binaryFailed notes why the tests of a package failed, unless one of its tests has said it: it does not compile, or it ended before its tests did.
func (r *Report) binaryFailed(e event) {
	var ran []string
	said := ""
	for key, b := range r.said {
		if key[0] == e.Package {
			said += b.String()
		}
	}
	for key := range r.state {
		if key[0] == e.Package && r.state[key] != "pause" && !strings.Contains(key[1], "/") {
			ran = append(ran, key[1])
		}
	}
	slices.Sort(ran)
	why := causes(said)
	failed := slices.ContainsFunc(r.failures, func(f failure) bool { return f.pkg == e.Package })
	switch {
	case e.FailedBuild != "":
		r.failures = append(r.failures, failure{pkg: e.Package, final: "it does not compile"})
	case r.whole[e.Package] && !failed, len(ran) == 0 && len(r.began[e.Package]) == 0:
		r.failures = append(r.failures, failure{pkg: e.Package, causes: why, final: neverAgain(said)})
	case !r.whole[e.Package]:
		r.cut[e.Package] = true
		for _, test := range ran {
			key := [2]string{e.Package, test}
			if said := r.said[key]; said != nil {
				fmt.Fprint(r.out, said)
			}
			r.end(key, false)
			r.failures = append(r.failures, failure{pkg: e.Package, test: test, causes: "    its process ended before it\n" + why, final: neverAgain(said)})
		}
	}
	maps.DeleteFunc(r.said, func(key [2]string, _ *strings.Builder) bool { return key[0] == e.Package })
	maps.DeleteFunc(r.state, func(key [2]string, _ string) bool { return key[0] == e.Package })
}

// neverAgain returns why a test that said this is not tried again: what it found does not come and go, or one time is enough to know of it.
func neverAgain(said string) string {
	switch {
	case strings.Contains(said, "WARNING: DATA RACE"):
		return "a data race"
	case strings.Contains(said, testneeds.NotThere):
		return "left out"
	}
	return ""
}

// cause is a line that t.Error and its kin wrote, or the beginning of a panic's; logged lines look the same.
var cause = regexp.MustCompile(`^ *(\w+\.go:\d+: |panic: |fatal error: )`)

// causes returns the last lines in which a test said why it failed, cut to what a summary has room for.
func causes(said string) string {
	const most, longest = 8, 400
	var found []string
	for line := range strings.Lines(said) {
		if cause.MatchString(line) {
			found = append(found, "    "+strings.TrimSpace(line[:min(len(line), longest)])+"\n")
		}
	}
	return strings.Join(found[max(0, len(found)-most):], "")
}

// leaves notes why a test was left out, and says whether it told.
func (r *Report) leaves(pkg, said string) bool {
	if _, why, ok := strings.Cut(said, testneeds.LeftOut); ok {
		if r.left[pkg] == nil {
			r.left[pkg] = map[string]int{}
		}
		r.left[pkg][reason(why)]++
		return true
	}
	if _, where, ok := strings.Cut(said, testneeds.Elsewhere); ok {
		r.elsewhere[reason(where)]++
		return true
	}
	_, test, ok := strings.Cut(said, testneeds.TooLate)
	if ok {
		r.late = append(r.late, reason(test))
	}
	return ok
}

// reason is a line's beginning, without what is explained in brackets.
func reason(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	text, _, _ = strings.Cut(text, " (")
	return strings.TrimSpace(text)
}

func (r *Report) passed(e event) {
	if e.Action == "skip" {
		return // it has no tests
	}
	line := fmt.Sprintf("ok  \t%s\t%.3fs", e.Package, e.Elapsed)
	if said := r.said[[2]string{e.Package, ""}]; said != nil && strings.Contains(said.String(), "(cached)") {
		line = fmt.Sprintf("ok  \t%s\t(cached)", e.Package)
	}
	if left := r.left[e.Package]; len(left) > 0 {
		line += "\tleft out " + counted(left)
	}
	fmt.Fprintln(r.out, line)
}

// counted is how often what was, the most frequent first: "7: PostgreSQL 6, root 1".
func counted(counts map[string]int) string {
	total := 0
	var parts []string
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		total += counts[name]
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return fmt.Sprintf("%d: %s", total, strings.Join(parts, ", "))
}

// Summary says what was left out of all packages, and whether that is as it should be.
func (r *Report) Summary(all bool) bool {
	slices.SortFunc(r.slow, func(a, b slowTest) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, test := range r.slow[:min(len(r.slow), mostSlow)] {
		fmt.Fprintf(r.out, "slow: %s %.0fs\n", test.name, test.seconds)
	}
	good := r.verdicts()
	sum := map[string]int{}
	for _, counts := range r.left {
		for why, n := range counts {
			sum[why] += n
		}
	}
	switch {
	case len(sum) == 0:
		fmt.Fprintln(r.out, "nothing was left out")
	case all:
		fmt.Fprintf(r.out, "FAIL: everything was asked for, and left out were %s\n", counted(sum))
		good = false
	default:
		fmt.Fprintf(r.out, "left out were %s; `make test` has everything\n", counted(sum))
	}
	if len(r.elsewhere) > 0 {
		fmt.Fprintf(r.out, "about other machines and users than this are %s\n", counted(r.elsewhere))
	}
	if len(r.late) > 0 {
		fmt.Fprintf(r.out, "NOT BEGUN, for want of time: %s; `make test` runs them\n", strings.Join(r.late, ", "))
	}
	for _, test := range r.silent {
		fmt.Fprintf(r.out, "FAIL: %s was skipped and did not say by package testneeds why\n", test)
		good = false
	}
	return good
}

// verdicts says which tests failed each time and which did so by chance, and whether that is as it should be.
func (r *Report) verdicts() bool {
	good, flaky := true, 0
	for _, f := range r.failures {
		fmt.Fprint(r.out, f)
		if f.passed {
			flaky++
		} else {
			good = false
		}
	}
	if flaky > mostFlaky {
		fmt.Fprintf(r.out, "FAIL: %d tests were flaky; more than %d are too many\n", flaky, mostFlaky)
		good = false
	}
	return good
}
