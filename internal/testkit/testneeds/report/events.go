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
	"sync"
	"time"

	"cove/internal/testkit/testneeds"
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
	said      map[key]*strings.Builder  // what a test said, until it is known whether anybody wants to read it
	causes    map[key]string            // of tests whose parts have failed: why
	left      map[string]map[string]int // package, reason: how many tests
	elsewhere map[string]int
	other     map[string]int             // tests of another tier than the one that runs
	silent    map[string]bool            // tests that were skipped for no reason that testneeds knows
	state     map[key]string             // of tests that have not ended: the last action that tells of it
	began     map[string]map[string]bool // package, test: those that ran, to their end or not
	ended     map[string]map[string]bool // package, test: whether it passed
	processes map[string]*process        // package: what runs its tests, until it has ended
	cut       map[string]bool            // packages that ended before their tests did, because of a test
	slow      []slowTest
	failures  []failure

	mu           sync.Mutex        // is held while an event is taken, and while clocks are looked at
	counted      time.Duration     // since it began, as testneeds.CountedTime counts
	quickTimeout time.Duration     // of tests that have not said another; 0: they have none
	clocks       map[key]*clock    // of tests and parts that have not ended
	waited       map[key]float64   // seconds, for slots
	overdue      map[string]string // package, test: because of which it was ended
}

// process is what runs the tests of a package.
type process struct {
	verdict string // its last line, PASS or FAIL: all tests have ended
	last    string // the test of which there was something last
	failed  bool   // a test did
	died    bool   // a test that failed took it along
	raced   bool   // one of its tests did, or a program that they started
}

// slowTest is a test and its seconds, without those in which it waited for its turn.
type slowTest struct {
	name    string
	seconds float64
}

// NewReport returns one that writes to out.
func NewReport(out io.Writer) *Report {
	return &Report{
		out: out, said: map[key]*strings.Builder{}, causes: map[key]string{}, left: map[string]map[string]int{}, elsewhere: map[string]int{}, state: map[key]string{},
		began: map[string]map[string]bool{}, ended: map[string]map[string]bool{}, processes: map[string]*process{}, cut: map[string]bool{},
		silent: map[string]bool{}, other: map[string]int{}, clocks: map[key]*clock{}, waited: map[key]float64{}, overdue: map[string]string{},
	}
}

// Read reads what go test -json says to its end. A process that ends with exit code 0 while a test runs has no result there: test2json takes its end for that of the test.
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
			for _, pkg := range slices.Sorted(maps.Keys(r.processes)) {
				r.take(event{Action: "fail", Package: pkg})
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *Report) take(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tick(e)
	k := key{e.Package, e.Test}
	p := r.processOf(e.Package)
	if e.Test != "" {
		p.last, _, _ = strings.Cut(e.Test, "/")
	}
	said := r.said[k]
	if said == nil {
		said = &strings.Builder{}
		r.said[k] = said
	}
	if own := e.Elapsed - r.waited[k]; own >= slow && e.Test != "" && !strings.Contains(e.Test, "/") {
		r.slow = append(r.slow, slowTest{e.Package + " " + e.Test, own})
	}
	switch e.Action {
	case "run", "pause", "cont":
		r.state[k] = e.Action
		p.verdict = ""
	case "output":
		if strings.HasPrefix(e.Output, "=== ") {
			return // run, pause, cont
		}
		if e.Test == "" {
			r.leaves(e.Package, e.Output)
			if e.Output == "PASS\n" || e.Output == "FAIL\n" {
				p.verdict = strings.TrimSpace(e.Output)
			} else if strings.HasPrefix(e.Output, testneeds.LeftOut+testneeds.Everything) {
				p.verdict = "PASS"
			}
		}
		p.raced = p.raced || strings.Contains(e.Output, "WARNING: DATA RACE")
		said.WriteString(e.Output)
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "fail", "skip", "pass":
		switch {
		case e.Test == "":
			r.processEnded(e)
		case e.Action == "fail":
			fmt.Fprint(r.out, said)
			r.testFailed(k, said.String())
		default:
			r.end(k, e.Action == "pass")
			if e.Action == "skip" && !r.leaves(e.Package, said.String()) {
				r.silent[e.Package+" "+e.Test] = true
			}
		}
		delete(r.said, k)
	}
}

// processOf returns what is known of the process of a package's tests.
func (r *Report) processOf(pkg string) *process {
	p := r.processes[pkg]
	if p == nil {
		p = &process{}
		if pkg != "" { // of none are the lines of a build
			r.processes[pkg] = p
		}
	}
	return p
}

// end notes that a test has ended.
func (r *Report) end(k key, passed bool) {
	delete(r.state, k)
	pkg, test := k[0], k[1]
	if r.began[pkg] == nil {
		r.began[pkg], r.ended[pkg] = map[string]bool{}, map[string]bool{}
	}
	if !strings.Contains(test, "/") {
		r.began[pkg][test], r.ended[pkg][test] = true, passed
	}
}

