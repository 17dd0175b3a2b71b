package cli

import (
	"fmt"
	"io"
	"math"
	"strings"

	"cove/internal/code/advice"
	"cove/internal/commands/terminal"
	"cove/internal/core/lang"
)

const (
	profiledShown = 20 // lines of a profile
	barWidth      = 30 // columns
	leastShown    = 0.005
)

// checkView shows what cove check found as text.
type checkView struct {
	p      *Program
	colour bool
}

func (v checkView) paint(code, text string) string {
	if !v.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// severityColours are SGR parameters: red, yellow and none.
var severityColours = map[advice.Severity]string{advice.Error: "31", advice.Warning: "33", advice.Note: "2"}

// report shows one file. Columns are padded before they are coloured, so that they stay aligned.
func (v checkView) report(r advice.Report) error {
	var b strings.Builder
	b.WriteString(v.paint("1", oneLine(r.File)) + "\n")
	where, rule := 0, 0
	for _, f := range r.Findings {
		where, rule = max(where, terminal.Width(place(f))), max(rule, len(f.Rule))
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "  %s  %s  %-*s  %s\n", padded(place(f), where), v.paint(severityColours[f.Severity], padded(severityWord(f.Severity), 7)), rule, oneLine(f.Rule), lang.Text(oneLine(f.Message)))
		indent := strings.Repeat(" ", where+rule+15)
		if f.Better != "" {
			b.WriteString(indent + v.paint("32", lang.Sprintf("better: %s", lang.Phrase(oneLine(f.Better)))) + "\n")
		}
		if m := f.Measured; m != nil {
			lang.Fprintf(&b, "%smeasured here with %d: %s, the faster form %s: %s times as fast\n", indent, m.Size, duration(m.Slow), duration(m.Fast), times(m.Ratio()))
		}
	}
	if len(r.Findings) == 0 {
		b.WriteString("  " + lang.Text("nothing was found") + "\n")
	}
	if r.Profile != nil {
		v.profile(&b, *r.Profile)
	}
	for _, note := range r.Notes {
		b.WriteString("  " + v.paint("2", lang.Sprintf("note: %s", lang.Text(oneLine(note)))) + "\n")
	}
	_, err := io.WriteString(v.p.Out, b.String())
	return err
}

// severityWord is the word for how bad a finding is.
func severityWord(s advice.Severity) string {
	switch s {
	case advice.Error:
		return lang.Text("error")
	case advice.Warning:
		return lang.Text("warning")
	}
	return lang.Text("note")
}

// place is where a finding is: LINE:COLUMN, with the cell before it in a notebook.
func place(f advice.Finding) string {
	at := fmt.Sprintf("%d:%d", f.Line, f.Column)
	if f.Cell > 0 {
		at = lang.Sprintf("cell %d, ", f.Cell) + at
	}
	return at
}

