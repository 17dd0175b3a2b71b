package display

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	mostHTML = 1 << 20  // bytes that are read of a page
	mostText = 16 << 10 // bytes of its words
)

// HTMLText returns the words of a piece of HTML: a line for each paragraph and each row of a table, whose cells have a bar between them. Scripts, style sheets and pictures have none.
// Of a large page it is the beginning.
func HTMLText(page string) string {
	var t htmlText
	z := html.NewTokenizer(strings.NewReader(page[:min(len(page), mostHTML)]))
	z.SetMaxBuf(mostHTML)
	for t.b.Len() < mostText {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		switch kind {
		case html.TextToken:
			t.write(string(z.Text()))
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			t.tag(atom.Lookup(name), kind)
		}
	}
	return strings.ToValidUTF8(strings.TrimSpace(t.b.String()), "\ufffd")
}

// HTMLTitle returns the title of a page, of 200 bytes at most, or "".
func HTMLTitle(page string) string {
	z := html.NewTokenizer(strings.NewReader(page[:min(len(page), mostHTML)]))
	z.SetMaxBuf(mostHTML)
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		if name, _ := z.TagName(); kind != html.StartTagToken || atom.Lookup(name) != atom.Title {
			continue
		}
		if z.Next() != html.TextToken {
			return ""
		}
		title := strings.Join(strings.Fields(string(z.Text())), " ")
		return strings.ToValidUTF8(title[:min(len(title), 200)], "")
	}
	return ""
}

// htmlText are the words that were read.
type htmlText struct {
	b      strings.Builder
	hidden atom.Atom // the element whose text is not shown
	cells  int       // of this row
	space  bool      // before the next word
	line   bool      // a new one before the next word
}

func (t *htmlText) tag(a atom.Atom, kind html.TokenType) {
	if t.hidden != 0 {
		if kind == html.EndTagToken && a == t.hidden {
			t.hidden = 0
		}
		return
	}
	switch a {
	case atom.Script, atom.Style, atom.Head, atom.Template, atom.Svg, atom.Noscript:
		if kind == html.StartTagToken {
			t.hidden = a
		}
	case atom.Td, atom.Th:
		if kind == html.StartTagToken {
			if t.cells++; t.cells > 1 {
				t.breakLine()
				t.b.WriteString(" | ")
				t.space = false
			}
		}
	case atom.Tr:
		t.cells, t.line = 0, true
	case atom.P, atom.Div, atom.Br, atom.Li, atom.Ul, atom.Ol, atom.Table, atom.Caption, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Pre, atom.Dt, atom.Dd, atom.Section, atom.Hr:
		if t.cells == 0 {
			t.line = true
		}
	}
}

// breakLine begins a new line where one is due, and reports whether it did.
func (t *htmlText) breakLine() bool {
	due := t.line && t.b.Len() > 0
	if due {
		t.b.WriteString("\n")
	}
	t.line = false
	return due
}

// write adds text, whose white space is one space.
func (t *htmlText) write(text string) {
	if t.hidden != 0 {
		return
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		t.space = t.space || text != ""
		return
	}
	if !t.breakLine() && t.b.Len() > 0 && (t.space || strings.TrimLeft(text, " \t\r\n") != text) && !strings.HasSuffix(t.b.String(), " ") {
		t.b.WriteString(" ")
	}
	joined := strings.Join(words, " ")
	t.b.WriteString(joined[:min(len(joined), mostText)])
	t.space = strings.TrimRight(text, " \t\r\n") != text
}
