package bench

import (
	"strings"
	"testing"
)

// TestCheck holds cove's figures to those of its peers.
func TestCheck(t *testing.T) {
	t.Parallel()
	report := func(own, peer float64) *Report {
		r := &Report{Rows: []RowReport{{ID: "serve", Results: []Result{{Subject: coveServeID, Samples: []float64{own, own}}, {Subject: "gateway", Samples: []float64{peer}}}},
			{ID: "create", Results: []Result{{Subject: coveServeID, Samples: []float64{own}}, {Subject: "gateway", Unable: "it is not there"}}}}}
		r.compare()
		return r
	}
	for _, c := range []struct {
		own, peer float64
		good      bool
		want      string
	}{
		{14, 10, true, "check: cove-serve's serve is 1.40 times gateway's serve; it may be 1.50: good\n"},
		{16, 10, false, "check: cove-serve's serve is 1.60 times gateway's serve; it may be 1.50: TOO HIGH\n"},
		{16, 0, true, "check: cove-serve's serve beside gateway's serve: not measured\n"},
	} {
		var out strings.Builder
		if good := report(c.own, c.peer).Check(&out); good != c.good || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v beside %v: %v\n%s", c.own, c.peer, good, &out)
		}
		if want := "check: cove-serve's create beside gateway's create: not measured\n"; !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
}

// TestBoundsAreOfRows wants what is held to a bound to be measured by a row.
func TestBoundsAreOfRows(t *testing.T) {
	t.Parallel()
	measured := map[string]bool{}
	for _, row := range Rows() {
		for _, m := range row.Measures {
			measured[m.ID] = true
		}
	}
	for _, b := range bounds() {
		if !measured[b.figure.measure] || !measured[b.than.measure] {
			t.Errorf("no row measures %s or %s", b.figure, b.than)
		}
	}
}
