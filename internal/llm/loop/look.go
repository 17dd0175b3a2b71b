package loop

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"cove/internal/code/advice"
)

const (
	lookPatience = time.Minute // of one look; the first may install what it needs
	findingsTold = 10          // findings that a model is told of one execution
	findingChars = 300         // of one of them
)

// look looks at code that has run, where the turn asks for that, and tells of what was found, the model behind the code's result.
func (t *turn) look(ctx context.Context, step int, code string, o *outcome) error {
	if t.spec.Look == nil {
		return nil
	}
	looking, cancel := context.WithTimeout(ctx, t.deadline.left(time.Millisecond, lookPatience))
	r := t.spec.Look(looking, step, code)
	cancel()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case len(r.Findings) == 0 && len(r.Notes) == 0:
		return nil
	}
	if words := findingsWords(r.Findings); words != "" {
		o.text = ensureLine(o.text) + words
	}
	return t.emit(Findings{Step: step, Items: r.Findings, Notes: r.Notes})
}

// findingsWords is what a model reads of findings: mistakes and slow forms, no matters of taste. The texts come from a sandbox.
func findingsWords(all []advice.Finding) string {
	var lines []string
	more := 0
	for _, f := range all {
		switch {
		case !f.Severity.AtLeast(advice.Warning):
		case len(lines) == findingsTold:
			more++
		default:
			line := fmt.Sprintf("- line %d: %s", f.Line, f.Message)
			if f.Better != "" {
				line += "; better: " + f.Better
			}
			lines = append(lines, cutMiddle(printable(line), findingChars))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more", more))
	}
	return "[A check of this code found:\n" + strings.Join(lines, "\n") + "\nWrite the code that follows without these; run code again only if its result is wrong because of them.]"
}

// printable replaces what has no shape on paper, such as control characters, by spaces.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
