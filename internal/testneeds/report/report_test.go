package main

import (
	"strings"
	"testing"
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
	const passed = `{"Action":"pass","Package":"p","Elapsed":1.5}` + "\n"
	const whole = `{"Action":"output","Package":"p","Output":"left out: everything: sandboxes (COVE_TEST=all asks for it)\n"}` + "\n" + passed
	for name, c := range map[string]struct {
		events string
		all    bool
		want   string
		good   bool
	}{
		"all is well": {passed, true, "ok  \tp\t1.500s\nnothing was left out\n", true},
		"left out": {skipped + skipped + whole, false,
			"ok  \tp\t1.500s\tleft out 3: PostgreSQL 2, everything: sandboxes 1\nleft out were 3: PostgreSQL 2, everything: sandboxes 1; `make test` has everything\n", true},
		"asked for": {skipped + passed, true, "ok  \tp\t1.500s\tleft out 1: PostgreSQL 1\nFAIL: everything was asked for, and left out were 1: PostgreSQL 1\n", false},
		"elsewhere": {elsewhere + passed, true, "ok  \tp\t1.500s\nnothing was left out\nabout other machines and users than this are 1: make cgroup2 1\n", true},
		"in silence": {`{"Action":"skip","Package":"p","Test":"TestC"}` + "\n" + passed, false,
			"ok  \tp\t1.500s\nnothing was left out\nFAIL: p TestC was skipped and did not say by package testneeds why\n", false},
		"a failure is shown": {`{"Action":"output","Package":"p","Test":"TestD","Output":"=== RUN   TestD\n"}
{"Action":"output","Package":"p","Test":"TestD","Output":"    d_test.go:7: it is wrong\n"}
{"Action":"output","Package":"p","Test":"TestD","Output":"        and this is the log\n"}
{"Action":"fail","Package":"p","Test":"TestD"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`, false, "    d_test.go:7: it is wrong\n        and this is the log\nFAIL\tp\t0.1s\nFAIL: p TestD\n    d_test.go:7: it is wrong\nnothing was left out\n", true},
		"slow ones": {`{"Action":"pass","Package":"p","Test":"TestE","Elapsed":31.2}
{"Action":"pass","Package":"p","Test":"TestF","Elapsed":90}
{"Action":"pass","Package":"p","Test":"TestF/part","Elapsed":89}
{"Action":"pass","Package":"p","Test":"TestG","Elapsed":29}
` + passed, true, "ok  \tp\t1.500s\nslow: p TestF 90s\nslow: p TestE 31s\nnothing was left out\n", true},
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
