package cli

import (
	"io"
	"strings"

	"cove/internal/commands/terminal"
)

// leastFlexible is how narrow the column may become that makes room for the others.
const leastFlexible = 16

// table writes rows under a head in columns. On a terminal a row is one line: the column with the number flexible is cut first, and then what does not fit at the right.
func (p *Program) table(head []string, flexible int, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	head = translated(head)
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for n, cell := range row {
			widths[n] = max(widths[n], terminal.Width(cell))
		}
	}
	room := columns(p.Out)
	if room > 0 {
		whole := 2 * (len(head) - 1)
		for _, w := range widths {
			whole += w
		}
		if whole > room {
			widths[flexible] = max(min(leastFlexible, widths[flexible]), widths[flexible]-(whole-room))
		}
	}
	var b strings.Builder
	for _, row := range append([][]string{head}, rows...) {
		line := ""
		for n, cell := range row {
			cell = terminal.Cut(cell, widths[n])
			if n < len(row)-1 {
				cell += strings.Repeat(" ", widths[n]-terminal.Width(cell)+2)
			}
			line += cell
		}
		line = strings.TrimRight(line, " ")
		if room > 0 {
			line = terminal.Cut(line, room)
		}
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(p.Out, b.String())
	return err
}

// padded is text with spaces after it up to so many columns.
func padded(text string, columns int) string {
	return text + strings.Repeat(" ", max(columns-terminal.Width(text), 0))
}