// profile shows the lines that took most.
func (v checkView) profile(b *strings.Builder, p advice.LineProfile) {
	how := "ended" // how, a note says
	if p.Exit != nil {
		how = fmt.Sprintf("ended with exit code %d", *p.Exit)
	}
	memory := ""
	if p.Peak > 0 {
		memory = ", with at most " + humanSize(p.Peak) + " of memory in use"
	}
	lang.Fprintf(b, "\n  The program %s after %s%s.\n", lang.Text(how), duration(p.Seconds), lang.Text(memory))
	if p.Output != "" {
		for line := range strings.Lines(p.Output) {
			b.WriteString("    " + oneLine(strings.TrimRight(line, "\n")) + "\n")
		}
	}
	t := newRows(b, true)
	shown := 0
	for _, l := range p.Lines {
		if l.Seconds() < leastShown*p.Seconds && l.Peak < 1<<20 || shown == profiledShown {
			continue
		}
		if shown == 0 {
			t.head("  TIME", "PYTHON", "NATIVE", "SYSTEM", "MEMORY", "LINE", "  CODE")
		}
		shown++
		at := fmt.Sprint(l.Line)
		if l.Cell > 0 {
			at = lang.Sprintf("cell %d, ", l.Cell) + fmt.Sprint(l.Line)
		}
		if l.File != "" {
			at = fmt.Sprintf("%s:%d", oneLine(shortenedTo(l.File, 40)), l.Line)
		}
		memory := "-"
		if l.Peak > 0 {
			memory = humanSize(l.Peak)
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\t  %s\n", duration(l.Seconds()), duration(l.Python), duration(l.Native), duration(l.System), memory, at, oneLine(shortenedTo(strings.TrimSpace(l.Code), 70)))
	}
	_ = t.Flush() // to memory
}

// total says how much was found in all.
func (v checkView) total(reports []advice.Report) error {
	counts := map[advice.Severity]int{}
	n := 0
	for _, r := range reports {
		for _, f := range r.Findings {
			counts[f.Severity]++
			n++
		}
	}
	text := lang.Sprintf("\n%s in %s", count(n, "finding"), count(len(reports), "file"))
	if n > 0 {
		text += lang.Joint(": ") + strings.Join([]string{count(counts[advice.Error], "error"), count(counts[advice.Warning], "warning"), count(counts[advice.Note], "note")}, lang.Joint(", "))
	}
	_, err := fmt.Fprintln(v.p.Out, text)
	return err
}

// measured shows the slow forms beside the faster ones.
func (v checkView) measured(all []advice.Measured) error {
	t := newRows(v.p.Out, false)
	t.head("FORM", "SIZE", "SLOW", "FAST", "TIMES AS FAST")
	for _, m := range all {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\n", m.Rule, m.Size, duration(m.Slow), duration(m.Fast), times(m.Ratio()))
	}
	return t.Flush()
}

// benchmark shows how long programs took, with a bar for the time beyond the start of Python.
func (v checkView) benchmark(b advice.Benchmark) error {
	longest := 0.0
	for _, m := range b.Timed {
		longest = max(longest, m.Time-b.Start)
	}
	t := newRows(v.p.Out, false)
	t.head("PROGRAM", "SIZE", "TIME", "SPREAD", "MEMORY", "")
	for _, m := range b.Timed {
		size, memory := "-", "-"
		if m.Size > 0 {
			size = fmt.Sprint(m.Size)
		}
		if m.Memory > 0 {
			memory = humanSize(m.Memory)
		}
		bar := ""
		if own := m.Time - b.Start; own > 0 && longest > 0 {
			bar = strings.Repeat("█", int(math.Ceil(barWidth*own/longest)))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t± %s\t%s\t%s\n", oneLine(m.Program), size, duration(m.Time), duration(m.Spread), memory, bar)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var text strings.Builder
	lang.Fprintf(&text, "\nThe start of Python takes %s of each time.\n", duration(b.Start))
	for _, m := range b.Timed {
		if m.Against != nil {
			text.WriteString(lang.Text(comparison(m)) + "\n")
		}
	}
	for _, g := range b.Growth {
		lang.Fprintf(&text, "The time of %s %s: size to the power of %.2f, from %s.\n", oneLine(g.Program), lang.Text(oneLine(g.Words)), g.Exponent, count(g.Sizes, "size"))
	}
	if b.Growth == nil && len(b.Timed) > 0 && b.Timed[0].Size != b.Timed[len(b.Timed)-1].Size {
		text.WriteString(lang.Text("The program runs for too short a time with these sizes to say how it grows; give larger ones.") + "\n")
	}
	_, err := io.WriteString(v.p.Out, text.String())
	return err
}

// comparison says in a sentence how the second program did beside the first.
func comparison(m advice.Timed) string {
	a := m.Against
	text := oneLine(m.Program)
	if m.Size > 0 {
		text += fmt.Sprintf(" with %d", m.Size)
	}
	switch {
	case !a.Certain:
		text += " takes as long as the first, as far as the spread lets that be said"
	case a.Ratio < 1:
		text += fmt.Sprintf(" is %s times as fast", times(1/a.Ratio))
	default:
		text += fmt.Sprintf(" takes %s times as long", times(a.Ratio))
	}
	if !a.Same {
		return text + ", and prints something else."
	}
	return text + ", and prints the same."
}

// times is a ratio with as many digits as mean something.
func times(ratio float64) string {
	if ratio < 10 {
		return fmt.Sprintf("%.1f", ratio)
	}
	return fmt.Sprintf("%.0f", ratio)
}

// duration is a time with as many digits as mean something.
func duration(seconds float64) string {
	switch {
	case seconds <= 0:
		return "-"
	case seconds < 0.0001:
		return fmt.Sprintf("%.0f µs", seconds*1e6)
	case seconds < 0.01:
		return fmt.Sprintf("%.1f ms", seconds*1e3)
	case seconds < 1:
		return fmt.Sprintf("%.0f ms", seconds*1e3)
	}
	return fmt.Sprintf("%.1f s", seconds)
}
