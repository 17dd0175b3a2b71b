package terminal

import (
	"strings"
)

// glyph is one character with its colours: the numbers of an SGR sequence, or "".
type glyph struct {
	r    rune
	look string
}

// glyphs are the characters of text, without those that a terminal would obey.
func glyphs(text, look string) []glyph {
	var out []glyph
	for _, r := range text {
		if r == '\n' || r == '\t' || !Control(r) && !direction(r) {
			out = append(out, glyph{r, look})
		}
	}
	return out
}

// coloured are the characters of text that has SGR sequences, and of escape sequences no others.
func coloured(text string) []glyph {
	var out []glyph
	look := ""
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		out = append(out, glyphs(before, look)...)
		if !found {
			return out
		}
		look, text, _ = strings.Cut(after, "m")
		if look == "0" {
			look = ""
		}
	}
}

// columnsOf is how many columns a row takes.
func columnsOf(row []glyph) int {
	n := 0
	for _, g := range row {
		n += RuneWidth(g.r)
	}
	return n
}

// String is a row as it is written to a terminal.
func rowString(row []glyph, colour bool) string {
	var b strings.Builder
	look := ""
	for _, g := range row {
		if colour && g.look != look {
			if look != "" {
				b.WriteString("\x1b[0m")
			}
			if g.look != "" {
				b.WriteString("\x1b[" + g.look + "m")
			}
			look = g.look
		}
		if g.r == '\t' {
			b.WriteString(strings.Repeat(" ", TabWidth))
			continue
		}
		b.WriteRune(g.r)
	}
	if look != "" {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// Punctuation that does not begin a row, and that does not end one.
const (
	closing = "，。、；：？！）」』】》〉”’…—·％%,.;:?!)]}"
	opening = "（「『【《〈“‘([{"
)

// breaks says whether a row may end between two characters.
func breaks(before, after rune) bool {
	switch {
	case before == ' ' || before == '\t':
		return true
	case RuneWidth(after) == 0 || strings.ContainsRune(closing, after) || strings.ContainsRune(opening, before):
		return false
	}
	return RuneWidth(before) == 2 || RuneWidth(after) == 2
}

// wrap divides text into rows of so many columns, at spaces and between characters of East Asian scripts, and within words where they have no room.
func wrap(text []glyph, columns int) [][]glyph {
	var rows [][]glyph
	start, used, last := 0, 0, 0 // last is where the present row may end; start: nowhere
	end := func(at, next int) {
		row := text[start:at]
		for len(row) > 0 && row[len(row)-1].r == ' ' {
			row = row[:len(row)-1]
		}
		rows = append(rows, row)
		start = next
		for start < len(text) && at == next && text[start].r == ' ' && start > 0 && text[start-1].r != '\n' {
			start++
		}
		last, used = start, 0
	}
	for i := 0; i < len(text); i++ {
		if i < start {
			continue
		}
		r := text[i].r
		if r == '\n' {
			end(i, i+1)
			continue
		}
		if i > start && breaks(text[i-1].r, r) {
			last = i
		}
		w := RuneWidth(r)
		if used+w > columns && i > start && r != ' ' {
			at := i
			if last > start {
				at = last
			}
			end(at, at)
			i = start - 1
			continue
		}
		used += w
	}
	if start < len(text) || len(rows) == 0 {
		end(len(text), len(text))
	}
	return rows
}

// Wrap divides a text without escape sequences into rows of at most so many columns, at spaces and between characters of East Asian scripts, and within words where
// they have no room.
func Wrap(text string, columns int) []string {
	var rows []string
	for _, row := range wrap(glyphs(text, ""), columns) {
		rows = append(rows, rowString(row, false))
	}
	return rows
}

// chop divides text into rows of so many columns, wherever they end.
func chop(text []glyph, columns int) [][]glyph {
	var rows [][]glyph
	start, used := 0, 0
	for i, g := range text {
		w := RuneWidth(g.r)
		if used+w > columns && i > start {
			rows = append(rows, text[start:i])
			start, used = i, 0
		}
		used += w
	}
	return append(rows, text[start:])
}
