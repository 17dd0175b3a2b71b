package terminal

import (
	"strings"

	xast "github.com/yuin/goldmark/extension/ast"
)

// table are the rows of a table: its columns as wide as they need to be, and narrower where the terminal is; as a list where it has no room for columns.
func (r *renderer) table(n *xast.Table, columns int) [][]glyph {
	var cells [][][]glyph
	wide := 0
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		look := ""
		if _, head := row.(*xast.TableHeader); head {
			look = lookStrong
		}
		var line [][]glyph
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			line = append(line, r.inline(cell, look))
		}
		wide = max(wide, len(line))
		cells = append(cells, line)
	}
	if len(cells) == 0 || wide == 0 {
		return nil
	}
	widths := make([]int, wide)
	for _, line := range cells {
		for i, cell := range line {
			for _, row := range wrap(cell, mostBlock) {
				widths[i] = max(widths[i], columnsOf(row), 1)
			}
		}
	}
	if !fit(widths, columns-3*(wide-1)) {
		return r.records(cells, columns)
	}
	var out [][]glyph
	for i, line := range cells {
		out = append(out, tableRow(line, widths, n.Alignments)...)
		if i == 0 {
			out = append(out, rule(widths))
		}
	}
	return out
}

// fit makes the widest columns narrower until all have room. It returns false where that makes them too narrow to be read.
func fit(widths []int, room int) bool {
	for {
		sum, widest := 0, 0
		for i, w := range widths {
			sum += w
			if w > widths[widest] {
				widest = i
			}
		}
		if sum <= room {
			return true
		}
		if widths[widest] <= narrowCells {
			return false
		}
		widths[widest]--
	}
}

func rule(widths []int) []glyph {
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat("─", w)
	}
	return glyphs(strings.Join(parts, "─┼─"), lookQuiet)
}

func tableRow(line [][]glyph, widths []int, alignments []xast.Alignment) [][]glyph {
	parts := make([][][]glyph, len(widths))
	high := 1
	for i := range widths {
		if i < len(line) {
			parts[i] = wrap(line[i], widths[i])
		}
		high = max(high, len(parts[i]))
	}
	out := make([][]glyph, high)
	for y := range out {
		for i, w := range widths {
			var cell []glyph
			if y < len(parts[i]) {
				cell = parts[i][y]
			}
			left, right := 0, w-columnsOf(cell)
			if i < len(alignments) {
				switch alignments[i] {
				case xast.AlignRight:
					left, right = right, 0
				case xast.AlignCenter:
					left, right = right/2, right-right/2
				}
			}
			if i == len(widths)-1 {
				right = 0
			}
			out[y] = append(append(append(out[y], glyphs(strings.Repeat(" ", max(left, 0)), "")...), cell...), glyphs(strings.Repeat(" ", max(right, 0)), "")...)
			if i < len(widths)-1 {
				out[y] = append(out[y], glyph{' ', ""}, glyph{'│', lookQuiet}, glyph{' ', ""})
			}
		}
	}
	return out
}

// records shows each row of a table below the other, with the names of the columns.
func (r *renderer) records(cells [][][]glyph, columns int) [][]glyph {
	var out [][]glyph
	for _, line := range cells[1:] {
		if len(out) > 0 {
			out = append(out, nil)
		}
		for i, cell := range line {
			row := cell
			if i < len(cells[0]) && len(cells[0][i]) > 0 {
				row = append(append(cells[0][i][:len(cells[0][i]):len(cells[0][i])], glyphs(": ", lookStrong)...), cell...)
			}
			out = append(out, wrap(row, columns)...)
		}
	}
	return out
}
