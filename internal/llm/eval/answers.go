package eval

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cove/internal/llm/agreement"
)

// said judges the words of an answer.
func (c Check) said(answer string) CheckResult {
	var r CheckResult
	switch c.Kind {
	case CheckEquals:
		r.Right = plain(answer) == plain(c.Text)
		r.Why = fmt.Sprintf("the answer is not %q", c.Text)
	case CheckNumber:
		r.Right = slices.ContainsFunc(agreement.Numbers(answer), func(n float64) bool { return near(n, c.Number, c.Tolerance) })
		r.Why = fmt.Sprintf("the answer has no number within %g of %g", c.Tolerance, c.Number)
	case CheckContains:
		r.Right = true
		for _, text := range c.Texts {
			if !strings.Contains(answer, text) {
				return CheckResult{Why: fmt.Sprintf("the answer does not have %q", text)}
			}
		}
	case CheckRegex:
		found, err := regexp.MatchString(c.Text, answer) // it was compiled once when the task was read
		r.Right = err == nil && found
		r.Why = fmt.Sprintf("the answer has nothing that %q describes", c.Text)
	case CheckValues:
		return c.values(answer)
	}
	return r
}

// named finds where @NAME[VALUE] begins. The name may have letters and digits, and what joins them.
var named = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`@([\w.%/-]+)[ \t]*\[`) })

// longestValue bounds a value in an answer, in bytes.
const longestValue = 10_000

// valuesIn are the values that an answer gives to names, the last for each: up to the bracket that closes the first, and up to the first that closes any, as DABench's
// own evaluation reads them. Its labels have both forms.
func valuesIn(answer string) map[string][]string {
	found := map[string][]string{}
	for _, m := range named().FindAllStringSubmatchIndex(answer, -1) {
		rest := answer[m[1]:min(len(answer), m[1]+longestValue)]
		depth, values := 1, []string(nil)
		for i, c := range rest {
			switch c {
			case '[':
				depth++
			case ']':
				if depth--; depth == 0 || len(values) == 0 {
					values = append(values, strings.TrimSpace(rest[:i]))
				}
			}
			if depth == 0 {
				break
			}
		}
		if len(values) > 0 {
			found[answer[m[2]:m[3]]] = values
		}
	}
	return found
}

func (c Check) values(answer string) CheckResult {
	found := valuesIn(answer)
	for _, name := range slices.Sorted(maps.Keys(c.Values)) {
		want := strings.TrimSpace(c.Values[name])
		got, ok := found[name]
		if !ok {
			return CheckResult{Why: "the answer has no @" + name + "[...]"}
		}
		if !slices.ContainsFunc(got, func(text string) bool { return sameValue(text, want, c.Tolerance) }) {
			return CheckResult{Why: fmt.Sprintf("@%s is %q and should be %q", name, bounded(got[0], 200), want)}
		}
	}
	return CheckResult{Right: true}
}

func sameValue(got, want string, tolerance float64) bool {
	a, errA := strconv.ParseFloat(got, 64)
	b, errB := strconv.ParseFloat(want, 64)
	return got == want || errA == nil && errB == nil && near(a, b, tolerance)
}

// near says whether a number is another within a tolerance, with room for how numbers are written.
func near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance+1e-9*math.Max(math.Abs(a), math.Abs(b))
}

// plain is a text without the space, the marks of Markdown and the full stop that models put around short answers.
func plain(text string) string {
	const marks = "*`\"'_ \n\r\t"
	return strings.Join(strings.Fields(strings.TrimRight(strings.TrimLeft(text, marks), marks+".")), " ")
}
