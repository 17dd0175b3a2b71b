package lineedit

import (
	"bytes"
	"unicode/utf8"

	"cove/internal/commands/terminal"
)

// key is one that was pressed: text, or what it is called.
type key struct {
	text []rune // to be put in
	name string // "" for text
}

const (
	pasteBegins = "\x1b[200~"
	pasteEnds   = "\x1b[201~"
)

const ctrlX = 0x18

// decoder makes keys of what a terminal sends.
type decoder struct {
	pending []byte
	pasting bool
	cr      bool // the last that was pasted was a carriage return
}

func (d *decoder) add(b []byte) { d.pending = append(d.pending, b...) }

// next takes the next key. It returns false until what has come is a whole one.
func (d *decoder) next() (key, bool) {
	for len(d.pending) > 0 {
		if d.pasting {
			text, ok := d.pasted()
			if len(text) > 0 {
				return key{text: text}, true
			}
			if !ok {
				return key{}, false
			}
			continue
		}
		k, n := decode(d.pending)
		if n == 0 {
			return key{}, false
		}
		d.pending = d.pending[n:]
		switch {
		case k.name == "paste":
			d.pasting, d.cr = true, false
		case k.name != "" || len(k.text) > 0:
			return k, true
		}
	}
	return key{}, false
}

// pasted takes what has come of a paste. ok is false until more comes.
func (d *decoder) pasted() (text []rune, ok bool) {
	content, after, found := bytes.Cut(d.pending, []byte(pasteEnds))
	keep := 0
	if !found {
		keep = min(len(pasteEnds)-1, len(content))
		for keep > 0 && !bytes.HasSuffix(content, []byte(pasteEnds[:keep])) {
			keep--
		}
		for back := 1; keep == 0 && back < utf8.UTFMax && back <= len(content); back++ { // a character that has not come whole
			if tail := content[len(content)-back:]; utf8.RuneStart(tail[0]) && !utf8.FullRune(tail) {
				keep = back
			}
		}
		after = content[len(content)-keep:]
		content = content[:len(content)-keep]
	}
	d.pasting, d.pending = !found, bytes.Clone(after)
	for len(content) > 0 {
		r, n := utf8.DecodeRune(content)
		content = content[n:]
		switch {
		case r == '\n' && d.cr: // of a line's end that was seen
		case r == '\r', r == '\n':
			text = append(text, '\n')
		case r == '\t':
			text = append(text, '\t')
		case r == utf8.RuneError && n == 1, terminal.Control(r):
		default:
			text = append(text, r)
		}
		d.cr = r == '\r'
	}
	return text, found
}

// decode takes one key from the beginning of b, which is not empty, and says how many bytes it has; 0 until all of it has come. A key that means
// nothing here has neither text nor name.
func decode(b []byte) (key, int) {
	switch c := b[0]; {
	case c == 0x1b:
		return decodeEscape(b)
	case c == ctrlX && len(b) < 2: // begins the name of a key with two strokes
		return key{}, 0
	case c == ctrlX && b[1] == 0x05: // Ctrl-E
		return key{name: "editor"}, 2
	case c == 0: // Ctrl-Space
		return key{}, 1
	case c < 0x20 || c == 0x7f:
		return key{name: controls[c]}, 1
	}
	if !utf8.FullRune(b) {
		return key{}, 0
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n == 1 || terminal.Control(r) {
		return key{}, n
	}
	return key{text: []rune{r}}, n
}

// controls are the names of the keys that are single bytes.
var controls = map[byte]string{
	0x01: "home", 0x02: "left", 0x03: "interrupt", 0x04: "ctrl-d", 0x05: "end", 0x06: "right", 0x07: "cancel", 0x08: "backspace", 0x09: "tab",
	0x0a: "enter", 0x0b: "kill-end", 0x0c: "clear", 0x0d: "enter", 0x0e: "next", 0x10: "previous", 0x12: "search-back", 0x13: "search-forward",
	0x14: "transpose", 0x15: "kill-start", 0x17: "kill-word", 0x19: "yank", 0x1a: "suspend", 0x1f: "undo", 0x7f: "backspace",
}

// sequences are the names of the keys that send an escape sequence, without its beginning.
var sequences = map[string]string{
	"[A": "up", "[B": "down", "[C": "right", "[D": "left", "[H": "home", "[F": "end", "OA": "up", "OB": "down", "OC": "right", "OD": "left", "OH": "home", "OF": "end",
	"[1~": "home", "[7~": "home", "[4~": "end", "[8~": "end", "[3~": "delete", "[1;5C": "word-right", "[1;5D": "word-left", "[1;3C": "word-right", "[1;3D": "word-left",
	"[200~": "paste", "b": "word-left", "f": "word-right", "d": "kill-word-right", "\x7f": "kill-word", "\x08": "kill-word", "\r": "newline", "\n": "newline",
}

// longestSequence bounds what is waited for after an escape: what is longer is none that a terminal sends.
const longestSequence = 32

func decodeEscape(b []byte) (key, int) {
	if len(b) < 2 {
		return key{}, 0
	}
	end := 2
	switch b[1] {
	case 0x1b: // the first was pressed by itself
		return key{}, 1
	case 'O':
		end = 3
	case '[':
		for end = 3; end <= len(b) && (b[end-1] < 0x40 || b[end-1] > 0x7e); end++ {
			if end > longestSequence || b[end-1] < 0x20 || b[end-1] > 0x7e {
				return key{}, end - 1
			}
		}
	default:
		if b[1] >= utf8.RuneSelf {
			if !utf8.FullRune(b[1:]) {
				return key{}, 0
			}
			_, n := utf8.DecodeRune(b[1:])
			return key{}, 1 + n
		}
	}
	if len(b) < end {
		return key{}, 0
	}
	return key{name: sequences[string(b[1:end])]}, end
}
