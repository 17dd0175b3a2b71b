// Package agreement finds out which of several answers to one question say the same.
package agreement

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Numbers of different answers are the same within this part of them: one may be rounded.
const tolerance = 0.005

// number finds a number with or without commas between thousands. A hyphen after a letter or digit is none of its sign.
var number = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[^\w.])([-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?)`)
})

// mostNumbers bounds the numbers of an answer that count.
const mostNumbers = 50

// Numbers returns the first 50 numbers of a text, as it has them.
func Numbers(text string) []float64 {
	text = strings.NewReplacer("−", "-", "\u00a0", " ", "\u202f", " ").Replace(text)
	var out []float64
	for _, m := range number().FindAllStringSubmatch(text, mostNumbers) {
		if n, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// Groups puts answers together that say the same, by their places: the largest group first, and of those with one size the one whose first answer comes first. Answers say the same where the numbers
// of one, those of the question apart, are among those of the other, or, where neither has a number, where their words are the same. An answer without a word is in a group of its own.
func Groups(question string, answers []string) [][]int {
	known := Numbers(question)
	var groups [][]int
	var first []said // of each group
	for at, answer := range answers {
		s := read(answer, known)
		place := slices.IndexFunc(first, s.same)
		if place < 0 {
			groups, first = append(groups, []int{at}), append(first, s)
			continue
		}
		groups[place] = append(groups[place], at)
	}
	slices.SortStableFunc(groups, func(a, b []int) int { return len(b) - len(a) })
	return groups
}

// said is what of an answer is compared.
type said struct {
	numbers []float64
	words   string
}

func read(answer string, known []float64) said {
	s := said{words: strings.Join(strings.FieldsFunc(strings.ToLower(answer), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }), " ")}
	for _, n := range Numbers(answer) {
		if !slices.Contains(known, n) {
			s.numbers = append(s.numbers, n)
		}
	}
	return s
}

func (s said) same(o said) bool {
	if len(s.numbers) == 0 || len(o.numbers) == 0 {
		return len(s.numbers) == len(o.numbers) && s.words != "" && s.words == o.words
	}
	few, many := s.numbers, o.numbers
	if len(few) > len(many) {
		few, many = many, few
	}
	return !slices.ContainsFunc(few, func(a float64) bool {
		return !slices.ContainsFunc(many, func(b float64) bool { return math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b)) })
	})
}
