package terminal

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// TabWidth is how many columns a tab takes, wherever it stands.
const TabWidth = 4

// RuneWidth is how many columns a terminal gives to r: two for the characters of East Asian scripts and most emoji, none for marks that are shown on
// the character before.
func RuneWidth(r rune) int {
	switch {
	case r == '\t':
		return TabWidth
	case Control(r) || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Width is how many columns text takes, which has neither line ends nor escape sequences.
func Width(text string) int {
	n := 0
	for _, r := range text {
		n += RuneWidth(r)
	}
	return n
}

// Cut is the beginning of text that has room in so many columns, with a sign where something was cut off.
func Cut(text string, columns int) string {
	if Width(text) <= columns {
		return text
	}
	var b strings.Builder
	used := 0
	for _, r := range text {
		if used += RuneWidth(r); used > columns-1 {
			break
		}
		b.WriteRune(r)
	}
	return b.String() + "…"
}

// Control says that r is none that can be shown.
func Control(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// direction says that r changes the direction in which text is read, which makes it look like another one.
func direction(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }
