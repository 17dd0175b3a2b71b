package terminal

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	xast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Looks of Markdown: the terminal's own sixteen colours, which fit dark and light terminals.
const (
	lookHead   = "1"
	lookTitle  = "1;4"
	lookCode   = "36"
	lookQuiet  = "2"
	lookStrong = "1"
	lookSoft   = "3"
	lookGone   = "9"
)

const (
	mostProse   = 100      // columns of a row that is read
	leastProse  = 10       // columns that are always used
	mostBlock   = 64 << 10 // bytes of a block that is laid out; longer ones are shown as they are
	deepest     = 12       // levels of lists and quotes that are indented
	narrowCells = 6        // columns of a cell: a table with less room is shown as a list
)

// MarkdownOptions say how Markdown is shown.
type MarkdownOptions struct {
	Columns int  // of a row, at least 10
	Colour  bool // without, the signs of emphasis stay
	// Highlight returns the lines of a program with SGR sequences and no others; nil: code has no colours.
	Highlight func(code, language string) []string
}

// Markdown returns the rows of a text, each of at most Columns columns and with no escape sequences but SGR's, whatever the text has.
func Markdown(source string, o MarkdownOptions) []string {
	s := Markup{o: o}
	return append(s.Add(source), s.Rest()...)
}

var markdown = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()
})

// block returns the rows of source, which has few blocks at the top level.
func block(source string, o MarkdownOptions) []string {
	o.Columns = max(o.Columns, leastProse)
	var rows [][]glyph
	if len(source) > mostBlock {
		for line := range strings.Lines(source) {
			rows = append(rows, wrap(glyphs(strings.TrimRight(line, "\r\n"), ""), o.Columns)...)
		}
	} else {
		r := &renderer{o: o, source: []byte(source)}
		rows = r.children(markdown().Parse(text.NewReader(r.source)), o.Columns, 0, true)
	}
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = rowString(row, o.Colour)
	}
	return out
}

// renderer makes rows of the nodes of one text.
type renderer struct {
	o      MarkdownOptions
	source []byte
}

// children are the rows of the blocks in n, with a blank row between them where they are loose.
func (r *renderer) children(n ast.Node, columns, depth int, loose bool) [][]glyph {
	var rows [][]glyph
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		part := r.block(c, columns, depth)
		if len(part) == 0 {
			continue
		}
		if loose && len(rows) > 0 {
			rows = append(rows, nil)
		}
		rows = append(rows, part...)
	}
	return rows
}

func (r *renderer) block(n ast.Node, columns, depth int) [][]glyph {
	switch n := n.(type) {
	case *ast.Heading:
		return r.heading(n, columns)
	case *ast.Paragraph, *ast.TextBlock:
		return wrap(r.inline(n, ""), min(columns, mostProse))
	case *ast.List:
		return r.list(n, columns, depth)
	case *ast.Blockquote:
		bar := []glyph{{'│', lookQuiet}, {' ', ""}}
		return indented(r.children(n, r.inner(columns, 2), depth+1, true), bar, bar, depth)
	case *ast.FencedCodeBlock:
		return r.code(linesOf(n, r.source), string(n.Language(r.source)), columns)
	case *ast.CodeBlock:
		return r.code(linesOf(n, r.source), "", columns)
	case *ast.ThematicBreak:
		return [][]glyph{glyphs(strings.Repeat("─", min(columns, mostProse)), lookQuiet)}
	case *xast.Table:
		return r.table(n, columns)
	case *ast.HTMLBlock:
		source := linesOf(n, r.source)
		if n.HasClosure() {
			source += string(n.ClosureLine.Value(r.source))
		}
		return wrap(glyphs(strings.TrimRight(source, "\n"), ""), min(columns, mostProse))
	}
	return nil
}

// inner is what is left of a row in which something is indented.
func (r *renderer) inner(columns, by int) int { return max(columns-by, leastProse/2) }

func linesOf(n ast.Node, source []byte) string {
	var b strings.Builder
	for _, s := range n.Lines().Sliced(0, n.Lines().Len()) {
		b.Write(s.Value(source))
	}
	return b.String()
}

func (r *renderer) heading(n *ast.Heading, columns int) [][]glyph {
	look := lookHead
	if n.Level == 1 {
		look = lookTitle
	}
	words := r.inline(n, look)
	if !r.o.Colour {
		words = append(glyphs(strings.Repeat("#", n.Level)+" ", ""), words...)
	}
	return wrap(words, min(columns, mostProse))
}

