package notebook

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"cove/internal/python/kernel"
)

// shownOutput bounds one output in Markdown, in bytes; notebooks keep all of it.
const shownOutput = 8 << 10

// WriteMarkdown writes the document for reading. Figures are named, not included.
func WriteMarkdown(w io.Writer, d Document) error { return writeMarkdown(w, d, nil) }

// WriteMarkdownFigures is WriteMarkdown with the figures, as data: images, as far as they have no more than room bytes together; others are named.
func WriteMarkdownFigures(w io.Writer, d Document, room int) error {
	return writeMarkdown(w, d, func(b io.Writer, c Cell) {
		for _, f := range c.figures(&room) {
			fmt.Fprintf(b, "![figure](%s)\n\n", f)
		}
	})
}

func writeMarkdown(w io.Writer, d Document, figures func(io.Writer, Cell)) error {
	b := bufio.NewWriter(w)
	if text := d.heading(); text != "" {
		fmt.Fprintf(b, "%s\n\n", clean(text))
	}
	for _, t := range d.Turns {
		if t.Prompt != "" {
			fmt.Fprintf(b, "## %s\n\n", clean(strings.Join(strings.Fields(t.Prompt), " ")))
		}
		for _, block := range t.Blocks {
			if block.Cell == nil {
				fmt.Fprintf(b, "%s\n\n", closed(clean(block.Text)))
				continue
			}
			if block.Cell.Edited {
				fmt.Fprintf(b, "%s\n\n", editedNote)
			}
			fenced(b, "python", block.Cell.Code)
			if text := block.Cell.Text(); text != "" {
				fenced(b, "text", shortened(text))
			}
			if figures != nil {
				figures(b, *block.Cell)
			}
		}
		if t.Answer != "" {
			fmt.Fprintf(b, "%s\n\n", closed(clean(t.answer())))
		}
	}
	return b.Flush()
}

// closed ends the block of code that a text leaves open, as one does that a model did not finish: all that follows would be in it.
func closed(text string) string {
	open := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		mark := strings.TrimLeft(line, " ")
		if len(line)-len(mark) > 3 {
			continue
		}
		fence := mark[:len(mark)-len(strings.TrimLeft(mark, "`"))]
		if fence == "" {
			fence = mark[:len(mark)-len(strings.TrimLeft(mark, "~"))]
		}
		switch {
		case len(fence) < 3:
		case open == "" && !strings.Contains(mark[len(fence):], "`"):
			open = fence
		case open != "" && mark == fence && strings.HasPrefix(fence, open):
			open = ""
		}
	}
	if open == "" {
		return text
	}
	return strings.TrimRight(text, "\n") + "\n" + open
}

// fenced writes a block after a fence that the text itself does not have.
func fenced(w io.Writer, kind, text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(w, "%s%s\n%s\n%s\n\n", fence, kind, strings.TrimRight(clean(text), "\n"), fence)
}

func shortened(text string) string {
	if len(text) <= shownOutput {
		return text
	}
	cut := shownOutput
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s\n... %d more bytes", text[:cut], len(text)-cut)
}

// Text is what the execution said, as a terminal would show it; pictures are named.
func (c Cell) Text() string {
	var b strings.Builder
	line := func(text string) {
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(text)
	}
	for _, o := range c.Outputs {
		switch {
		case o.Stream != nil:
			b.Write(o.Stream.Data)
		case o.Display != nil:
			line(bundleText(o.Display.Data))
		case o.Result != nil:
			line(bundleText(o.Result.Data))
		case o.Error != nil && len(o.Error.Traceback) > 0:
			line(strings.Join(o.Error.Traceback, "\n"))
		case o.Error != nil:
			line(o.Error.Name + ": " + o.Error.Value)
		}
	}
	if c.Outcome != kernel.OutcomeOK && c.Outcome != kernel.OutcomeError && c.Message != "" {
		line("[" + c.Message + "]")
	}
	return clean(b.String())
}

func bundleText(data kernel.Bundle) string {
	for kind := range data {
		if strings.HasPrefix(kind, "image/") {
			return "[figure]\n"
		}
	}
	for _, kind := range []string{"text/markdown", "text/latex", "text/plain"} {
		if text, ok := data[kind].(string); ok && (kind != "text/markdown" || data["text/plain"] == nil) {
			return text + "\n"
		}
	}
	return "[output]\n"
}

// WritePython writes the code as one program with cells ("# %%") that editors know. The questions and answers are comments, and what only
// IPython understands is too.
func WritePython(w io.Writer, d Document) error {
	b := bufio.NewWriter(w)
	if text := d.heading(); text != "" {
		comment(b, text)
	}
	for _, t := range d.Turns {
		if t.Prompt != "" {
			fmt.Fprintln(b, "\n# %% [markdown]")
			comment(b, "Question: "+t.Prompt)
		}
		for _, block := range t.Blocks {
			if block.Cell == nil {
				fmt.Fprintln(b, "\n# %% [markdown]")
				comment(b, block.Text)
				continue
			}
			if block.Cell.Edited {
				comment(b, "The user changed the next code before it ran.")
			}
			fmt.Fprintf(b, "\n# %%%%\n%s\n", strings.TrimRight(plain(block.Cell.Code), "\n"))
		}
		if t.Answer != "" {
			fmt.Fprintln(b, "\n# %% [markdown]")
			comment(b, t.answer())
		}
	}
	return b.Flush()
}

func comment(w io.Writer, text string) {
	for line := range strings.SplitSeq(strings.TrimRight(clean(text), "\n"), "\n") {
		// A carriage return, a form feed or the like would end the comment for some readers.
		line = strings.Map(func(r rune) rune {
			if r < ' ' && r != '\t' || r == 0x85 || r == 0x2028 || r == 0x2029 {
				return ' '
			}
			return r
		}, line)
		fmt.Fprintln(w, strings.TrimRight("# "+line, " "))
	}
}

// plain makes comments of the lines that only IPython understands. A cell magic is about the whole cell.
func plain(code string) string {
	code = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(clean(code)) // as Python reads it
	if strings.HasPrefix(strings.TrimSpace(code), "%%") {
		return "# " + strings.ReplaceAll(strings.TrimRight(code, "\n"), "\n", "\n# ")
	}
	var out []string
	for line := range strings.SplitSeq(code, "\n") {
		word := strings.TrimSpace(line)
		if strings.HasPrefix(word, "!") || strings.HasPrefix(word, "%") && len(word) > 1 && word[1] >= 'a' && word[1] <= 'z' {
			indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
			line = indent + "pass  # " + word
			if indent == "" {
				line = "# " + word
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
