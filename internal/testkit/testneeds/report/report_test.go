package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// TestReport wants what go test says to be passed on, what was left out to be counted, and what was skipped in silence to be a failure.
func TestReport(t *testing.T) {
	t.Parallel()
	const skipped = `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: left out: PostgreSQL (COVE_TEST=all asks for it)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
`
	const elsewhere = `{"Action":"output","Package":"p","Test":"TestB","Output":"    a_test.go:1: elsewhere: make cgroup2 (this is version 1)\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
`
	const late = `{"Action":"output","Package":"p","Test":"TestJ","Output":"    a_test.go:1: other tier: full (make test-all runs it)\n"}
{"Action":"skip","Package":"p","Test":"TestJ"}
`
	const passed = `{"Action":"output","Package":"p","Output":"PASS\n"}` + "\n" + `{"Action":"pass","Package":"p","Elapsed":1.5}` + "\n"
	const begun = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestK"}
`
	const killed = `{"Action":"output","Package":"p","Output":"signal: killed\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`
	const dead = "    its process ended before its tests did; the last was TestK\n"
	const whole = `{"Action":"output","Package":"p","Output":"left out: everything: sandboxes (COVE_TEST=all asks for it)\n"}` + "\n" + `{"Action":"pass","Package":"p","Elapsed":1.5}` + "\n"
	for name, c := range map[string]struct {
		events string
		all    bool
		want   string
		good   bool
	}{
		"all is well": {passed, true, "ok  \tp\t1.500s\nnothing was left out\n", true},
		"left out": {skipped + skipped + whole, false,
			"ok  \tp\t1.500s\tleft out 3: PostgreSQL 2, everything: sandboxes 1\nleft out were 3: PostgreSQL 2, everything: sandboxes 1; `make test-all` has everything\n", true},
		"asked for": {skipped + passed, true, "ok  \tp\t1.500s\tleft out 1: PostgreSQL 1\nFAIL: everything was asked for, and left out were 1: PostgreSQL 1\n", false},
		"elsewhere": {elsewhere + passed, true, "ok  \tp\t1.500s\nnothing was left out\nabout other machines and users than this are 1: make cgroup2 1\n", true},
		"parallel with a slot": {begun + `{"Action":"output","Package":"p","Test":"TestK","Output":"    k_test.go:1: came: a slot after 0.1s\n"}
{"Action":"run","Package":"p","Test":"TestK/one"}
{"Action":"pause","Package":"p","Test":"TestK/one"}
{"Action":"pass","Package":"p","Test":"TestK"}
{"Action":"pass","Package":"p","Test":"TestK/one"}
` + passed, true, "ok  \tp\t1.500s\nFAIL: p TestK/one (not tried again: it may hang each time)\n" +
			"    it is parallel, and so waits for tests that may wait for the slot of TestK; see testneeds.TakeSlot\nnothing was left out\n", false},
		"parallel without a slot": {begun + `{"Action":"run","Package":"p","Test":"TestK/one"}
{"Action":"pause","Package":"p","Test":"TestK/one"}
{"Action":"output","Package":"p","Test":"TestK/one","Output":"    k_test.go:1: came: a slot after 0.1s\n"}
{"Action":"pass","Package":"p","Test":"TestK"}
{"Action":"pass","Package":"p","Test":"TestK/one"}
` + passed, true, "ok  \tp\t1.500s\nnothing was left out\n", true},
		"other tier": {late + passed, true, "ok  \tp\t1.500s\nnothing was left out\nof another tier than this are 1: full 1\n", true},
		"in silence": {`{"Action":"skip","Package":"p","Test":"TestC"}` + "\n" + passed, false,
			"ok  \tp\t1.500s\nnothing was left out\nFAIL: p TestC was skipped and did not say by package testneeds why\n", false},
		"a failure is shown": {`{"Action":"output","Package":"p","Test":"TestD","Output":"=== RUN   TestD\n"}
{"Action":"output","Package":"p","Test":"TestD/part","Output":"    d_test.go:7: it is wrong\n"}
{"Action":"fail","Package":"p","Test":"TestD/part"}
{"Action":"output","Package":"p","Test":"TestD","Output":"        and this is the log\n"}
{"Action":"fail","Package":"p","Test":"TestD"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`, false, "    d_test.go:7: it is wrong\n        and this is the log\nFAIL\nFAIL\tp\t0.1s\nFAIL: p TestD\n    d_test.go:7: it is wrong\nnothing was left out\n", false},
		"slow ones": {`{"Action":"pass","Package":"p","Test":"TestE","Elapsed":31.2}
{"Action":"pass","Package":"p","Test":"TestF","Elapsed":90}
{"Action":"pass","Package":"p","Test":"TestF/part","Elapsed":89}
{"Action":"pass","Package":"p","Test":"TestG","Elapsed":29}
` + passed, true, "ok  \tp\t1.500s\nslow: p TestF 90s\nslow: p TestE 31s\nnothing was left out\n", true},
		"has no tests": {`{"Action":"start","Package":"p"}` + "\n" + `{"Action":"skip","Package":"p"}` + "\n", true, "nothing was left out\n", true},
		"killed between tests": {begun + `{"Action":"pass","Package":"p","Test":"TestK"}` + "\n" + killed, false,
			"signal: killed\nFAIL\tp\t0.1s\nFAIL: p\n" + dead + "    signal: killed\nnothing was left out\n", false},
		"killed while tests wait": {begun + `{"Action":"pause","Package":"p","Test":"TestK"}` + "\n" + killed, false,
			"signal: killed\nFAIL\tp\t0.1s\nFAIL: p\n" + dead + "    signal: killed\nnothing was left out\n", false},
		"ends with code 0 after a test": {begun + `{"Action":"pass","Package":"p","Test":"TestK"}` + "\n" + `{"Action":"pass","Package":"p"}` + "\n", false, "FAIL: p\n" + dead + "nothing was left out\n", false},
		"ends in the middle":            {`{"Action":"start","Package":"p"}` + "\n", false, "FAIL: p\n    its process ended before its tests began\nnothing was left out\n", false},
		"a race and no failure": {begun + `{"Action":"output","Package":"p","Test":"TestK","Output":"WARNING: DATA RACE\n"}
{"Action":"pass","Package":"p","Test":"TestK"}
` + passed, false, "ok  \tp\t1.500s\nFAIL: p (not tried again: a data race)\nnothing was left out\n", false},
		"what is not JSON": {"out of memory\n" + passed, false, "out of memory\nok  \tp\t1.500s\nnothing was left out\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			r := NewReport(&out)
			if err := r.Read(strings.NewReader(c.events)); err != nil {
				t.Fatal(err)
			}
			if good := r.Summary(c.all); good != c.good || out.String() != c.want {
				t.Errorf("%v:\n%s\nwant %v:\n%s", good, out.String(), c.good, c.want)
			}
		})
	}
}

