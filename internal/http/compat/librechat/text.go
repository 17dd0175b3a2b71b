package librechat

import (
	"fmt"
	"strings"
)

// text is what code has written, as far as an answer has room for it.
type text struct {
	out, err strings.Builder
	room     int64 // bytes
	most     int64
	cut      bool
}

func newText(most int64) *text { return &text{room: most, most: most} }

func (t *text) stdout(s string) { t.add(&t.out, s) }
func (t *text) stderr(s string) { t.add(&t.err, s) }

func (t *text) add(to *strings.Builder, s string) {
	if int64(len(s)) > t.room {
		s, t.cut = s[:t.room], true
	}
	to.WriteString(s)
	t.room -= int64(len(s))
}

// into puts the texts into an answer.
func (t *text) into(a *answer) {
	a.Stdout, a.Stderr = strings.ToValidUTF8(t.out.String(), "\ufffd"), strings.ToValidUTF8(t.err.String(), "\ufffd")
	if t.cut {
		a.sayCut(t.most)
	}
}

func (a *answer) sayCut(most int64) {
	a.say(fmt.Sprintf("the output is longer than the %d bytes that are shown; write it into a file", most))
}
