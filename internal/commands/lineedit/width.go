package lineedit

import (
	"strings"

	"cove/internal/commands/terminal"
)

// visible is r as it is written to a terminal.
func visible(r rune) string {
	switch {
	case r == '\t':
		return strings.Repeat(" ", terminal.TabWidth)
	case terminal.Control(r):
		return ""
	}
	return string(r)
}