// testFailed notes that a test or a part of one failed, and why.
func (r *Report) testFailed(k key, said string) {
	r.end(k, false)
	test, _, part := strings.Cut(k[1], "/")
	top := key{k[0], test}
	r.causes[top] += causes(said)
	if part {
		return
	}
	p := r.processOf(k[0])
	p.failed, p.died = true, p.died || death.MatchString(said)
	r.failures = append(r.failures, failure{pkg: k[0], test: test, causes: r.causes[top], final: p.neverAgain(said + r.causes[top])})
	delete(r.causes, top)
}

// processEnded notes how the process of a package's tests ended, and why it failed unless one of its tests has said it: it does not compile, or it ended before its tests did.
func (r *Report) processEnded(e event) {
	pkg, p, said := e.Package, r.processOf(e.Package), r.saidOf(e.Package)
	ran, overdue, own := r.running(pkg), r.overdue[pkg], key{pkg, ""}
	good := e.Action == "skip" || e.Action == "pass" && p.verdict == "PASS" // it is skipped when it has no test files
	if !good {
		fmt.Fprint(r.out, said)
	} else if e.Action == "pass" {
		r.passed(e)
	}
	because := func(why string) {
		r.failures = append(r.failures, failure{pkg: pkg, causes: why + r.causes[own] + causes(said), final: p.neverAgain(said)})
	}
	switch {
	case good:
	case e.FailedBuild != "":
		r.failures = append(r.failures, failure{pkg: pkg, final: "it does not compile"})
	case p.verdict != "" && (!p.failed || r.causes[own] != "" || death.MatchString(said)):
		because("    its process failed when its tests had ended\n")
	case p.verdict != "":
	case overdue != "": // the others go on as if they had not begun
		r.cut[pkg] = true
		r.testFailed(key{pkg, overdue}, "")
	case len(ran) > 0 || p.died:
		r.cut[pkg] = true
		for _, test := range ran {
			r.causes[key{pkg, test}] += "    its process ended before it\n" + causes(said)
			r.testFailed(key{pkg, test}, said)
		}
	case p.last == "":
		because("    its process ended before its tests began\n")
	default:
		because("    its process ended before its tests did; the last was " + p.last + "\n")
	}
	if isOf := func(f failure) bool { return f.pkg == pkg && f.final == dataRace }; p.raced && !slices.ContainsFunc(r.failures, isOf) {
		r.failures = append(r.failures, failure{pkg: pkg, final: dataRace})
	}
	delete(r.processes, pkg)
	delete(r.overdue, pkg)
	delete(r.causes, own)
	of := func(k key) bool { return k[0] == pkg }
	maps.DeleteFunc(r.said, func(k key, _ *strings.Builder) bool { return of(k) })
	maps.DeleteFunc(r.state, func(k key, _ string) bool { return of(k) })
	maps.DeleteFunc(r.clocks, func(k key, _ *clock) bool { return of(k) })
}

// saidOf returns what the tests of a package said that have not ended, and after them the package.
func (r *Report) saidOf(pkg string) string {
	var all strings.Builder
	for _, k := range slices.SortedFunc(maps.Keys(r.said), func(a, b key) int { return strings.Compare(a[1], b[1]) }) {
		if k[0] == pkg && k[1] != "" {
			all.WriteString(r.said[k].String())
		}
	}
	if own := r.said[key{pkg, ""}]; own != nil {
		all.WriteString(own.String())
	}
	return all.String()
}

// running returns the tests of a package that have begun and have not ended.
func (r *Report) running(pkg string) []string {
	var out []string
	for k, state := range r.state {
		if k[0] == pkg && state != "pause" && !strings.Contains(k[1], "/") {
			out = append(out, k[1])
		}
	}
	slices.Sort(out)
	return out
}

const dataRace = "a data race"

// neverAgain returns why a test that said this is not tried again: what it found does not come and go, or one time is enough to know of it. Which test has a data race is not certain: what the race
// detector says of it may stand in the lines of another one.
func (p *process) neverAgain(said string) string {
	switch {
	case p.raced:
		return dataRace
	case strings.Contains(said, testneeds.NotThere):
		return "left out"
	}
	return ""
}

// cause is a line that t.Error and its kin wrote, or the beginning of a panic's; logged lines look the same.
var cause = regexp.MustCompile(`^ *(\w+\.go:\d+: |panic: |fatal error: |signal: )`)

// death is what a process says that dies, or go test of one that was killed.
var death = regexp.MustCompile(`(?m)^(panic|fatal error|signal): `)

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
	_, tier, ok := strings.Cut(said, testneeds.OtherTier)
	if ok {
		r.other[reason(tier)]++
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
	line := fmt.Sprintf("ok  \t%s\t%.3fs", e.Package, e.Elapsed)
	if said := r.said[key{e.Package, ""}]; said != nil && strings.Contains(said.String(), "(cached)") {
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
		fmt.Fprintf(r.out, "left out were %s; `make test-all` has everything\n", counted(sum))
	}
	if len(r.elsewhere) > 0 {
		fmt.Fprintf(r.out, "about other machines and users than this are %s\n", counted(r.elsewhere))
	}
	if len(r.other) > 0 {
		fmt.Fprintf(r.out, "of another tier than this are %s\n", counted(r.other))
	}
	for _, test := range slices.Sorted(maps.Keys(r.silent)) {
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