func (r *renderer) list(n *ast.List, columns, depth int) [][]glyph {
	var rows [][]glyph
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
			number++
		}
		part := r.children(item, r.inner(columns, len([]rune(mark))), depth+1, !n.IsTight)
		if len(part) == 0 {
			part = [][]glyph{nil}
		}
		if !n.IsTight && len(rows) > 0 {
			rows = append(rows, nil)
		}
		rows = append(rows, indented(part, glyphs(mark, lookQuiet), glyphs(strings.Repeat(" ", len([]rune(mark))), ""), depth)...)
	}
	return rows
}

// indented puts something before the first row and the others.
func indented(rows [][]glyph, first, others []glyph, depth int) [][]glyph {
	if depth > deepest {
		return rows
	}
	out := make([][]glyph, len(rows))
	for i, row := range rows {
		before := others
		if i == 0 {
			before = first
		}
		out[i] = append(before[:len(before):len(before)], row...)
	}
	return out
}

func (r *renderer) code(source, language string, columns int) [][]glyph {
	source = strings.TrimRight(source, "\n")
	var lines []string
	if r.o.Highlight != nil && r.o.Colour {
		lines = r.o.Highlight(rowString(glyphs(source, ""), false), strings.ToLower(language))
	}
	if lines == nil {
		lines = strings.Split(source, "\n")
	}
	var rows [][]glyph
	for _, line := range lines {
		part := coloured(line)
		if !r.o.Colour || r.o.Highlight == nil {
			part = glyphs(line, "")
		}
		rows = append(rows, chop(part, r.inner(columns, 2))...)
	}
	margin := glyphs("  ", "")
	return indented(rows, margin, margin, 0)
}

// lineBreak is how a line ends within a cell of a table.
var lineBreak = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^<br\s*/?>$`) })

// inline is the text in n.
func (r *renderer) inline(n ast.Node, look string) []glyph {
	var out []glyph
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			out = append(out, glyphs(r.words(c), look)...)
			if c.SoftLineBreak() || c.HardLineBreak() {
				out = append(out, glyph{'\n', look})
			}
		case *ast.String:
			out = append(out, glyphs(html.UnescapeString(string(c.Value)), look)...)
		case *ast.CodeSpan:
			out = append(out, r.signed(r.inline(c, with(look, lookCode)), "`")...)
		case *ast.Emphasis:
			kind, sign := lookSoft, "*"
			if c.Level > 1 {
				kind, sign = lookStrong, "**"
			}
			out = append(out, r.signed(r.inline(c, with(look, kind)), sign)...)
		case *xast.Strikethrough:
			out = append(out, r.signed(r.inline(c, with(look, lookGone)), "~~")...)
		case *xast.TaskCheckBox:
			checkbox := "☐ "
			if c.IsChecked {
				checkbox = "☑ "
			}
			out = append(out, glyphs(checkbox, look)...)
		case *ast.Link:
			words := r.inline(c, look)
			out = append(out, words...)
			if to := string(c.Destination); to != rowString(words, false) {
				out = append(out, glyphs(" ("+oneRow(to)+")", with(look, lookQuiet))...)
			}
		case *ast.AutoLink:
			out = append(out, glyphs(oneRow(string(c.Label(r.source))), look)...)
		case *ast.Image:
			out = append(out, glyphs("[picture: "+oneRow(rowString(r.inline(c, ""), false))+" "+oneRow(string(c.Destination))+"]", with(look, lookQuiet))...)
		case *ast.RawHTML:
			tag := string(c.Segments.Value(r.source))
			if lineBreak().MatchString(tag) {
				tag = "\n"
			}
			out = append(out, glyphs(tag, look)...)
		}
	}
	return out
}

// words is a text as it is meant: what is escaped in it is what it stands for, but in code.
func (r *renderer) words(t *ast.Text) string {
	words := string(t.Value(r.source))
	if _, code := t.Parent().(*ast.CodeSpan); code || t.IsRaw() {
		return words
	}
	return html.UnescapeString(escaped().ReplaceAllString(words, "$1"))
}

// escaped is a sign of Markdown that is meant as it is.
var escaped = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\\\\([!-/:-@\\[-`{-~])") })

func oneRow(text string) string { return strings.Join(strings.Fields(text), " ") }

// with adds a look to another one.
func with(look, more string) string {
	if look == "" {
		return more
	}
	return look + ";" + more
}

// signed puts the signs of emphasis around text that is shown without colours.
func (r *renderer) signed(text []glyph, sign string) []glyph {
	if r.o.Colour {
		return text
	}
	return append(append(glyphs(sign, ""), text...), glyphs(sign, "")...)
}
