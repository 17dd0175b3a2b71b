package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"cove/internal/commands/terminal"
	"cove/internal/core/lang"
	"cove/internal/llm/loop"
	"cove/internal/python/display"
	"cove/internal/python/kernel"
)

// How much of one execution's output a person is shown; the model and --json get what they get.
const shownOutput = 16 << 10

// narrator tells a person on standard error what happens while a question is answered. All text comes from a model
// or a sandbox, so escape sequences are taken out of it.
type narrator struct {
	to     io.Writer
	colour bool
	live   *terminal.Live
	words  *terminal.Markup // what the model says, as rows; nil: as it is

	block    block
	column   bool // something stands on the current line
	clean    escapes
	code     *highlighter
	written  strings.Builder // the code as it streamed
	said     strings.Builder // by the model since the last execution
	asks     bool            // a person is asked about code, here
	shown    string          // the code that the person was asked about
	outBytes int
	prefixed bool
	told     told // of the present execution
	large    announcement
}

type block int

const (
	noBlock block = iota
	textBlock
	reasoningBlock
	codeBlock
	outputBlock
)

// newNarrator tells what happens on to. Live shows what is awaited, and may be nil.
func newNarrator(p *Program, to io.Writer, live *terminal.Live) *narrator {
	n := &narrator{to: to, code: newHighlighter(), colour: p.colours(to), live: live}
	if p.lays(to) {
		n.words = terminal.NewMarkup(p.markdown(to))
	}
	return n
}

// lays says whether Markdown is laid out for w: a terminal that does more than a teleprinter.
func (p *Program) lays(w io.Writer) bool {
	_, tty := terminal.Descriptor(w)
	return tty && p.Getenv("TERM") != "dumb"
}

// markdown is how Markdown is laid out for the terminal w.
func (p *Program) markdown(w io.Writer) terminal.MarkdownOptions {
	return terminal.MarkdownOptions{Columns: cmp.Or(columns(w), 80), Colour: p.colours(w), Highlight: highlightBlock}
}

// highlightBlock colours a program of an answer, where it is Python or may be.
func highlightBlock(code, language string) []string {
	switch language {
	case "python", "py", "python3", "ipython", "pycon":
		return newHighlighter().colour(code)
	}
	return nil
}

// colours says whether text for w may be coloured.
func (p *Program) colours(w io.Writer) bool {
	_, tty := terminal.Descriptor(w)
	return tty && p.Getenv("NO_COLOR") == "" && p.Getenv("TERM") != "dumb"
}

// sameFile says whether both are one terminal, pipe or file, so that writing to both would show text twice.
func sameFile(a, b io.Writer) bool {
	fa, fb := terminal.OpenFile(a), terminal.OpenFile(b)
	if fa == nil || fb == nil {
		return unwatched(a) == unwatched(b)
	}
	ia, err := fa.Stat()
	ib, err2 := fb.Stat()
	return err == nil && err2 == nil && os.SameFile(ia, ib)
}

func (n *narrator) event(e loop.Event) {
	switch e := e.(type) {
	case loop.Text:
		n.said.WriteString(e.Delta)
		n.enter(textBlock)
		n.say(n.safe([]byte(e.Delta)))
	case loop.Reasoning:
		n.live.Await(lang.Text("the model thinks"))
		n.enter(reasoningBlock)
		n.print(n.dim(n.safe([]byte(e.Delta))))
	case loop.Code:
		n.live.Await(lang.Text("the model writes code"))
		n.enter(codeBlock)
		n.written.WriteString(e.Delta)
		n.codeLines(n.code.add(n.safe([]byte(e.Delta))))
	case loop.Start:
		n.start(e)
	case loop.Output:
		n.output(e.Event)
	case loop.Approval:
		if n.asks {
			return
		}
		if e.Why != "" {
			n.note(e.Why + ".")
		}
		n.note("The code waits for its user's word: approve or refuse it on the server's page, or with POST /turns/{turn}/approve.")
	case loop.Refused:
		n.said.Reset()
		if e.Why != "" {
			n.note("The rules for code did not let this run. " + e.Why + ".")
			return
		}
		n.note("The user did not want this code to run.")
	case loop.Findings:
		n.findings(e)
	case loop.Notice:
		n.note(e.Text)
	}
}

// findings tells what was found in code, in a line each.
func (n *narrator) findings(e loop.Findings) {
	for _, f := range e.Items {
		line := fmt.Sprintf("line %d: %s: %s", f.Line, f.Severity, f.Message)
		if f.Better != "" {
			line += "; better: " + f.Better
		}
		n.note(line)
	}
	for _, note := range e.Notes {
		n.note(note)
	}
}

// say shows more of what the model says: blocks that are complete, and for now what there is of the next one.
func (n *narrator) say(text string) {
	n.live.Await(lang.Text("the model writes"))
	if n.words == nil {
		n.print(text)
		return
	}
	if wide := columns(n.to); wide > 0 {
		n.words.Resize(wide)
	}
	n.rows(n.words.Add(stripColours(text)))
	n.live.Tail(n.words.Tail())
}

func (n *narrator) rows(rows []string) {
	if len(rows) > 0 {
		n.raw(strings.Join(rows, "\n") + "\n")
	}
}

// enter begins a new kind of text on a line of its own.
func (n *narrator) enter(b block) {
	if n.block == b {
		return
	}
	n.leave()
	if n.block != noBlock && b != outputBlock {
		n.raw("\n")
	}
	n.block = b
	if b == codeBlock && !n.colour {
		n.raw("```python\n")
	}
}

