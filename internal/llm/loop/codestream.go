package loop

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// codeStream reads the JSON arguments of a python call as they arrive and returns the code in them as soon as it is
// known: the string under "code" of the outermost object, or a string that stands alone. It never fails; whether the
// arguments are valid is decided when they are complete. Raw line ends in strings, which some models write, pass.
type codeStream struct {
	nested bool // the object with the code is under "arguments" or "parameters" of the outermost one

	stack     []byte // open containers, '{' or '['
	expectKey bool
	key       []byte // the last key of the innermost object
	outer     string // the key of the outermost object that the second one is under
	text      textState
	hex       []byte // digits of the \u escape being read
	high      rune   // a high surrogate that waits for its other half, or 0
	raw       []byte // decoded code that is not returned yet; may end inside a UTF-8 sequence
	done      bool
}

// textState says where in a string the stream is.
type textState struct {
	in, key, code bool // in a string; it is a key; it is the code
	escape        int  // 0 no escape, 1 after a backslash, 2 in the digits of a \u escape
}

// write takes the next piece of JSON and returns the code that it completes, always whole characters.
func (s *codeStream) write(piece string) string {
	for n := 0; n < len(piece); n++ {
		if s.text.in {
			s.inText(piece[n])
		} else {
			s.outside(piece[n])
		}
	}
	return s.take(!s.text.code)
}

func (s *codeStream) outside(c byte) {
	switch c {
	case '{', '[':
		if len(s.stack) == 1 {
			s.outer = string(s.key)
		}
		s.stack = append(s.stack, c)
		s.expectKey = c == '{'
	case '}', ']':
		if len(s.stack) > 0 {
			s.stack = s.stack[:len(s.stack)-1]
		}
		s.expectKey = false
	case ',':
		s.expectKey = len(s.stack) > 0 && s.stack[len(s.stack)-1] == '{'
	case '"':
		s.text = textState{in: true, key: s.expectKey, code: !s.expectKey && s.isCode()}
		if s.expectKey {
			s.key = s.key[:0]
		}
		s.expectKey = false
	}
}

// isCode says whether the string value that begins here is the code.
func (s *codeStream) isCode() bool {
	depth := len(s.stack)
	switch {
	case s.done:
		return false
	case s.nested:
		return depth == 2 && s.stack[1] == '{' && string(s.key) == "code" &&
			(s.outer == "arguments" || s.outer == "parameters")
	case depth == 0:
		return true
	default:
		return depth == 1 && s.stack[0] == '{' && string(s.key) == "code"
	}
}

func (s *codeStream) inText(c byte) {
	switch {
	case s.text.escape == 1:
		s.escaped(c)
	case s.text.escape == 2:
		s.hex = append(s.hex, c)
		if len(s.hex) == 4 {
			s.text.escape = 0
			s.unicode()
		}
	case c == '\\':
		s.text.escape = 1
	case c == '"':
		s.loneSurrogate()
		s.done = s.done || s.text.code
		s.text = textState{}
	default:
		s.loneSurrogate()
		s.put(c)
	}
}

func (s *codeStream) escaped(c byte) {
	s.text.escape = 0
	if c == 'u' {
		s.text.escape, s.hex = 2, s.hex[:0]
		return
	}
	s.loneSurrogate()
	switch c {
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	}
	s.put(c)
}

func (s *codeStream) unicode() {
	v, err := strconv.ParseUint(string(s.hex), 16, 32)
	r := rune(v)
	if err != nil {
		r = utf8.RuneError
	}
	if s.high != 0 {
		if both := utf16.DecodeRune(s.high, r); both != utf8.RuneError {
			s.high = 0
			s.putRune(both)
			return
		}
		s.loneSurrogate()
	}
	switch {
	case !utf16.IsSurrogate(r):
		s.putRune(r)
	case r < 0xDC00:
		s.high = r
	default:
		s.putRune(utf8.RuneError)
	}
}

// loneSurrogate ends the wait for the other half of a surrogate pair.
func (s *codeStream) loneSurrogate() {
	if s.high != 0 {
		s.high = 0
		s.putRune(utf8.RuneError)
	}
}

func (s *codeStream) putRune(r rune) {
	for _, c := range utf8.AppendRune(nil, r) {
		s.put(c)
	}
}

func (s *codeStream) put(c byte) {
	switch {
	case s.text.code:
		s.raw = append(s.raw, c)
	case s.text.key:
		s.key = append(s.key, c)
	}
}

// take returns the whole characters of raw; with all, what is left of a broken one too.
func (s *codeStream) take(all bool) string {
	var out []byte
	for len(s.raw) > 0 && (all || utf8.FullRune(s.raw)) {
		r, n := utf8.DecodeRune(s.raw)
		out = utf8.AppendRune(out, r)
		s.raw = s.raw[n:]
	}
	return string(out)
}
