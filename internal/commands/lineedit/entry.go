package lineedit

import (
	"slices"
	"strings"
	"unicode"

	"cove/internal/commands/terminal"
)

// entry is what is being typed.
type entry struct {
	text   []rune
	pos    int // of the cursor, in runes
	secret bool

	at     int    // the history's entry that is shown; its length for the new one
	own    []rune // the new one while another is shown
	stem   string // what the entries begin with that the arrow keys bring: what was before the cursor when the first of them was pressed
	search *search

	past   []former // what undo goes back to, the oldest first
	typing bool     // the last change was typed text, which is undone with what is typed after it
}

// former is what an entry was before a change.
type former struct {
	text []rune
	pos  int
}

// undoable bounds how many changes of an entry can be undone.
const undoable = 100

// remember has undo come back to the entry as it is now.
func (e *entry) remember(typing bool) {
	if typing && e.typing {
		return
	}
	e.typing = typing
	e.past = append(e.past, former{slices.Clone(e.text), e.pos})
	e.past = e.past[max(0, len(e.past)-undoable):]
}

func (e *entry) undo() {
	e.typing = false
	if n := len(e.past); n > 0 {
		e.text, e.pos, e.past = e.past[n-1].text, e.past[n-1].pos, e.past[:n-1]
	}
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
		if terminal.RuneWidth(e.text[at]) > 0 || e.text[at] == '\n' {
			break
		}
	}
	return at
}

// outdent is where what Backspace takes away begins: within the indentation of a line that is a level, else a character.
func (e *entry) outdent() int {
	start := e.lineStart()
	before := e.text[start:e.pos]
	if len(before) == 0 || len(before)%terminal.TabWidth != 0 {
		return e.back()
	}
	for _, r := range before {
		if r != ' ' {
			return e.back()
		}
	}
	return e.pos - terminal.TabWidth
}

// forth is the end of the character after the cursor.
func (e *entry) forth() int {
	at := e.pos
	if at < len(e.text) {
		at++
	}
	for at < len(e.text) && terminal.RuneWidth(e.text[at]) == 0 && e.text[at] != '\n' {
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

// step shows the entry of the history before or after the one that is shown; with stem the nearest that begins with what was typed.
func (e *entry) step(h *History, by int, stem bool) {
	if e.at == h.len() {
		e.stem = string(e.text[:e.pos])
	}
	at := e.at + by
	for stem && at >= 0 && at < h.len() && !strings.HasPrefix(h.entry(at), e.stem) {
		at += by
	}
	e.recall(h, at)
}

// offer is what the newest entry of the history that begins with this one has after it in the same line; nothing where the cursor is elsewhere than at the end.
func (e *entry) offer(h *History) []rune {
	text := string(e.text)
	if e.secret || e.pos != len(e.text) || strings.TrimSpace(text) == "" {
		return nil
	}
	for at := h.len() - 1; at >= 0; at-- {
		if rest, ok := strings.CutPrefix(h.entry(at), text); ok && rest != "" {
			line, _, _ := strings.Cut(rest, "\n")
			return []rune(line)
		}
	}
	return nil
}

// recall shows another entry of the history.
func (e *entry) recall(h *History, at int) bool {
	if at < 0 || at > h.len() || at == e.at {
		return false
	}
	if e.at == h.len() {
		e.own = e.text
	}
	e.at, e.past, e.typing = at, nil, false
	if at == h.len() {
		e.text = e.own
	} else {
		e.text = []rune(h.entry(at))
	}
	e.pos = len(e.text)
	return true
}
