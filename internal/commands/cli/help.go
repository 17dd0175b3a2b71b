package cli

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"cove/internal/commands/terminal"
	"cove/internal/core/lang"
)

// sections are how the whole help groups the commands, in this order.
var sections = [][2]string{
	{"work", "Run code and ask:"}, {"things", "What code has:"}, {"past", "What was done before:"}, {"server", "Serve others:"}, {"machine", "This machine:"},
}

// Columns of the help: no narrower than the first two, whatever the terminal, and no wider than the third; without a terminal the fourth.
const (
	narrowest, leastAbout = 24, 22
	widest, usual         = 100, 80
)

// help prints the help of a command, and that of all of them in sections.
func help(_ kong.HelpOptions, ctx *kong.Context) error {
	h := newHelpText(ctx.Stdout)
	if here := ctx.Selected(); here != nil {
		h.command(here)
	} else {
		h.all(ctx.Model)
	}
	_, err := io.WriteString(ctx.Stdout, h.String())
	return err
}

// helpText is a help as it is written, for a terminal of so many columns.
type helpText struct {
	strings.Builder
	room int
}

// newHelpText is an empty help for w.
func newHelpText(w io.Writer) *helpText {
	room := usual
	if w := columns(w); w > 0 {
		room = min(max(w, narrowest), widest)
	}
	return &helpText{room: room}
}

// all says what each command does, in sections.
func (h *helpText) all(model *kong.Application) {
	of := map[string]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[grammar]()) {
		of[strings.ToLower(f.Name)] = f.Tag.Get("section")
	}
	h.WriteString(lang.Help("Usage: ") + "cove <command>\n\n")
	h.lines(model.Help, "")
	var inSections [][]*kong.Node
	longest := 0
	for _, s := range sections {
		var list []*kong.Node
		for _, c := range model.Children {
			if of[c.Name] == s[0] {
				list, longest = append(list, c), max(longest, len(c.Name))
			}
		}
		inSections = append(inSections, list)
	}
	for i, s := range sections {
		h.title(lang.Help(s[1]))
		for _, c := range inSections[i] {
			h.row(c.Name, longest, 2, c.Help)
		}
	}
	h.WriteString("\n")
	h.lines(lang.Help("cove COMMAND --help says more of a command; cove doctor, what this machine can do."), "")
}

// command says everything about one.
func (h *helpText) command(here *kong.Node) {
	h.WriteString(lang.Help("Usage: ") + "cove " + here.Summary() + "\n\n")
	h.paragraph(here.Help)
	for _, p := range paragraphs(here.Detail) {
		if isExample(p) {
			h.WriteString(p + "\n\n")
		} else {
			h.paragraph(p)
		}
	}
	text := strings.TrimRight(h.String(), "\n")
	h.Reset()
	h.WriteString(text + "\n")
	var rows [][2]string
	for _, p := range here.Positional {
		rows = append(rows, [2]string{p.Summary(), p.Help})
	}
	h.rows(lang.Help("Arguments:"), rows)
	rows = nil
	for i, group := range here.AllFlags(true) {
		if i > 0 {
			rows = append(rows, [2]string{})
		}
		for _, f := range group {
			rows = append(rows, [2]string{flagWords(f), f.Help})
		}
	}
	h.rows(lang.Help("Flags:"), rows)
	rows = nil
	for _, c := range here.Children {
		if !c.Hidden {
			rows = append(rows, [2]string{c.Path(), c.Help})
		}
	}
	h.rows(lang.Help("Commands:"), rows)
}

// flagWords is how a flag is written.
func flagWords(f *kong.Flag) string {
	short := "    "
	if f.Short != 0 {
		short = "-" + string(f.Short) + ", "
	}
	name := f.Name
	if f.IsBool() && f.Tag.Negatable != "" {
		name = "[no-]" + name
	}
	if f.IsBool() || f.IsCounter() {
		return short + "--" + name
	}
	return short + "--" + name + "=" + f.FormatPlaceHolder()
}

// paragraphs are those of a long help: text as one line, and examples, which are indented, as they are.
func paragraphs(detail string) (all []string) {
	for p := range strings.SplitSeq(strings.Trim(detail, "\n"), "\n\n") {
		if p = strings.Trim(p, "\n"); !isExample(p) {
			p = strings.Join(strings.Fields(p), " ")
		}
		if p != "" {
			all = append(all, p)
		}
	}
	return all
}

func isExample(paragraph string) bool { return strings.HasPrefix(paragraph, "    ") }

func (h *helpText) title(text string) { h.WriteString("\n" + text + "\n") }

// paragraph writes text in lines, and an empty one.
func (h *helpText) paragraph(text string) {
	h.lines(text, "")
	h.WriteString("\n")
}

// lines writes text in lines with a margin, of which the first has it already.
func (h *helpText) lines(text, margin string) {
	for i, l := range terminal.Wrap(text, h.room-len(margin)) {
		if i > 0 {
			h.WriteString(margin)
		}
		h.WriteString(l + "\n")
	}
}

// rows writes what things are in two columns, under a title.
func (h *helpText) rows(title string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	h.title(title)
	most := max(375*h.room/1000, 30)
	longest := 0
	for _, r := range rows {
		if w := len(r[0]); w < most {
			longest = max(longest, w)
		}
	}
	for _, r := range rows {
		if r[0] == "" {
			h.WriteString("\n")
			continue
		}
		h.row(r[0], longest, 4, r[1])
	}
}

// row writes one thing and what it is, beside it where there is room for both.
func (h *helpText) row(what string, longest, gap int, about string) {
	margin := 2 + longest + gap
	switch {
	case h.room-margin < leastAbout:
		margin = 8
		fmt.Fprintf(h, "  %s\n%*s", what, margin, "")
	case len(what) > longest:
		fmt.Fprintf(h, "  %s\n%*s", what, margin, "")
	default:
		fmt.Fprintf(h, "  %-*s", longest+gap, what)
	}
	h.lines(about, strings.Repeat(" ", margin))
}

// speak has the help of a command, and of what is below it, say what the catalogue has. Variables in the texts were filled in before, and are anew.
func speak(here *kong.Node, vars map[string]string) {
	here.Help = lang.Help(here.Help)
	var detail []string
	for _, p := range paragraphs(here.Detail) {
		detail = append(detail, lang.Help(p))
	}
	here.Detail = strings.Join(detail, "\n\n")
	for _, p := range here.Positional {
		p.Help = filled(p, vars)
	}
	for _, f := range here.Flags {
		f.Help = filled(f.Value, vars)
	}
	for _, c := range here.Children {
		speak(c, vars)
	}
}

// filled is the help of a flag or an argument in the language of the process.
func filled(v *kong.Value, vars map[string]string) string {
	text := lang.Help(v.OrigHelp)
	if text == v.OrigHelp {
		return v.Help
	}
	text = strings.ReplaceAll(text, "${default}", v.Default)
	for name, value := range vars {
		text = strings.ReplaceAll(text, "${"+name+"}", value)
	}
	return text
}
