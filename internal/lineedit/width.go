package lineedit

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// tabWidth is how many columns a tab takes, wherever it stands.
const tabWidth = 4

// runeWidth is how many columns a terminal gives to r: two for the characters of East Asian scripts and most emoji, none for marks that are shown on
// the character before.
func runeWidth(r rune) int {
	switch {
	case r == '\t':
		return tabWidth
	case control(r) || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// visible is r as it is written to a terminal.
func visible(r rune) string {
	switch {
	case r == '\t':
		return strings.Repeat(" ", tabWidth)
	case control(r):
		return ""
	}
	return string(r)
}
