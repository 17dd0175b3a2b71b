package cli

import (
	"bytes"
	"io"
	"strings"
)

// A terminal that is told to marks what is pasted.
const (
	markPastes   = "\x1b[?2004h"
	unmarkPastes = "\x1b[?2004l"
	pasteBegins  = "\x1b[200~"
	pasteEnds    = "\x1b[201~"
)

// What stands for the ends of lines and tabs of a pasted text while it is edited in one line.
const (
	pastedLine = "⏎"
	pastedTab  = "⇥"
)

// pastes is a terminal's input. Lines that are pasted come as one, so that they are one question and not as many as there are lines; keys and
// escape sequences in them do nothing. plainly makes of it what was pasted.
type pastes struct {
	io.ReadCloser
	inside bool
	held   []byte // the beginning of a mark, perhaps
	ready  []byte
	ended  error
	cr     bool // the last byte was a carriage return
}

func (p *pastes) Read(into []byte) (int, error) {
	for len(p.ready) == 0 && p.ended == nil {
		var n int
		n, p.ended = p.ReadCloser.Read(into)
		p.take(append(p.held, into[:n]...))
	}
	if len(p.ready) == 0 {
		return 0, p.ended
	}
	n := copy(into, p.ready)
	p.ready = p.ready[n:]
	return n, nil
}

// take divides what came at the marks.
func (p *pastes) take(came []byte) {
	p.held = nil
	for {
		mark := pasteBegins
		if p.inside {
			mark = pasteEnds
		}
		before, after, found := bytes.Cut(came, []byte(mark))
		if !found && p.ended == nil {
			for n := min(len(mark)-1, len(before)); n > 0; n-- {
				if bytes.HasSuffix(before, []byte(mark[:n])) {
					p.held, before = bytes.Clone(before[len(before)-n:]), before[:len(before)-n]
					break
				}
			}
		}
		p.pass(before)
		if !found {
			return
		}
		p.inside, p.cr, came = !p.inside, false, after
	}
}

func (p *pastes) pass(text []byte) {
	if !p.inside {
		p.ready = append(p.ready, text...)
		return
	}
	for _, b := range text {
		switch {
		case b == '\n' && p.cr: // of a line's end that was seen
		case b == '\n' || b == '\r':
			p.ready = append(p.ready, pastedLine...)
		case b == '\t':
			p.ready = append(p.ready, pastedTab...)
		case b < 0x20 || b == 0x7f:
		default:
			p.ready = append(p.ready, b)
		}
		p.cr = b == '\r'
	}
}

// plainly is a line that may have been pasted as it was meant.
func plainly(line string) string {
	return strings.NewReplacer(pastedLine, "\n", pastedTab, "\t").Replace(line)
}