// TestTries runs tests of which some fail, by themselves, by taking their process with them, by chance or each time.
func TestTries(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	const once = `package p
import ("os"; "syscall"; "testing"; "time")
var _, _ = time.Second, syscall.Exit
func once(t *testing.T, name string, fail func()) {
	if _, err := os.Stat(name); err != nil {
		os.WriteFile(name, nil, 0o600)
		fail()
	}
}
func TestGood(t *testing.T) { t.Parallel() }
`
	const last = "\nfunc TestLast(t *testing.T) {}\n" // which does not begin when the process ends before
	for name, c := range map[string]struct {
		code      string
		flags     []string
		all       bool
		limit     time.Duration
		exit      int
		want, not []string // in what is printed
	}{
		"all pass": {code: once, not: []string{"again", "FLAKY", "FAIL"}},
		"fails once": {code: once + `func TestA(t *testing.T) { t.Run("part", func(t *testing.T) { once(t, "a", func() { t.Error("by chance") }) }) }`,
			want: []string{"again, alone: p TestA (try 2)\n", "FLAKY: p TestA (2 tries)\n    p_test.go:11: by chance\n"}, not: []string{"\nFAIL: ", "try 3"}},
		"fails twice": {code: once + `func TestA(t *testing.T) { once(t, "a", func() { t.Fatal("first") }); once(t, "b", func() { t.Fatal("second") }) }`,
			want: []string{"FLAKY: p TestA (3 tries)\n    p_test.go:11: first\n"}},
		"fails always": {code: once + `func TestA(t *testing.T) { t.Error("wrong") }`, exit: 1,
			want: []string{"again, alone: p TestA (try 3)\n", "FAIL: p TestA (3 tries)\n    p_test.go:11: wrong\n"}, not: []string{"FLAKY"}},
		"panics once": {code: once + `func TestA(t *testing.T) { once(t, "a", func() { panic("boo") }) }` + last,
			want: []string{"p ended early; its other tests go on\n", "FLAKY: p TestA (2 tries)\n    panic: boo"}, not: []string{"\nFAIL: "}},
		"panics in a goroutine": {code: once + `func TestA(t *testing.T) { once(t, "a", func() { go panic("boo"); select {} }) }` + last,
			want: []string{"FLAKY: p TestA (2 tries)\n    its process ended before it\n    panic: boo"}, not: []string{"\nFAIL: "}},
		"panics always": {code: once + `func TestA(t *testing.T) { panic("boo") }` + last, exit: 1,
			want: []string{"FAIL: p TestA (3 tries)\n    panic: boo"}, not: []string{"FLAKY", "p TestLast", "p TestGood"}},
		"a later one fails, too": {code: once + `func TestA(t *testing.T) { panic("boo") }
func TestB(t *testing.T) { t.Error("later") }`, exit: 1, want: []string{"FAIL: p TestA (3 tries)\n", "FAIL: p TestB (3 tries)\n    p_test.go:12: later\n"}},
		"kills its process": {code: once + `func TestA(t *testing.T) { once(t, "a", func() { p, _ := os.FindProcess(os.Getpid()); p.Kill(); select {} }) }` + last,
			want: []string{"FLAKY: p TestA (2 tries)\n    its process ended before it\n"}, not: []string{"\nFAIL: "}},
		"hangs": {code: once + `func TestA(t *testing.T) { once(t, "a", func() { <-make(chan int) }) }` + last + "\nfunc TestMain(m *testing.M) { c := make(chan int); go func() { <-c }(); m.Run() }",
			flags: []string{"-timeout=2s"}, want: []string{"FLAKY: p TestA (2 tries)\n    its process ended before it\n    panic: test timed out after 2s\n"}, not: []string{"\nFAIL: "}},
		"runs too long": {code: once + `func TestA(t *testing.T) { once(t, "a", func() { select {} }) }
func TestWaits(t *testing.T) { t.Parallel(); once(t, "b", func() { select {} }) }` + last + "\nfunc TestMain(m *testing.M) { c := make(chan int); go func() { <-c }(); m.Run() }",
			limit: 2 * time.Second, want: []string{"goroutine ", "FLAKY: p TestA (2 tries)\n    TestA ran for longer than 2s and did not end\n", "FLAKY: p TestWaits (2 tries)\n    TestWaits ran for longer than 2s and did not end\n"},
			not: []string{"\nFAIL: "}},
		"takes others along": {code: once + `func TestA(t *testing.T) { t.Parallel(); once(t, "a", func() { for { time.Sleep(time.Second) } }) }
func TestLong(t *testing.T) { t.Parallel(); for range 12 { t.Run("part", func(t *testing.T) { time.Sleep(500 * time.Millisecond) }) } }`, flags: []string{"-parallel=4"},
			limit: 4 * time.Second, want: []string{"FLAKY: p TestA (2 tries)\n"}, not: []string{"\nFAIL: ", "p TestLong"}},
		"has a race": {code: once + `func TestA(t *testing.T) { once(t, "a", func() { t.Error("WARNING: DATA RACE") }) }`, exit: 1,
			want: []string{"FAIL: p TestA (not tried again: a data race)\n"}, not: []string{"again, alone", "FLAKY"}},
		"has a race in the second try": {code: once + `func TestA(t *testing.T) { once(t, "a", func() { t.Fatal("first") }); once(t, "b", func() { t.Log("WARNING: DATA RACE") }) }`, exit: 1,
			want: []string{"FAIL: p TestA (2 tries; not tried again: a data race)\n"}, not: []string{"try 3", "FLAKY"}},
		"has a race in a part": {code: once + `func TestA(t *testing.T) { t.Run("part", func(t *testing.T) { once(t, "a", func() { println("WARNING: DATA RACE"); t.Error("race detected") }) }) }`, exit: 1,
			want: []string{"FAIL: p TestA (not tried again: a data race)\n"}, not: []string{"again, alone", "FLAKY"}},
		"has a race after its tests": {code: once + `func TestA(t *testing.T) { once(t, "a", func() { t.Error("by chance") }) }
func TestMain(m *testing.M) { code := m.Run(); once(nil, "b", func() { println("WARNING: DATA RACE"); code = 66 }); os.Exit(code) }`, exit: 1,
			want: []string{"FLAKY: p TestA (2 tries)\n", "FAIL: p (not tried again: a data race)\n"}},
		"does not compile": {code: once + `func TestA(t *testing.T) { nothing }`, exit: 1,
			want: []string{"undefined: nothing", "FAIL: p (not tried again: it does not compile)\n"}, not: []string{"again, alone", "FLAKY"}},
		"is left out": {code: once + `func TestA(t *testing.T) { t.` + "Sk" + `ip("left out: Node.js (there is none)") }`, all: true, exit: 1,
			want: []string{"FAIL: everything was asked for, and left out were 1: Node.js 1\n"}, not: []string{"again, alone"}},
		"is asked for": {code: once + `func TestA(t *testing.T) { t.Fatal("Node.js is asked for and is not there: none") }`, all: true, exit: 1,
			want: []string{"FAIL: p TestA (not tried again: left out)\n"}, not: []string{"again, alone"}},
		"six fail by chance": {code: once + several(6, `once(t, name, func() { t.Error("x") })`), exit: 1,
			want: []string{"FLAKY: p Test0 (2 tries)\n", "FLAKY: p Test5 (2 tries)\n", "FAIL: 6 tests were flaky; more than 5 are too many\n"}},
		"five fail by chance": {code: once + several(5, `once(t, name, func() { t.Error("x") })`), want: []string{"FLAKY: p Test4 (2 tries)\n"}, not: []string{"\nFAIL: "}},
		"very many fail":      {code: once + several(13, `t.Error(name)`), exit: 1, want: []string{"FAIL: p Test0 (not tried again: 13 tests failed)\n"}, not: []string{"again, alone"}},
		"runs nothing":        {code: once, flags: []string{"-run=Nothing"}, not: []string{"again", "FLAKY", "FAIL"}},
		"does not begin once": {code: once + `func TestMain(m *testing.M) { once(nil, "a", func() { os.Exit(0) }); m.Run() }`,
			want: []string{"FLAKY: p (2 tries)\n    its process ended before its tests began\n"}, not: []string{"\nFAIL: "}},
		"never begins": {code: once + `func TestMain(m *testing.M) { os.Exit(0) }`, exit: 1, want: []string{"FAIL: p (3 tries)\n    its process ended before its tests began\n"}, not: []string{"FLAKY"}},
		"hangs before its tests": {code: once + `func TestMain(m *testing.M) { once(nil, "a", func() { time.Sleep(time.Hour) }); m.Run() }`, limit: 2 * time.Second,
			want: []string{"FLAKY: p (2 tries)\n    its process ended before its tests began\n    TestMain ran for longer than 12s and did not end\n"}, not: []string{"\nFAIL: "}},
		"ends with code 0 in a test each time": {code: once + `func TestA(t *testing.T) { syscall.Exit(0) }` + last, exit: 1,
			want: []string{"FAIL: p (3 tries)\n    its process ended before its tests did; the last was TestA\n"}, not: []string{"FLAKY"}},
		"ends with code 0 in a part": {code: once + `func TestA(t *testing.T) { t.Run("part", func(t *testing.T) { once(t, "a", func() { syscall.Exit(0) }) }) }` + last,
			want: []string{"FLAKY: p TestA (2 tries)\n    its process ended before it\n"}, not: []string{"\nFAIL: "}},
		"another fails in the second try": {code: once + `func TestA(t *testing.T) { once(t, "a", func() { syscall.Exit(0) }); t.Error("wrong") }` + last, exit: 1,
			want: []string{"FAIL: p (3 tries)\n    its process ended before its tests did; the last was TestA\n    TestA failed in try 2\n    p_test.go:11: wrong\n"}},
		"panics after a failure": {code: once + `func TestA(t *testing.T) { once(t, "a", func() { t.Error("x") }) }
func TestMain(m *testing.M) { if m.Run() > 0 { panic("boo") } }`,
			want: []string{"FLAKY: p TestA (2 tries)\n", "FLAKY: p (2 tries)\n    its process failed when its tests had ended\n    panic: boo"}, not: []string{"\nFAIL: "}},
		"leaks when it goes on": {code: once + `var leaks int
func TestA(t *testing.T) { once(t, "a", func() { panic("boo") }) }
func TestB(t *testing.T) { leaks = 1 }
func TestMain(m *testing.M) { m.Run(); os.Exit(leaks) }`, exit: 1, want: []string{"FLAKY: p TestA (2 tries)\n", "FAIL: p (3 tries)\n    its process failed when its tests had ended\n"}},
		"is left out in the second try": {code: once + `func TestA(t *testing.T) { t.` + "Sk" + `ip("left out: Node.js (there is none)") }
func TestB(t *testing.T) { t.` + "Sk" + `ip("why not") }
func TestMain(m *testing.M) { once(nil, "a", func() { os.Exit(0) }); m.Run() }`, all: true, exit: 1,
			want: []string{"FAIL: everything was asked for, and left out were 1: Node.js 1\n", "FAIL: p TestB was skipped and did not say by package testneeds why\n"}},
		"go test is killed": {code: once + `func TestA(t *testing.T) { once(t, "a", func() { t.Error("x") }) }
func TestB(t *testing.T) { once(t, "b", func() { time.Sleep(time.Second); syscall.Kill(os.Getppid(), syscall.SIGKILL) }) }`, exit: 1,
			want: []string{"FAIL: go test (not tried again: go test says no more)\n    signal: killed\n"}},
		"cannot begin once": {code: once + `func TestMain(m *testing.M) { once(nil, "a", func() { println("no room"); os.Exit(1) }); os.Exit(m.Run()) }`,
			want: []string{"FLAKY: p (2 tries)\n"}, not: []string{"\nFAIL: "}},
		"leaks each time": {code: once + `func TestMain(m *testing.M) { m.Run(); os.Exit(1) }`, exit: 1, want: []string{"FAIL: p (3 tries)\n"}},
		"is no package":   {code: once, flags: []string{"./nothing"}, exit: 1, want: []string{"FAIL: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, content := range map[string]string{"go.mod": "module p\n\ngo 1.26\n", "p_test.go": c.code} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out strings.Builder
			s := suite{dir: dir, out: &out, all: c.all, quickTimeout: c.limit, env: []string{"GOFLAGS=-mod=mod", "GOWORK=off"}}
			code, err := s.run(append(c.flags, "-vet=off", "."))
			if err != nil || code != c.exit {
				t.Errorf("exit code %d, %v", code, err)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing", want)
				}
			}
			for _, not := range c.not {
				if strings.Contains(out.String(), not) {
					t.Errorf("%q is there", not)
				}
			}
			if t.Failed() {
				t.Log(out.String())
			}
		})
	}
}

