package wheelfiles

import (
	"strings"
)

// Compact returns a name in lower case without separators, for comparing the names of modules with those of distributions.
func Compact(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// Primary returns the module by which people know a distribution: the one whose compact dotted name is most like the
// distribution's compact name, which is 1 - (edit distance / length of the longer). Ties go to the shorter, then to the first in the alphabet.
// Private modules (a part begins with an underscore) count only when there are no others. It is "" when there are no modules.
func Primary(distribution string, modules []string) string {
	best, bestLikeness, bestPrivate := "", -1.0, true
	for _, m := range modules {
		private := strings.HasPrefix(m, "_") || strings.Contains(m, "._")
		likeness := Likeness(distribution, m)
		switch {
		case best == "", bestPrivate && !private:
		case private && !bestPrivate, likeness < bestLikeness:
			continue
		case likeness == bestLikeness && (len(m) > len(best) || len(m) == len(best) && m > best):
			continue
		}
		best, bestLikeness, bestPrivate = m, likeness, private
	}
	return best
}

// Likeness says how alike a distribution's and a module's name are, from 0 to 1.
func Likeness(distribution, module string) float64 {
	a, b := Compact(distribution), Compact(module)
	longer := max(len(a), len(b))
	if longer == 0 {
		return 0
	}
	return 1 - float64(distance(a, b))/float64(longer)
}

func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
