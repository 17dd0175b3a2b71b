package names

import (
	"iter"
	"strconv"
	"strings"

	"cove/internal/python/deps/require"
)

func plain(name string) bool {
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// compact returns a name in lower case without separators: scikit_learn, scikit-learn and ScikitLearn have the same one.
func compact(name string) string {
	if plain(name) {
		return name
	}
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// alike yields the known projects with a compact name, and their ranks.
func alike(compactName string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for key, rest := range projectsText.after(projectsText.from(compactName)) {
			if key != compactName {
				return
			}
			if name, rank := project(key, rest); !yield(name, rank) {
				return
			}
		}
	}
}

// project reads a line of the projects: the compact name is the name unless that follows the rank.
func project(key, rest string) (name string, rank int) {
	number, name, spelled := strings.Cut(rest, "\t")
	if !spelled {
		name = key
	}
	rank, _ = strconv.Atoi(number)
	return name, rank
}

// Rank is a distribution's rank by downloads, 1 is the most; 0 is outside of the list of the top 15,000.
func Rank(distribution string) int {
	distribution = require.Normalize(distribution)
	for name, rank := range alike(compact(distribution)) {
		if name == distribution {
			return rank
		}
	}
	return 0
}

// What no name of the 15,000 has, by some distance: the longest has 55 letters, the most digits are 8, and 4 times digits follow letters or the
// other way round.
const (
	likelyLength = 64
	likelyDigits = 10
	likelyTurns  = 6
)

// Improbable says whether a name looks like data and not like a project's name: like a hash, a key or something encoded.
func Improbable(distribution string) bool {
	name := compact(distribution)
	digits, turns := 0, 0
	for i := range len(name) {
		digit := name[i] >= '0' && name[i] <= '9'
		if digit {
			digits++
		}
		if i > 0 && digit != (name[i-1] >= '0' && name[i-1] <= '9') {
			turns++
		}
	}
	return len(distribution) > likelyLength || digits > likelyDigits || turns > likelyTurns
}

const (
	popularFor = 5000 // a name is a slip only of the names of that many projects
	nearFor    = 1000 // and, when one of the two is short, of that many
	shortName  = 5    // names this short are one letter apart by chance
	tooShort   = 3    // and of these only two swapped letters count
)

// TypoOf returns the popular distribution that a name looks like a slip of, if any. Names of the list are no slips.
func TypoOf(distribution string) (popular string, ok bool) {
	distribution = require.Normalize(distribution)
	if distribution == "" || len(distribution) > longestName || Rank(distribution) != 0 {
		return "", false
	}
	whole := compact(distribution)
	best := 0
	consider := func(name string, rank, limit int) {
		if rank <= limit && (best == 0 || rank < best) {
			popular, best = name, rank
		}
	}
	for name, rank := range alike(whole) {
		consider(name, rank, popularFor)
	}
	for _, other := range rearranged(distribution) {
		for name, rank := range alike(other) {
			consider(name, rank, popularFor)
		}
	}
	for key, rest := range projectsText.near(whole, projectsStarts()) {
		limit := popularFor
		if min(len(key), len(whole)) <= shortName {
			limit = nearFor
		}
		name, rank := project(key, rest)
		if len(key) > tooShort || swapped(key, whole) {
			consider(name, rank, limit)
		}
	}
	return popular, best != 0
}

// rearranged returns the compact forms of a name with its words swapped, as in nose-python for python-nose.
func rearranged(distribution string) []string {
	words := strings.Split(distribution, "-")
	if len(words) < 2 {
		return nil
	}
	var out []string
	for i := range len(words) - 1 {
		w := append([]string(nil), words...)
		w[i], w[i+1] = w[i+1], w[i]
		out = append(out, strings.Join(w, ""))
	}
	return out
}

func swapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) - 1 {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}
