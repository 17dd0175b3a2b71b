package librechat

import (
	"fmt"
	"strings"

	"cove/internal/kernel"
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

// take takes what an event says, and returns the figure that it shows, if any.
func (t *text) take(e kernel.Event) (figure string) {
	switch e := e.(type) {
	case kernel.Stream:
		if e.Name == "stderr" {
			t.stderr(string(e.Data))
		} else {
			t.stdout(string(e.Data))
		}
	case kernel.Display:
		return t.bundle(e.Data)
	case kernel.Result:
		return t.bundle(e.Data)
	case kernel.Rollback:
		t.stderr(e.String() + "\n")
	case kernel.Error:
		t.stderr(strings.Join(e.Traceback, "\n") + "\n")
		if e.Hint != "" {
			t.stderr(e.Hint + "\n")
		}
	}
	return ""
}

// bundle takes an object as a figure, or else as text.
func (t *text) bundle(data kernel.Bundle) (figure string) {
	if png, ok := data["image/png"].(string); ok {
		return strings.Join(strings.Fields(png), "")
	}
	if plain, ok := data["text/plain"].(string); ok {
		t.stdout(plain + "\n")
	}
	return ""
}

// into puts the texts into an answer.
func (t *text) into(a *answer) {
	a.Stdout, a.Stderr = strings.ToValidUTF8(t.out.String(), "\ufffd"), strings.ToValidUTF8(t.err.String(), "\ufffd")
	if t.cut {
		a.say(fmt.Sprintf("the output is longer than the %d bytes that are shown; write it into a file", t.most))
	}
}
