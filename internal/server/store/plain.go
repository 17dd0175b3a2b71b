package store

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// markdown has the marks of Markdown. Each takes time in the length of the text: package regexp has no other.
type markdown struct{ fence, rule, link, begin, strong, emphasis, cell *regexp.Regexp }

var markdownOnce = sync.OnceValue(func() markdown {
	return markdown{
		fence: regexp.MustCompile("(?m)^[ \\t]*(```|~~~)[\\w+-]*[ \\t]*$"),
		// The line below a table's head, or across the page.
		rule:     regexp.MustCompile(`(?m)^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(\|[ \t]*:?-{2,}:?[ \t]*)*\|?[ \t]*$`),
		link:     regexp.MustCompile(`!?\[([^\[\]\n]*)\]\([^()\s]*\)`),
		begin:    regexp.MustCompile(`(?m)^[ \t]*(#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+|\|[ \t]*)`),
		strong:   regexp.MustCompile(`\*\*|__|~~|` + "`"),
		emphasis: regexp.MustCompile(`(^|[\s(])[*_]([^\s*_][^*_\n]*)[*_]`),
		cell:     regexp.MustCompile(`[ \t]*\|[ \t]*`),
	}
})

// plainText is an answer as people read it: without the marks of Markdown, and with a dot between the cells of a table.
func plainText(text string) string {
	m := markdownOnce()
	text = m.fence.ReplaceAllString(text, "")
	text = m.rule.ReplaceAllString(text, "")
	text = m.link.ReplaceAllString(text, "$1")
	text = m.begin.ReplaceAllString(text, "")
	text = m.strong.ReplaceAllString(text, "")
	text = m.emphasis.ReplaceAllString(text, "$1$2")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.Contains(line, "|") {
			lines[i] = strings.TrimSuffix(m.cell.ReplaceAllString(strings.TrimRight(line, " \t|"), " · "), " · ")
		}
	}
	return strings.Join(lines, "\n")
}

// wholeWords takes the part of a word away that is left where a text was cut. Scripts without spaces, and words that are as long as what is shown, stay.
func wholeWords(text []rune, cutBefore, cutAfter bool) []rune {
	const most = 30
	if cutBefore {
		for i := range min(len(text), most) {
			if isDense(text[i]) {
				break
			}
			if unicode.IsSpace(text[i]) {
				text = text[i+1:]
				break
			}
		}
	}
	if cutAfter {
		for i := len(text) - 1; i > max(0, len(text)-most); i-- {
			if isDense(text[i]) {
				break
			}
			if unicode.IsSpace(text[i]) {
				text = text[:i]
				break
			}
		}
	}
	return text
}
