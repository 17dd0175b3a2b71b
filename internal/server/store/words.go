package store

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	longestWord   = 64    // bytes; longer ones are found by their beginning
	mostWords     = 1_000 // of one text
	mostNumbers   = 200   // of which that many are numbers: tables are full of them, and each costs as much as a word
	mostQuestions = 16    // words of one query
	aroundMatch   = 200   // characters of a snippet
	beforeMatch   = 60    // of which this many come first
)

// run is a piece of a text without anything in it that parts words.
type run struct {
	text  string
	start int // bytes of the text before it
	// dense runs are of scripts without spaces: they are found by their characters and the pairs of them.
	dense bool
}

// runs yields the runs of a text until yield returns false. Letters, digits and the marks on them make words; everything else parts them.
func runs(text string, yield func(run) bool) {
	begin, dense := -1, false
	for i, c := range text {
		mark := unicode.IsMark(c)
		inside := mark || unicode.IsLetter(c) || unicode.IsNumber(c)
		packed := inside && isDense(c)
		if begin >= 0 && (!inside || !mark && packed != dense) {
			if !yield(run{text[begin:i], begin, dense}) {
				return
			}
			begin = -1
		}
		if inside && begin < 0 {
			begin, dense = i, packed
		}
	}
	if begin >= 0 {
		yield(run{text[begin:], begin, dense})
	}
}

// words yields the words of a text, and where they stand, until yield returns false.
func words(text string, yield func(key string, start int) bool) {
	runs(text, func(r run) bool {
		if !r.dense {
			return yield(fold(r.text), r.start)
		}
		for i, size := range characterSizes(r.text) {
			if !yield(fold(r.text[i:i+size]), r.start+i) {
				return false
			}
			if _, next := utf8.DecodeRuneInString(r.text[i+size:]); next > 0 && !yield(fold(r.text[i:i+size+next]), r.start+i) {
				return false
			}
		}
		return true
	})
}

// characterSizes yields where the characters of a text begin and how many bytes they have.
func characterSizes(text string) func(yield func(int, int) bool) {
	return func(yield func(int, int) bool) {
		for i, c := range text {
			if !yield(i, utf8.RuneLen(c)) {
				return
			}
		}
	}
}

func isDense(c rune) bool {
	return c >= 0x0E00 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// fold is a word without what writers do differently: letter case, width, ligatures, composed accents.
func fold(part string) string {
	key := part
	if !ascii(part) {
		key = norm.NFKC.String(part)
	}
	key = strings.ToLower(key)
	if len(key) > longestWord {
		key = cut(key, longestWord)
	}
	return key
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c >= utf8.RuneSelf }) < 0
}

// cut is the beginning of a text, at most n bytes of it, and whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// index returns the words that a text is found by, each once.
func index(text string) []string {
	seen := map[string]bool{}
	var out []string
	numbers := 0
	words(text, func(key string, _ int) bool {
		switch {
		case seen[key], isNumber(key) && numbers == mostNumbers:
			return true
		case isNumber(key):
			numbers++
		}
		seen[key] = true
		out = append(out, key)
		return len(out) < mostWords
	})
	return out
}

func isNumber(key string) bool {
	return strings.IndexFunc(key, func(c rune) bool { return !unicode.IsNumber(c) }) < 0
}

// question is what a query looks for: all of the whole words, and one that begins with start unless that is "".
type question struct {
	whole []string
	start string
}

func ask(query string) question {
	var q question
	runs(query, func(r run) bool {
		if q.start != "" {
			q.add(q.start)
			q.start = ""
		}
		if !r.dense {
			q.start = fold(r.text)
			return true
		}
		if utf8.RuneCountInString(r.text) == 1 {
			q.add(fold(r.text))
			return true
		}
		for i, size := range characterSizes(r.text) {
			if _, next := utf8.DecodeRuneInString(r.text[i+size:]); next > 0 {
				q.add(fold(r.text[i : i+size+next]))
			}
		}
		return true
	})
	return q
}

func (q *question) add(key string) {
	if !slices.Contains(q.whole, key) && len(q.whole) < mostQuestions {
		q.whole = append(q.whole, key)
	}
}

// matches says whether a word of a text is one that is looked for.
func (q question) matches(key string) bool {
	return q.start != "" && strings.HasPrefix(key, q.start) || slices.Contains(q.whole, key)
}

// snippet is the text around the first match in one line, at most aroundMatch characters of it.
func (q question) snippet(text string) string {
	at, _ := q.first(text)
	before := []rune(strings.Join(strings.Fields(tail(text[:at], 4*beforeMatch)), " "))
	if len(before) > 0 && endsInSpace(text[:at]) {
		before = append(before, ' ')
	}
	cutBefore := len(before) > beforeMatch
	before = before[max(0, len(before)-beforeMatch):]
	rest := []rune(strings.Join(strings.Fields(cut(text[at:], 4*aroundMatch)), " "))
	all := slices.Concat(before, rest)
	shown := wholeWords(all[:min(len(all), aroundMatch)], cutBefore, len(all) > aroundMatch)
	return strings.TrimSpace(string(shown))
}

// answerSnippet is the snippet of an answer as people read it, without the marks of Markdown; with them where the match is in what they hide, such as the address of a link.
func (q question) answerSnippet(text string) string {
	const around = 4 << 10 // bytes; a whole answer would be read for each place
	at, _ := q.first(text)
	near := tail(text[:at], around) + cut(text[at:], around)
	if plain := plainText(near); q.isIn(plain) {
		return q.snippet(plain)
	}
	return q.snippet(near)
}

func (q question) isIn(text string) bool {
	_, found := q.first(text)
	return found
}

// first is where the first match is in a text, or 0 and false.
func (q question) first(text string) (at int, found bool) {
	words(text, func(key string, start int) bool {
		if !q.matches(key) {
			return true
		}
		at, found = start, true
		return false
	})
	return at, found
}

func endsInSpace(s string) bool {
	c, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsSpace(c)
}

// tail is the end of a text, at most n bytes of it, and whole characters.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	from := len(s) - n
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return s[from:]
}