// several returns n tests with this body, in which name is the test's.
func several(n int, body string) string {
	var code strings.Builder
	for i := range n {
		fmt.Fprintf(&code, "func Test%d(t *testing.T) { name := %q; %s }\n", i, "file"+strconv.Itoa(i), body)
	}
	return code.String()
}

// TestFailFastIsRefused: with it, tests would be left out of a run that passes when the one that failed does so the next time.
func TestFailFastIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := (&suite{}).run([]string{"-failfast", "."}); err == nil {
		t.Error("-failfast was taken")
	}
}

// TestOverdue wants what runs for longer than it may to be found, and neither what waits nor what has ended.
func TestOverdue(t *testing.T) {
	t.Parallel()
	const begins = `{"Action":"start","Package":"p"}` + "\n" + `{"Action":"run","Package":"p","Test":"TestA"}` + "\n"
	says := func(line string) string {
		return fmt.Sprintf(`{"Action":"output","Package":"p","Test":"TestA","Output":"%s\n"}`, line) + "\n"
	}
	for name, c := range map[string]struct {
		events string
		after  time.Duration
		late   bool
	}{
		"quick":                     {begins, 31 * time.Second, true},
		"quick, in time":            {begins, 29 * time.Second, false},
		"paused":                    {begins + `{"Action":"pause","Package":"p","Test":"TestA"}`, time.Hour, false},
		"ended and not said to":     {begins + says("--- PASS: TestA (0.1s)"), 31 * time.Second, false},
		"waits for a slot":          {begins + says("    a_test.go:1: awaited: a slot"), time.Hour, false},
		"has a slot":                {begins + says("    a_test.go:1: came: a slot after 9.1s") + says("    a_test.go:1: timeout: 3m0s"), 4 * time.Minute, false},
		"has a slot, for long":      {begins + says("    a_test.go:1: came: a slot after 9.1s") + says("    a_test.go:1: timeout: 3m0s"), 5 * time.Minute, true},
		"TestMain":                  {`{"Action":"start","Package":"p"}`, 4 * time.Minute, true},
		"TestMain, in time":         {`{"Action":"start","Package":"p"}`, 2 * time.Minute, false},
		"TestMain after its tests":  {begins + says("--- PASS: TestA (0.1s)"), 4 * time.Minute, true},
		"TestMain beside its tests": {begins + says("    a_test.go:1: timeout: 10m0s"), 9 * time.Minute, false},
	} {
		r := NewReport(io.Discard)
		r.quickTimeout = testneeds.QuickTimeout
		for line := range strings.Lines(c.events) {
			var e event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			r.take(e)
		}
		r.counted += c.after
		if _, late := r.Overdue(); late != c.late {
			t.Errorf("%s: %v", name, late)
		}
	}
}
