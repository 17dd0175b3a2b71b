package cli

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// escapes makes foreign text safe to show on a terminal: it lets colours (SGR) through and drops every other escape
// sequence, control characters and characters that reverse the reading direction. It keeps its state between calls,
// because a sequence may be cut anywhere. The zero value is ready.
type escapes struct {
	state   escapeState
	seq     []byte // the control sequence so far
	pending []byte // the start of a rune that is not complete yet
}

type escapeState int

const (
	inText escapeState = iota
	afterEscape
	inControl  // CSI: ends with a byte from '@' to '~'
	inString   // OSC, DCS, APC, PM, SOS: ends with BEL or ST
	stringExit // an escape inside a string: '\' ends it
)

// longestSequence bounds what is remembered of a sequence; longer ones are dropped whole.
const longestSequence = 64

// clean returns the part of text that may be shown now.
func (e *escapes) clean(text []byte) string {
	var out strings.Builder
	data := slices.Concat(e.pending, text)
	e.pending = nil
	for len(data) > 0 {
		if !utf8.FullRune(data) {
			e.pending = append([]byte(nil), data...)
			break
		}
		r, size := utf8.DecodeRune(data)
		e.step(r, data[:size], &out)
		data = data[size:]
	}
	return out.String()
}

func (e *escapes) step(r rune, raw []byte, out *strings.Builder) {
	switch e.state {
	case inText:
		e.text(r, out)
	case afterEscape:
		e.introduce(r)
	case inControl:
		e.control(r, raw, out)
	case inString:
		switch r {
		case 0x07, 0x9c:
			e.state = inText
		case 0x1b:
			e.state = stringExit
		}
	case stringExit:
		e.state = inString
		if r == '\\' {
			e.state = inText
		}
	}
}

func (e *escapes) text(r rune, out *strings.Builder) {
	switch {
	case r == 0x1b:
		e.state = afterEscape
	case r == 0x9b:
		e.state, e.seq = inControl, nil
	case r == 0x90 || r == 0x98 || r == 0x9d || r == 0x9e || r == 0x9f:
		e.state = inString
	case r == '\n' || r == '\t' || r == '\r':
		out.WriteRune(r)
	case r < 0x20 || (r >= 0x7f && r < 0xa0) || isDirection(r):
	default:
		out.WriteRune(r) // an invalid byte has become U+FFFD
	}
}

func isDirection(r rune) bool {
	return (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069)
}

func (e *escapes) introduce(r rune) {
	e.state = inText
	switch r {
	case '[':
		e.state, e.seq = inControl, nil
	case ']', 'P', 'X', '^', '_':
		e.state = inString
	case 0x1b:
		e.state = afterEscape
	case '(', ')', '*', '+', '#', '%', ' ':
		e.state, e.seq = inControl, append(e.seq[:0], '(') // a character set: one more byte, then over
	}
}

func (e *escapes) control(r rune, raw []byte, out *strings.Builder) {
	if r == 0x1b { // the sequence was broken off
		e.state = afterEscape
		return
	}
	if len(e.seq) <= longestSequence {
		e.seq = append(e.seq, raw...)
	}
	if e.seq[0] != '(' && (r < '@' || r > '~') {
		return
	}
	if r == 'm' && len(e.seq) <= longestSequence && strings.Trim(string(e.seq[:len(e.seq)-1]), "0123456789;:") == "" {
		out.WriteString("\x1b[" + string(e.seq))
	}
	e.state, e.seq = inText, nil
}

// oneLine makes a hostile name fit to be shown in the middle of a line.
func oneLine(s string) string {
	var e escapes
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' || r == 0x1b {
			return ' '
		}
		return r
	}, e.clean([]byte(s)))
}
