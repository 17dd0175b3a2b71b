package lang

import (
	"fmt"
	"strconv"
	"strings"
)

// Entry is one of a catalogue: a text of the program and what it is in another language, "" where that is not known yet.
type Entry struct {
	ID, Text string
	Line     int // where it begins
}

// ParsePO reads a file of GNU gettext's form, as far as catalogues here have it: msgid and msgstr, each of one or more quoted lines, and comments. The header, whose
// msgid is empty, is left out.
func ParsePO(text string) ([]Entry, error) {
	var all []Entry
	var now *string // what further quoted lines belong to
	line := 0
	for row := range strings.Lines(text) {
		line++
		row = strings.TrimSpace(row)
		quoted := row
		switch word, rest, _ := strings.Cut(row, " "); {
		case row == "" || row[0] == '#':
			now = nil
			continue
		case word == "msgid":
			all = append(all, Entry{Line: line})
			now, quoted = &all[len(all)-1].ID, rest
		case word == "msgstr" && len(all) > 0:
			now, quoted = &all[len(all)-1].Text, rest
		case row[0] != '"' || now == nil:
			return nil, fmt.Errorf("line %d is neither msgid, msgstr, a quoted line nor a comment", line)
		}
		part, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("line %d has no text in quotation marks", line)
		}
		*now += part
	}
	if len(all) > 0 && all[0].ID == "" {
		all = all[1:]
	}
	return all, nil
}
