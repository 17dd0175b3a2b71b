package terminal

import (
	"regexp"
	"strings"
	"sync"
)

// Markup is Markdown that comes in pieces: its blocks are rows as soon as they are complete. The zero value has 10 columns.
type Markup struct {
	o       MarkdownOptions
	pending string // what is not complete
	begun   bool   // rows were returned
}

// NewMarkup returns a text without anything in it.
func NewMarkup(o MarkdownOptions) *Markup { return &Markup{o: o} }

// Resize says how wide the terminal is from now on.
func (m *Markup) Resize(columns int) { m.o.Columns = columns }

// Add takes more of the text, and returns the rows of the blocks that are complete now.
func (m *Markup) Add(more string) []string {
	m.pending += more
	if !strings.Contains(more, "\n") && strings.Contains(m.pending, "\n") && len(m.pending) < 4 {
		return nil
	}
	end := complete(m.pending)
	source := m.pending[:end]
	m.pending = m.pending[end:]
	return m.rows(source)
}

// Tail returns what lays out the block that is not complete. It may be called later, and elsewhere.
func (m *Markup) Tail() func() []string {
	now := *m
	return func() []string { return now.rows(now.pending) }
}

// Rest ends the text, and returns the rows of what was not complete.
func (m *Markup) Rest() []string {
	rows := m.rows(m.pending)
	m.pending, m.begun = "", false
	return rows
}

func (m *Markup) rows(source string) []string {
	rows := block(source, m.o)
	if len(rows) == 0 {
		return nil
	}
	if m.begun {
		rows = append([]string{""}, rows...)
	}
	m.begun = true
	return rows
}

// Lines that say where blocks begin and end.
var (
	fence = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("^[ \t>]*(?:[-*+]|[0-9]{1,9}[.)])?[ \t]*(```+|~~~+)([^`]*)$")
	})
	marker = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ {0,3}(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)`) })
)

// complete is how much of source is blocks that nothing can be added to: they end before an empty line outside of code, when what comes after it is
// neither indented nor another item of a list.
func complete(source string) int {
	open := ""     // the fence that is open
	begins := 0    // the present block
	list := false  // it is a list
	blank := false // the last line was empty
	end := 0
	for at := 0; at < len(source); {
		line, rest, whole := strings.Cut(source[at:], "\n")
		_ = rest
		empty := strings.TrimSpace(line) == ""
		if !empty && blank && open == "" && (whole || len(line) > 3) {
			item := marker().MatchString(line)
			if line[0] != ' ' && line[0] != '\t' && (!list || !item) {
				begins, end = at, at
			}
		}
		if at == begins {
			list = marker().MatchString(line)
		}
		if found := fence().FindStringSubmatch(line); found != nil && whole {
			switch {
			case open == "":
				open = found[1]
			case strings.HasPrefix(found[1], open) && strings.TrimSpace(found[2]) == "":
				open = ""
			}
		}
		blank = empty && whole
		if !whole {
			break
		}
		at += len(line) + 1
	}
	return end
}
