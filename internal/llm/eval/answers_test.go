package eval

import "testing"

func TestAnswers(t *testing.T) {
	t.Parallel()
	number := func(n, tolerance float64) Check { return Check{Kind: CheckNumber, Number: n, Tolerance: tolerance} }
	equals := func(text string) Check { return Check{Kind: CheckEquals, Text: text} }
	values := func(pairs ...string) Check {
		c := Check{Kind: CheckValues, Values: map[string]string{}, Tolerance: valueTolerance}
		for i := 0; i < len(pairs); i += 2 {
			c.Values[pairs[i]] = pairs[i+1]
		}
		return c
	}
	for _, c := range []struct {
		check  Check
		answer string
		right  bool
	}{
		{number(1234.5, 0), "The total is **1,234.50** EUR in 2025.", true},
		{number(1234.5, 0.4), "1234.9", true},
		{number(1234.5, 0.3), "1234.9", false},
		{number(-3, 0), "It fell by −3 %.", true},
		{number(3, 0), "It fell by -3 %.", false},
		{number(2021, 0), "In 2020-2021.", true},
		{number(12, 0), "v12 and 1.12 and x_12", false},
		{number(2e-3, 0), "2e-3", true},
		{number(5, 0), "no number", false},
		{equals("North"), " **North**.\n", true},
		{equals("North sea"), "north sea", false},
		{equals("a b"), "`a  b`", true},
		{Check{Kind: CheckContains, Texts: []string{"a", "b"}}, "b a", true},
		{Check{Kind: CheckContains, Texts: []string{"a", "b"}}, "a", false},
		{Check{Kind: CheckRegex, Text: `(?i)\bsea\b`}, "The Sea", true},
		{Check{Kind: CheckRegex, Text: `^sea$`}, "seas", false},
		{values("mean_fare", "34.65"), "So: @mean_fare[34.650]", true},
		{values("mean_fare", "34.65"), "@mean_fare[34.66]", false},
		{values("mean_fare", "34.65", "n", "3"), "@mean_fare[34.65]", false},
		{values("list", "[1, 2]"), "@list[[1, 2]]", true},
		{values("list", "["), "@list[[]]", true}, // as a label of DABench has it
		{values("list", "[]"), "@list[[]]", true},
		{values("list", "1"), "@list[1", false},
		{values("is_normal", "yes"), "@is_normal[ yes ] @is_normal[yes]", true},
		{values("is_normal", "yes"), "@is_normal[yes] no: @is_normal[no]", false},
	} {
		if got := c.check.said(c.answer); got.Right != c.right {
			t.Errorf("%+v of %q is %+v", c.check, c.answer, got)
		}
	}
}
