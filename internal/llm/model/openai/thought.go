package openai

import "strings"

const (
	thoughtOpens  = "<think>"
	thoughtCloses = "</think>"
)

// thought takes what a model thinks out of its text, where a server leaves it there between <think> tags at the
// beginning of the answer.
type thought struct {
	state thoughtState
	held  string // text that may be the beginning of a tag
}

type thoughtState int

const (
	undecided thoughtState = iota
	thinking
	parting // between the tag and the first line of the answer
	speaking
)

// split returns the part of the next piece of text that is reasoning and the part that is answer.
func (t *thought) split(text string) (reasoning, answer string) {
	text = t.held + text
	t.held = ""
	if t.state == undecided {
		start := strings.TrimLeft(text, " \r\n\t")
		switch {
		case strings.HasPrefix(start, thoughtOpens):
			t.state, text = thinking, start[len(thoughtOpens):]
		case strings.HasPrefix(thoughtOpens, start):
			t.held = text
			return "", ""
		default:
			t.state = speaking
		}
	}
	switch t.state {
	case speaking:
		return "", text
	case parting:
		return "", t.begin(text)
	}
	if inner, rest, closed := strings.Cut(text, thoughtCloses); closed {
		t.state = parting
		return inner, t.begin(rest)
	}
	for n := min(len(text), len(thoughtCloses)-1); n > 0; n-- {
		if strings.HasSuffix(text, thoughtCloses[:n]) {
			t.held = text[len(text)-n:]
			return text[:len(text)-n], ""
		}
	}
	return text, ""
}

// begin drops the empty lines in front of the answer.
func (t *thought) begin(text string) string {
	text = strings.TrimLeft(text, "\r\n")
	if text != "" {
		t.state = speaking
	}
	return text
}

// rest returns what was held back in vain, once the answer is over.
func (t *thought) rest() (reasoning, answer string) {
	held := t.held
	t.held = ""
	if t.state == thinking {
		return held, ""
	}
	return "", held
}
