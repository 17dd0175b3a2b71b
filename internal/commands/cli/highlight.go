package cli

import (
	"strings"

	"github.com/alecthomas/chroma/v2"
)

// highlighter colours Python line by line while it is being written. It uses the terminal's own sixteen colours, so
// that it fits dark and light terminals.
type highlighter struct {
	lexer chroma.Lexer
	code  strings.Builder
	shown int // lines
}

func newHighlighter() *highlighter { return &highlighter{lexer: newPythonLexer()} }

// add takes more of the code and returns the lines that are complete now, coloured, without line ends.
func (h *highlighter) add(delta string) []string {
	h.code.WriteString(delta)
	if !strings.Contains(delta, "\n") {
		return nil
	}
	text := h.code.String()
	return h.lines(text[:strings.LastIndexByte(text, '\n')+1])
}

// rest returns what was not shown yet and forgets the code.
func (h *highlighter) rest() []string {
	out := h.lines(h.code.String())
	h.code.Reset()
	h.shown = 0
	return out
}

// lines colours text from its beginning, because a string may span lines, and returns what is new.
func (h *highlighter) lines(text string) []string {
	var out []string
	for i, line := range h.colour(text) {
		if i >= h.shown {
			out = append(out, line)
		}
	}
	h.shown += len(out)
	return out
}

// looksOf are the SGR numbers of the runes of a program.
func looksOf(text string) []string {
	if len(text) > mostHighlighted {
		return nil
	}
	tokens, err := newPythonLexer().Tokenise(nil, text)
	if err != nil {
		return nil
	}
	var out []string
	for _, t := range tokens.Tokens() {
		look := colourOf(t.Type)
		for range t.Value {
			out = append(out, look)
		}
	}
	return out
}

// mostHighlighted bounds what is coloured with each key that is pressed.
const mostHighlighted = 16 << 10

func (h *highlighter) colour(text string) []string {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	tokens, err := h.lexer.Tokenise(nil, text)
	if err != nil {
		return strings.Split(text, "\n")
	}
	var out []string
	for _, line := range chroma.SplitTokensIntoLines(tokens.Tokens()) {
		var b strings.Builder
		for _, t := range line {
			value := strings.TrimRight(t.Value, "\n")
			if colour := colourOf(t.Type); colour != "" && strings.TrimSpace(value) != "" {
				value = "\x1b[" + colour + "m" + value + "\x1b[0m"
			}
			b.WriteString(value)
		}
		out = append(out, b.String())
	}
	return out
}

func colourOf(t chroma.TokenType) string {
	switch {
	case t.InCategory(chroma.Comment):
		return "2"
	case t.InCategory(chroma.Keyword), t == chroma.OperatorWord:
		return "35"
	case t.InSubCategory(chroma.LiteralString):
		return "32"
	case t.InSubCategory(chroma.LiteralNumber):
		return "36"
	case t == chroma.NameFunction, t == chroma.NameClass, t == chroma.NameDecorator:
		return "34"
	case t == chroma.NameBuiltin:
		return "33"
	}
	return ""
}
