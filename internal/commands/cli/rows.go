package cli

import (
	"io"
	"slices"
	"strings"

	"cove/internal/commands/terminal"
	"cove/internal/core/lang"
)

// gap is the room between two columns.
const gap = 2

// rows writes lines of cells, with a tab after each, in columns as wide as their widest cell; what stands after the last tab of a line has no column. It is what
// text/tabwriter is for characters of one column each.
type rows struct {
	to    io.Writer
	right bool // cells stand at the right of their column
	text  strings.Builder
}

// newRows returns rows that Flush writes to w.
func newRows(w io.Writer, right bool) *rows { return &rows{to: w, right: right} }

// head writes the titles of the columns, in the language of the process. An empty one ends the line with a column.
func (r *rows) head(titles ...string) {
	r.text.WriteString(strings.Join(translated(titles), "\t") + "\n")
}

func (r *rows) Write(p []byte) (int, error) { return r.text.Write(p) }

// Flush writes what is there.
func (r *rows) Flush() error {
	var lines [][]string
	var widths []int
	for line := range strings.Lines(r.text.String()) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		lines = append(lines, cells)
		for i, cell := range cells[:len(cells)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], terminal.Width(cell))
		}
	}
	var b strings.Builder
	for _, cells := range lines {
		for i, cell := range cells[:len(cells)-1] {
			room := strings.Repeat(" ", widths[i]-terminal.Width(cell)+gap)
			if r.right {
				b.WriteString(room + cell)
			} else {
				b.WriteString(cell + room)
			}
		}
		b.WriteString(strings.Join(cells[len(cells)-1:], "") + "\n")
	}
	r.text.Reset()
	_, err := io.WriteString(r.to, b.String())
	return err
}

// translated are titles in the language of the process, with the spaces that stand before them.
func translated(titles []string) []string {
	titles = slices.Clone(titles)
	for i, t := range titles {
		titles[i] = lang.Text(t)
	}
	return titles
}
