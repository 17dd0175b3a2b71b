package lineedit

import (
	"fmt"
	"io"
	"strings"

	"cove/internal/commands/terminal"
)

// A terminal that is told to marks what is pasted.
const (
	markPastes   = "\x1b[?2004h"
	unmarkPastes = "\x1b[?2004l"
	clearBelow   = "\x1b[J"
	clearAll     = "\x1b[H\x1b[2J"
)

// screen shows an entry, from the beginning of the row that the cursor was in.
type screen struct {
	out  io.Writer
	dumb bool
	size func() (columns, rows int)
	more string                     // the prompt of rows after a line's end
	look func(text string) []string // the SGR numbers of each rune of an entry, "" for none; nil: no colours

	drawn  layout // what is shown
	prompt string // of drawn
	text   string
	pos    int
	offer  string
	width  int // the terminal's when it was shown; of a dumb one, how many columns are in use
}

// layout is an entry in rows of a terminal.
type layout struct {
	rows        []string
	row, column int // the cursor's
}

// faint is the look of what is offered, in SGR's numbers.
const faint = "2"

// lay divides a prompt, a text and what is offered after it into rows. The cursor is before the rune at pos of the text.
func (s *screen) lay(prompt, text string, pos int, offer string, columns int) layout {
	var l layout
	var row strings.Builder
	var looks []string
	if s.look != nil {
		looks = s.look(text)
	}
	for range offer {
		looks = append(looks, faint)
	}
	used, now := 0, ""
	dress := func(look string) {
		if look != now && now != "" {
			row.WriteString("\x1b[0m")
		}
		if look != now && look != "" {
			row.WriteString("\x1b[" + look + "m")
		}
		now = look
	}
	next := func() {
		dress("")
		l.rows = append(l.rows, row.String())
		row.Reset()
		used = 0
	}
	put := func(r rune, look string) {
		w := terminal.RuneWidth(r)
		if used+w > columns {
			next()
		}
		dress(look)
		row.WriteString(visible(r))
		used += w
	}
	for _, r := range prompt {
		put(r, "")
	}
	at := 0
	for _, r := range text + offer {
		if at == pos {
			if r != '\n' && used > 0 && used+terminal.RuneWidth(r) > columns {
				next()
			}
			l.mark(used, columns)
		}
		look := ""
		if at < len(looks) {
			look = looks[at]
		}
		at++
		if r == '\n' {
			next()
			for _, r := range s.more {
				put(r, "")
			}
		} else {
			put(r, look)
		}
	}
	if at <= pos {
		if used == columns { // it is at the beginning of a row that has nothing yet
			next()
		}
		l.mark(used, columns)
	}
	next()
	return l
}

// mark puts the cursor after what is in the row that is being filled.
func (l *layout) mark(used, columns int) {
	l.row, l.column = len(l.rows), used
	if used >= columns {
		l.row, l.column = l.row+1, 0
	}
}

// window is the part of a layout that has room on a screen with so many rows.
func (l layout) window(rows int) layout {
	if len(l.rows) <= rows {
		return l
	}
	top := min(max(0, l.row-rows+1), len(l.rows)-rows)
	return layout{rows: l.rows[top : top+rows], row: l.row - top, column: l.column}
}

func (s *screen) write(text string) { _, _ = io.WriteString(s.out, text) } // a terminal that is gone shows nothing

func (s *screen) begin() {
	s.drawn, s.width = layout{rows: []string{""}}, 0
	s.prompt, s.text, s.pos, s.offer = "", "", 0, ""
	if !s.dumb {
		s.write(markPastes)
	}
}

func (s *screen) end() {
	if !s.dumb {
		s.write(unmarkPastes)
	}
}

// draw shows an entry in the place of what is shown.
func (s *screen) draw(prompt, text string, pos int, offer string) {
	if s.dumb {
		s.drawDumb(prompt, text, pos)
		return
	}
	columns, rows := s.size()
	if columns == s.width && prompt == s.prompt && text == s.text && pos == s.pos && offer == s.offer {
		return
	}
	s.show(prompt, text, pos, offer, s.lay(prompt, text, pos, offer, columns).window(rows), columns)
}

func (s *screen) show(prompt, text string, pos int, offer string, l layout, columns int) {
	above := s.drawn.row
	if s.width != 0 && columns != s.width { // the terminal has laid out anew what is shown
		_, rows := s.size()
		above = s.lay(s.prompt, s.text, s.pos, s.offer, columns).window(rows).row
	}
	var b strings.Builder
	if above > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", above)
	}
	b.WriteString("\r" + clearBelow + strings.Join(l.rows, "\r\n"))
	if up := len(l.rows) - 1 - l.row; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteString("\r")
	if l.column > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", l.column)
	}
	s.write(b.String())
	s.drawn, s.prompt, s.text, s.pos, s.offer, s.width = l, prompt, text, pos, offer, columns
}

// drawDumb shows an entry on one row of a terminal that can go back to the row's beginning, and nothing else.
func (s *screen) drawDumb(prompt, text string, pos int) {
	if s.width > 0 && prompt == s.prompt && text == s.text && pos == s.pos {
		return
	}
	runes := []rune(text)
	text = strings.ReplaceAll(text, "\n", newlineSign)
	shown, used := rowOf(prompt + text)
	_, left := rowOf(string(runes[pos:]))
	s.write("\r" + shown + strings.Repeat(" ", max(0, s.width-used)) + strings.Repeat("\b", max(0, s.width-used)+left))
	s.prompt, s.text, s.pos, s.width = prompt, string(runes), pos, used
}

// rowOf is text as it is written to a row, and the columns that it takes.
func rowOf(text string) (string, int) {
	var b strings.Builder
	columns := 0
	for _, r := range text {
		b.WriteString(visible(r))
		columns += terminal.RuneWidth(r)
		if r == '\n' {
			columns++
		}
	}
	return b.String(), columns
}

// finish shows the whole entry, and leaves the cursor at the beginning of the row below. Last is shown after it.
func (s *screen) finish(prompt, text, last string) {
	end := len([]rune(text))
	if s.dumb {
		s.drawDumb(prompt, text, end)
	} else {
		columns, _ := s.size()
		s.show(prompt, text, end, "", s.lay(prompt, text, end, "", columns), columns)
	}
	s.write(last + "\r\n")
}

// list shows texts below the entry, in columns, and has the entry drawn below them.
func (s *screen) list(texts []string, more int) {
	columns, _ := s.size()
	widest := 0
	for _, text := range texts {
		_, n := rowOf(text)
		widest = max(widest, n)
	}
	each := max(1, columns/(widest+2))
	var b strings.Builder
	if below := len(s.drawn.rows) - 1 - s.drawn.row; below > 0 {
		fmt.Fprintf(&b, "\x1b[%dB", below)
	}
	for i, text := range texts {
		if i%each == 0 {
			b.WriteString("\r\n")
		}
		shown, n := rowOf(text)
		b.WriteString(shown + strings.Repeat(" ", max(0, widest+2-n)))
	}
	if more > 0 {
		fmt.Fprintf(&b, "\r\nand %d more", more)
	}
	s.write(b.String() + "\r\n")
	s.drawn, s.width = layout{rows: []string{""}}, 0
}

// clear begins at the top of an empty screen.
func (s *screen) clear() {
	if s.dumb {
		return
	}
	s.write(clearAll)
	s.drawn, s.width = layout{rows: []string{""}}, 0
}
