package builder

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"cove/internal/machine/process"
)

const (
	longestLine = 2000 // bytes of a line of a log
	mostLast    = 5    // lines of a command's output that its failure says
)

// lines makes lines of what a command emits.
type lines struct {
	say  func(level Level, text string)
	rest map[process.Kind][]byte
	last []string
}

func (l *lines) take(kind process.Kind, data []byte) {
	if kind != process.Stdout && kind != process.Stderr {
		return
	}
	if l.rest == nil {
		l.rest = map[process.Kind][]byte{}
	}
	all := slices.Concat(l.rest[kind], data)
	for {
		at := bytes.IndexAny(all, "\r\n")
		if at < 0 && len(all) < longestLine {
			break
		}
		if at < 0 || at > longestLine {
			l.line(all[:longestLine])
			all = all[longestLine:]
			continue
		}
		l.line(all[:at])
		all = all[at+1:]
	}
	l.rest[kind] = bytes.Clone(all)
}

// end tells what has no line end.
func (l *lines) end() {
	for _, kind := range []process.Kind{process.Stdout, process.Stderr} {
		l.line(l.rest[kind])
	}
	l.rest = nil
}

func (l *lines) line(raw []byte) {
	text := strings.TrimRight(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' && r != '\x1b' { // colors are for the client to show, or not
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(raw), "�")), " ")
	if text == "" {
		return
	}
	l.say(Info, text)
	if l.last = append(l.last, text); len(l.last) > mostLast {
		l.last = l.last[1:]
	}
}
