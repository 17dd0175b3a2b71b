// Command report runs `go test` with its arguments, prints what that prints, and says after each package what it left out:
//
//	ok  	cove/internal/server/store	2.1s	left out 7: PostgreSQL 6, root 1
//
// A test that failed is run again by itself, when all others have ended, at most twice, and so is a package whose process ended early because of no test; one that then passes is flaky:
//
//	FLAKY: cove/e2e TestUpgrade (2 tries)
//	    upgrade_test.go:153: two servers instead of one
//
// The report ends with the slowest tests, since CI has a limit, with the flaky tests, and with why tests failed.
// It fails when a test failed each time, when more than mostFlaky tests were flaky, when all of a tier was asked for (COVE_TEST=landing, full or all) and something was left out,
// when a test was skipped without a reason that package testneeds gave, and when a test touched the data folder that the environment names, which stands in
// for the user's own.
//
// Flags of go test have the form -flag or -flag=value; the other arguments are packages.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"cove/internal/testkit/testneeds"
)

func main() {
	s := suite{out: os.Stdout, all: testneeds.AbsenceFails(), quickTimeout: testneeds.Allowed(testneeds.QuickTimeout)}
	code, err := s.run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		code = 1
	}
	os.Exit(code)
}

// suite is one call of report.
type suite struct {
	dir          string // in which go test runs; the current folder when empty
	out          io.Writer
	all          bool          // what is left out is a failure
	quickTimeout time.Duration // of tests that have not said another
	flags        []string
	env          []string // in addition to that of this process
	user         string   // stands in for the user's data folder
}

// run runs the tests that args name, and returns the exit code.
func (s *suite) run(args []string) (code int, err error) {
	dir, err := os.MkdirTemp("", "cove-user-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s.user = filepath.Join(dir, "data")
	var packages []string
	for _, arg := range args {
		if name, _ := flagOf(arg); name == "failfast" {
			return 0, errors.New("-failfast leaves tests out, of which nobody hears when the one that failed passes the next time")
		}
		if strings.HasPrefix(arg, "-") {
			s.flags = append(s.flags, arg)
		} else {
			packages = append(packages, arg)
		}
	}
	r := NewReport(s.out)
	if err := s.test(r, append(s.flags, packages...)); err != nil {
		return 0, err
	}
	if err := s.goOn(r); err != nil {
		return 0, err
	}
	if err := s.tryAgain(r); err != nil {
		return 0, err
	}
	if !r.Summary(s.all) {
		code = 1
	}
	if touched, _ := os.ReadDir(dir); len(touched) > 0 {
		fmt.Fprintln(s.out, "FAIL: a test touched the user's data folder, which COVE_HOME named; testneeds.Config has one for tests")
		code = 1
	}
	return code, nil
}

// test runs go test with these arguments and has r read what it says.
func (s *suite) test(r *Report, args []string) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), append(s.env, "COVE_HOME="+s.user)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	before := len(r.failures)
	r.quickTimeout = s.quickTimeout
	read := make(chan struct{})
	go s.watch(r, cmd.Process.Pid, read)
	readErr := r.Read(events)
	close(read)
	if err := cmd.Wait(); err != nil && readErr == nil && (len(r.failures) == before || cmd.ProcessState.ExitCode() != 1) { // with another code it may not have begun all packages
		r.failures = append(r.failures, failure{pkg: "go test", causes: "    " + err.Error() + "\n", final: "go test says no more"})
	}
	return readErr
}
