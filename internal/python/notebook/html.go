package notebook

import (
	"bufio"
	"bytes"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// pageHead allows the document no script, and nothing from elsewhere.
const pageHead = `<!doctype html>
<html>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>
:root { color-scheme: light dark; --text: #1c1c1e; --back: #fff; --soft: #f4f4f5; --line: #d8d8dc; --quiet: #5d5d66 }
@media (prefers-color-scheme: dark) { :root { --text: #ececf0; --back: #17171a; --soft: #232327; --line: #3a3a42; --quiet: #a6a6b0 } }
body { color: var(--text); background: var(--back); font: 16px/1.6 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
h2 { border-top: 1px solid var(--line); padding-top: 1.5rem; font-size: 1.2rem; white-space: pre-wrap; overflow-wrap: anywhere }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .75rem; overflow-x: auto; font: 13px/1.5 ui-monospace, monospace }
pre.output { background: none; color: var(--quiet) }
code { font-family: ui-monospace, monospace; font-size: .9em }
img { max-width: 100%% }
table { border-collapse: collapse; display: block; overflow-x: auto }
th, td { border: 1px solid var(--line); padding: .25rem .6rem; text-align: left }
blockquote { border-left: 3px solid var(--line); margin-left: 0; padding-left: 1rem; color: var(--quiet) }
@media print { body { margin: 0; max-width: none; color: #000; background: #fff } pre { white-space: pre-wrap; overflow-wrap: anywhere } pre, img, tr { break-inside: avoid } h2 { break-after: avoid } }
</style>
</head>
<body>
`

// WriteHTML writes the document as one page that loads and runs nothing. Figures are in it as far as they have no more than room bytes together; others are
// named.
func WriteHTML(w io.Writer, d Document, room int) error {
	b := bufio.NewWriter(w)
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(harmless{}, 100))))
	said := func(text string) error {
		var out bytes.Buffer // raw HTML is left out and dangerous addresses are emptied, unless goldmark is told otherwise
		if err := md.Convert([]byte(clean(text)), &out); err != nil {
			return err
		}
		_, err := b.Write(out.Bytes())
		return err
	}
	fmt.Fprintf(b, pageHead, html.EscapeString(clean(strings.Join(strings.Fields(d.Title), " "))))
	if err := said(d.heading()); err != nil {
		return err
	}
	for _, t := range d.Turns {
		if t.Prompt != "" {
			fmt.Fprintf(b, "<h2>%s</h2>\n", html.EscapeString(clean(t.Prompt)))
		}
		for _, block := range t.Blocks {
			if block.Cell == nil {
				if err := said(block.Text); err != nil {
					return err
				}
				continue
			}
			writeCell(b, *block.Cell, &room)
		}
		if err := said(t.answer()); err != nil {
			return err
		}
	}
	fmt.Fprint(b, "</body>\n</html>\n")
	return b.Flush()
}

func writeCell(b io.Writer, c Cell, room *int) {
	fmt.Fprintf(b, "<pre><code>%s</code></pre>\n", html.EscapeString(clean(c.Code)))
	if text := c.Text(); text != "" {
		fmt.Fprintf(b, "<pre class=\"output\">%s</pre>\n", html.EscapeString(shortened(text)))
	}
	for _, f := range c.figures(room) {
		fmt.Fprintf(b, "<p><img alt=\"figure\" src=\"%s\"></p>\n", html.EscapeString(f))
	}
}

// harmless makes text of the pictures that a model names: an address would tell another computer that the document is read.
type harmless struct{}

// Transform implements parser.ASTTransformer.
func (harmless) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var pictures []*ast.Image
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if i, ok := n.(*ast.Image); ok && entering {
			pictures = append(pictures, i)
		}
		return ast.WalkContinue, nil
	})
	for _, i := range pictures {
		shown := "[picture not shown]"
		if len(i.Destination) > 0 && len(i.Destination) < 200 {
			shown = "[picture not shown: " + string(i.Destination) + "]"
		}
		word := ast.NewString([]byte(shown))
		word.SetRaw(true) // as it is; it is escaped when it is written
		i.Parent().ReplaceChild(i.Parent(), i, word)
	}
}