// leave ends the present block: what is held back of the code, and the line.
func (n *narrator) leave() {
	if n.block == textBlock && n.words != nil {
		n.live.Tail(nil)
		n.rows(n.words.Rest())
	}
	if n.block == codeBlock {
		n.codeLines(n.code.rest())
		n.written.Reset()
		if !n.colour {
			n.raw("```\n")
		}
	}
	if n.column {
		n.raw("\n")
	}
	n.clean = escapes{}
	n.prefixed = false
}

// complete shows code as a whole, when it is not what was streamed.
func (n *narrator) complete(code string) {
	if strings.TrimSpace(n.written.String()) != strings.TrimSpace(code) && n.shown != code {
		n.leave()
		n.block = noBlock
		n.enter(codeBlock)
		n.written.WriteString(code)
		n.codeLines(n.code.add(n.safe([]byte(code))))
	}
	n.leave()
	n.block, n.shown = outputBlock, code
}

func (n *narrator) start(e loop.Start) {
	n.complete(e.Code)
	n.shown = ""
	n.block = outputBlock
	n.said.Reset()
	n.outBytes = 0
	n.told = nil
	n.live.Await(lang.Text("running"))
}

func (n *narrator) codeLines(lines []string) {
	for _, line := range lines {
		if n.colour {
			line = "  " + line
		} else {
			line = stripColours(line)
		}
		n.raw(line + "\n")
	}
}

func (n *narrator) output(e kernel.Event) {
	switch e := e.(type) {
	case kernel.Stream:
		n.show(e.Data)
	case kernel.Display:
		n.show([]byte(ended(plainUnlessFigure(e.Data))))
	case kernel.Result:
		n.show([]byte(ended(plainUnlessFigure(e.Data))))
	case kernel.Error:
		n.show([]byte(ended(loop.ReduceTraceback(e.Traceback)) + hintLine(withLocalHint(e))))
	case kernel.InputRequest:
		n.show([]byte(e.Prompt))
	case kernel.InputReply:
		n.show([]byte(e.Typed()))
	case kernel.Install:
		n.install(e)
	case kernel.Rollback:
		n.note(e.String())
	case kernel.Done:
		n.live.Await(lang.Text("waiting for the model"))
		if e.Message != "" && e.Outcome != kernel.OutcomeOK && e.Outcome != kernel.OutcomeError {
			n.note(e.Message)
		}
	}
}

func (n *narrator) install(e kernel.Install) {
	if line := n.large.announce(e.Progress); line != "" {
		n.note(line)
	}
	if e.Progress != nil {
		if !n.column {
			n.live.Progress(progressText(*e.Progress))
		}
		return
	}
	n.live.Await(lang.Text("running"))
	t := taleOf(e)
	if t.installed != "" {
		n.note(t.installed)
	}
	for _, text := range append(t.notes, n.told.news(t.troubles)...) {
		n.note(strings.ReplaceAll(text, "\n  ", "; "))
	}
}

func plainUnlessFigure(data kernel.Bundle) string {
	if ending, content := figureOf(data, func() string { return "-" }); content != nil && ending != ".md" {
		return ""
	}
	return display.Text(data)
}

func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// show writes output with a bar before each line, up to a limit.
func (n *narrator) show(data []byte) {
	if len(data) == 0 || n.outBytes > shownOutput {
		return
	}
	n.enter(outputBlock)
	if n.outBytes += len(data); n.outBytes > shownOutput {
		n.prefix(n.safe(data[:len(data)-(n.outBytes-shownOutput)]))
		n.note("there is more output, not shown here")
		return
	}
	n.prefix(n.safe(data))
}

func (n *narrator) prefix(text string) {
	bar := "  | "
	if n.colour {
		bar = "\x1b[0;2m  │ "
	}
	for len(text) > 0 {
		if !n.prefixed {
			n.raw(bar)
			n.prefixed, n.column = true, true
		}
		at := strings.IndexAny(text, "\n\r")
		if at < 0 {
			n.raw(text)
			n.column = true
			return
		}
		n.raw(text[:at])
		if text[at] == '\n' && n.colour {
			n.raw("\x1b[0m")
		}
		n.raw(text[at : at+1])
		n.prefixed = false
		n.column = text[at] == '\r'
		text = text[at+1:]
	}
}

// picture shows a figure on rows of its own.
func (n *narrator) picture(drawn string) {
	if drawn == "" {
		return
	}
	if n.column {
		n.raw("\n")
	}
	n.prefixed = false
	n.raw(drawn)
}

// note writes a line of cove's own.
func (n *narrator) note(text string) {
	if n.column {
		n.raw("\n")
	}
	n.prefixed = false
	n.raw(n.dim("["+lang.Text(oneLine(text))+"]") + "\n")
}

// finish ends the narration.
func (n *narrator) finish() {
	n.live.Over()
	n.leave()
	n.block = noBlock
	if n.colour {
		n.raw("\x1b[0m")
	}
}

func (n *narrator) safe(data []byte) string {
	text := n.clean.clean(data)
	if !n.colour {
		return stripColours(text)
	}
	return text
}

// stripColours removes the sequences that escapes lets through.
func stripColours(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(after, "m")
	}
}

func (n *narrator) dim(text string) string {
	if !n.colour || text == "" {
		return text
	}
	return "\x1b[2m" + text + "\x1b[0m"
}

func (n *narrator) print(text string) {
	if text == "" {
		return
	}
	n.raw(text)
	n.column = !strings.HasSuffix(strings.TrimSuffix(text, "\x1b[0m"), "\n")
}

func (n *narrator) raw(text string) {
	_, _ = io.WriteString(n.to, text) // standard error is gone: there is nobody to tell
	if strings.HasSuffix(text, "\n") {
		n.column = false
	}
}

// hasSaid says whether the words since the last execution are the answer.
func (n *narrator) hasSaid(answer string) bool {
	return strings.TrimSpace(n.said.String()) == strings.TrimSpace(answer)
}
