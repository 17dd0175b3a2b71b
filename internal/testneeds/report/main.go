// Command report runs `go test` with its arguments, prints what that prints, and says behind each package what it left out:
//
//	ok  	cove/internal/store	2.1s	left out 7: PostgreSQL 6, root 1
//
// It ends with the slowest tests, since CI has a limit, and with why tests failed.
// It fails when go test fails, when everything was asked for (COVE_TEST=all) and something was left out, when a test was skipped without a reason
// that package testneeds gave, and when a test touched the data folder that the environment names, which stands in for the user's own.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"cove/internal/testneeds"
)

func main() {
	code, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		code = 1
	}
	os.Exit(code)
}

func run(args []string, out io.Writer) (code int, err error) {
	dir, err := os.MkdirTemp("", "cove-user-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	user := filepath.Join(dir, "data")
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Env = append(os.Environ(), "COVE_HOME="+user)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	r := NewReport(out)
	readErr := r.Read(events)
	if err := cmd.Wait(); err != nil {
		code = 1
	}
	if readErr != nil {
		return 0, readErr
	}
	if !r.Summary(os.Getenv(testneeds.Variable) == "all") {
		code = 1
	}
	if touched, _ := os.ReadDir(dir); len(touched) > 0 {
		fmt.Fprintln(out, "FAIL: a test touched the user's data folder, which COVE_HOME named; testneeds.Config has one for tests")
		code = 1
	}
	return code, nil
}

// Tests that took slow seconds or more are listed, mostSlow of them.
const (
	slow     = 30
	mostSlow = 15
)

// event is a line of go test -json; see `go doc test2json`.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

// Report is what tests did, package by package.
type Report struct {
	out       io.Writer
	said      map[[2]string]*strings.Builder // what a test said, until it is known whether anybody wants to read it
	left      map[string]map[string]int      // package, reason: how many tests
	elsewhere map[string]int
	silent    []string // tests that were skipped for no reason that testneeds knows
	slow      []slowTest
	failed    []string // tests with the lines in which they say why, which may be far from each other in what they print
}

// slowTest is a test and its seconds, without those in which it waited for its turn.
type slowTest struct {
	name    string
	seconds float64
}

// NewReport returns one that writes to out.
func NewReport(out io.Writer) *Report {
	return &Report{out: out, said: map[[2]string]*strings.Builder{}, left: map[string]map[string]int{}, elsewhere: map[string]int{}}
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
	case "output":
		if strings.HasPrefix(e.Output, "=== ") {
			return // run, pause, cont
		}
		if e.Test == "" {
			r.leaves(e.Package, e.Output)
		}
		said.WriteString(e.Output)
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "fail":
		fmt.Fprint(r.out, said)
		if e.Test != "" {
			r.failed = append(r.failed, "FAIL: "+e.Package+" "+e.Test+"\n"+causes(said.String()))
		}
		delete(r.said, key)
	case "skip", "pass":
		if e.Test == "" {
			r.passed(e)
			break
		}
		if e.Action == "skip" && !r.leaves(e.Package, said.String()) {
			r.silent = append(r.silent, e.Package+" "+e.Test)
		}
		delete(r.said, key)
	}
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
	_, where, ok := strings.Cut(said, testneeds.Elsewhere)
	if ok {
		r.elsewhere[reason(where)]++
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
	good := true
	slices.SortFunc(r.slow, func(a, b slowTest) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, test := range r.slow[:min(len(r.slow), mostSlow)] {
		fmt.Fprintf(r.out, "slow: %s %.0fs\n", test.name, test.seconds)
	}
	for _, test := range r.failed {
		fmt.Fprint(r.out, test)
	}
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
	for _, test := range r.silent {
		fmt.Fprintf(r.out, "FAIL: %s was skipped and did not say by package testneeds why\n", test)
		good = false
	}
	return good
}
