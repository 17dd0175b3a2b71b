package lineedit

import (
	"slices"
	"unicode"
)

// entry is what is being typed.
type entry struct {
	text   []rune
	pos    int // of the cursor, in runes
	secret bool

	at     int    // the history's entry that is shown; its length for the new one
	own    []rune // the new one while another is shown
	search *search
}

// shown is what a person may see of it.
func (e *entry) shown() string {
	if e.secret {
		return ""
	}
	return string(e.text)
}

func (e *entry) insert(text []rune) {
	e.text = slices.Insert(e.text, e.pos, text...)
	e.pos += len(text)
}

// cut takes the text from one place to another away and returns it.
func (e *entry) cut(from, to int) []rune {
	from, to = max(0, min(from, to)), min(len(e.text), max(from, to))
	gone := slices.Clone(e.text[from:to])
	e.text = slices.Delete(e.text, from, to)
	e.pos = from
	return gone
}

// back is the beginning of the character before the cursor, with the marks that are shown on it.
func (e *entry) back() int {
	at := e.pos
	for at > 0 {
		at--
		if runeWidth(e.text[at]) > 0 || e.text[at] == '\n' {
			break
		}
	}
	return at
}

// forth is the end of the character after the cursor.
func (e *entry) forth() int {
	at := e.pos
	if at < len(e.text) {
		at++
	}
	for at < len(e.text) && runeWidth(e.text[at]) == 0 && e.text[at] != '\n' {
		at++
	}
	return at
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

func (e *entry) wordBack() int {
	at := e.pos
	for at > 0 && !wordRune(e.text[at-1]) {
		at--
	}
	for at > 0 && wordRune(e.text[at-1]) {
		at--
	}
	return at
}

func (e *entry) wordForth() int {
	at := e.pos
	for at < len(e.text) && !wordRune(e.text[at]) {
		at++
	}
	for at < len(e.text) && wordRune(e.text[at]) {
		at++
	}
	return at
}

// lineStart is where the line that the cursor is in begins, lineEnd where it ends.
func (e *entry) lineStart() int {
	at := e.pos
	for at > 0 && e.text[at-1] != '\n' {
		at--
	}
	return at
}

func (e *entry) lineEnd() int {
	at := e.pos
	for at < len(e.text) && e.text[at] != '\n' {
		at++
	}
	return at
}

// transpose exchanges the characters before and after the cursor.
func (e *entry) transpose() {
	if e.pos == len(e.text) && e.pos > 1 {
		e.pos--
	}
	if e.pos == 0 || e.pos == len(e.text) {
		return
	}
	e.text[e.pos-1], e.text[e.pos] = e.text[e.pos], e.text[e.pos-1]
	e.pos++
}

// line moves the cursor by a line, and says whether there is one.
func (e *entry) line(down bool) bool {
	column := e.pos - e.lineStart()
	if down {
		if e.lineEnd() == len(e.text) {
			return false
		}
		e.pos = e.lineEnd() + 1
	} else {
		if e.lineStart() == 0 {
			return false
		}
		e.pos = e.lineStart() - 1
		e.pos = e.lineStart()
	}
	e.pos = min(e.pos+column, e.lineEnd())
	return true
}

// recall shows another entry of the history.
func (e *entry) recall(h *History, at int) bool {
	if at < 0 || at > h.len() || at == e.at {
		return false
	}
	if e.at == h.len() {
		e.own = e.text
	}
	e.at = at
	if at == h.len() {
		e.text = e.own
	} else {
		e.text = []rune(h.entry(at))
	}
	e.pos = len(e.text)
	return true
}
