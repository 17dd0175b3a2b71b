// Package redact takes secrets out of text: keys and tokens of known forms, with their checksums where they have any, private keys, passwords in addresses, and, where they are asked for, numbers of cards,
// accounts and people, e-mail addresses and what looks like the value of a password. It says how many of each it has taken out, and never what they were.
//
// What it looks for is what services publish about the form of their keys (GitHub's and npm's checksums: github.blog, "Behind GitHub's new authentication token formats", 2021; ISO/IEC 7812 and 7064, ISO 13616, GB 11643)
// the rules of Gitleaks, see tokens.go, and the common ground of the scanners TruffleHog and detect-secrets. A form that others share is left out: a false alarm spoils somebody's result.
package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Kinds say what is taken out.
type Kinds struct {
	Secrets bool // of known forms
	Guesses bool // values that are assigned to names such as password and look random
	Cards   bool // of credit, by range and checksum
	People  bool // identity numbers (US, China), IBANs
	Emails  bool

	Own *Values // these besides; nil: none
}

// Values are texts that are secrets themselves, such as the credentials of a session.
type Values struct{ all []string }

// shortestValue is how long a text has to be at least: shorter ones are parts of other words.
const shortestValue = 8

// NewValues returns the texts that are long enough, and where one has words, as "Bearer ..." has, the last one besides; nil: there is none.
func NewValues(texts ...string) *Values {
	v := &Values{}
	for _, text := range texts {
		for _, one := range []string{text, text[strings.LastIndexByte(text, ' ')+1:]} {
			if len(one) >= shortestValue && !slices.Contains(v.all, one) {
				v.all = append(v.all, one)
			}
		}
	}
	if len(v.all) == 0 {
		return nil
	}
	return v
}

// begun returns how many bytes at the end of a text are the beginning of a value that does not end there.
func (v *Values) begun(text []byte) (most int) {
	if v == nil {
		return 0
	}
	for _, value := range v.all {
		for n := min(len(value)-1, len(text)); n > most; n-- {
			if string(text[len(text)-n:]) == value[:n] {
				most = n
			}
		}
	}
	return most
}

// None says whether nothing is taken out.
func (k Kinds) None() bool { return k == Kinds{} }

// whole returns how many bytes at the end of a text to keep, so that no value is cut in two: keep or more.
func (v *Values) whole(text []byte, keep int) int {
	if v == nil {
		return keep
	}
	for _, value := range v.all {
		cut := len(text) - keep
		from := max(0, cut-len(value)+1)
		if i := bytes.Index(text[from:], []byte(value)); i >= 0 && from+i < cut {
			keep = len(text) - from - i
		}
	}
	return keep
}

// Counts is how many of each kind of thing were taken out, by name.
type Counts map[string]int

// Add adds others.
func (c Counts) Add(others Counts) {
	for name, n := range others {
		c[name] += n
	}
}

// span is a part of a text that is taken out.
type span struct {
	from, to int
	name     string
}

// Text returns a text without what is to be taken out, or text itself where there is nothing, and counts.
func (k Kinds) Text(text []byte) ([]byte, Counts) { return k.replace(text, instead) }

// instead is what stands for a thing that was taken out.
func instead(name string, _ []byte) []byte { return []byte("[redacted " + name + "]") }

// mask is instead with as many bytes as the thing has, and as many lines.
func mask(name string, thing []byte) []byte {
	out := stars(thing)
	if said := instead(name, nil); len(said) <= len(out) {
		copy(out, said)
	}
	return out
}

// stars returns a star for each byte but ends of lines.
func stars(thing []byte) []byte {
	out := bytes.Clone(thing)
	for i, c := range out {
		if c != '\n' && c != '\r' {
			out[i] = '*'
		}
	}
	return out
}

func (k Kinds) replace(text []byte, by func(name string, thing []byte) []byte) ([]byte, Counts) {
	spans := k.find(text)
	if len(spans) == 0 {
		return text, nil
	}
	counts := Counts{}
	out := make([]byte, 0, len(text))
	at := 0
	for _, s := range spans {
		if s.from < at {
			continue // a part of the one before
		}
		out = append(out, text[at:s.from]...)
		out = append(out, by(s.name, text[s.from:s.to])...)
		counts[s.name]++
		at = s.to
	}
	return append(out, text[at:]...), counts
}

// String is Text for a string.
func (k Kinds) String(text string) (string, Counts) {
	out, counts := k.Text([]byte(text))
	if counts == nil {
		return text, nil
	}
	return string(out), counts
}

// Any is Text for each text of a JSON value, decoded or not, those of keys included. What is changed is a copy.
func (k Kinds) Any(value any) (any, Counts) {
	counts := Counts{}
	var walk func(v any) any
	text := func(s string) string {
		out, found := k.String(s)
		counts.Add(found)
		return out
	}
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return text(v)
		case json.RawMessage:
			out, found := k.Text(v)
			counts.Add(found)
			if found != nil && !json.Valid(out) { // a find that reached over the end of a text
				out = []byte(`"[redacted]"`)
			}
			return json.RawMessage(out)
		case []any:
			out := make([]any, len(v))
			for i, one := range v {
				out[i] = walk(one)
			}
			return out
		case map[string]any:
			out := make(map[string]any, len(v))
			for key, one := range v {
				out[text(key)] = walk(one)
			}
			return out
		}
		return v
	}
	out := walk(value)
	if len(counts) == 0 {
		return value, nil
	}
	return out, counts
}

// find returns what is to be taken out, by its place; of two at one place the longer one first.
func (k Kinds) find(text []byte) (spans []span) {
	add := func(from, to int, name string) { spans = append(spans, span{from, to, name}) }
	if k.Own != nil {
		for _, value := range k.Own.all {
			each(text, value, func(at int) { add(at, at+len(value), "credential") })
		}
	}
	if k.Secrets {
		byAnchor().find(text, add)
	}
	if k.Guesses {
		guesses(text, add)
	}
	if k.Cards || k.People {
		k.numbers(text, add)
	}
	if k.Emails {
		each(text, "@", func(at int) {
			if from, to := email(text, at); to > from {
				add(from, to, "email")
			}
		})
	}
	slices.SortFunc(spans, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	return spans
}

// each calls visit for every place of anchor.
func each(text []byte, anchor string, visit func(at int)) {
	needle := []byte(anchor)
	for at := 0; ; {
		i := bytes.Index(text[at:], needle)
		if i < 0 {
			return
		}
		visit(at + i)
		at += i + len(needle)
	}
}

// Stream takes things out of a text that comes in pieces, which may cut them. It is used by one goroutine at a time.
type Stream struct {
	Kinds
	// Masks says that as many bytes stand for a thing as it has, so that every other byte keeps its place.
	Masks  bool
	Counts Counts
	held   []byte
	inKey  bool // within a private key whose end has not come
	swept  int  // bytes of it that were taken out
}

// Reach is how many bytes before a place of a text something may begin that is there, at most.
const Reach = 64 << 10

// Bounds of what is held back.
const (
	longestHeld = 4 << 10
	longestKey  = Reach
	largePiece  = 4 << 10 // bytes of a piece that was cut by its size

	longestKeyLine = 60 // bytes of the line with which a private key begins
)

// Held is how many bytes are held back.
func (s *Stream) Held() int { return len(s.held) }

// Idle says whether nothing is held back, and no private key is being taken out.
func (s *Stream) Idle() bool { return len(s.held) == 0 && !s.inKey }

// Write returns what may be passed on now: the piece and what was held back before, but for an end that may be the beginning of something.
func (s *Stream) Write(piece []byte) []byte {
	text := piece
	if len(s.held) > 0 {
		text = slices.Concat(s.held, piece)
		s.held = nil
	}
	var swept []byte
	if s.inKey {
		n := s.sweep(text, len(piece))
		if s.Masks {
			swept = stars(text[:n])
		}
		if text = text[n:]; s.inKey {
			s.held = bytes.Clone(text)
			return swept
		}
	}
	keep := s.tail(text, len(piece) >= largePiece)
	s.held = bytes.Clone(text[len(text)-keep:])
	out := s.take(text[:len(text)-keep])
	if len(swept) > 0 {
		out = append(swept, out...)
	}
	return out
}

// Flush returns what was held back. Of a private key, which goes on with the next piece if there is one, it returns stars or nothing.
func (s *Stream) Flush() []byte {
	var out []byte
	if !s.inKey {
		text := s.held
		s.held = nil
		out = s.take(text)
	}
	if s.inKey && s.Masks {
		s.swept += len(s.held)
		out = append(out, stars(s.held)...)
		s.held = nil
	}
	return out
}

func (s *Stream) take(text []byte) []byte {
	if len(text) == 0 {
		return nil
	}
	by := instead
	if s.Masks {
		by = mask
	}
	out, counts := s.replace(text, by)
	if counts != nil {
		s.count(counts)
	}
	if s.Secrets {
		if at := lastKey(out); at >= 0 && bytes.Contains(out[at:], []byte(keyName)) && !ends(out[at:]) {
			s.inKey, s.swept = true, len(out)-at // its end comes later
			key := out[at:]
			line := min(len(key), bytes.Index(key, []byte(keyName))+len(keyName)+5)
			end := len(key) - endBegun(key[line:])
			if i := bytes.Index(key, []byte(keyEnd)); i >= 0 {
				end = i
			}
			s.held = slices.Concat(key[end:], s.held)
			key = key[:end]
			s.count(Counts{privateKey: 1})
			out = append(bytes.Clone(out[:at]), by(privateKey, key)...)
		}
	}
	return out
}

// lastKey returns where the last private key begins, or -1. It looks forward, which is quicker by far.
func lastKey(text []byte) int {
	last := -1
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(keyBegin))
		if i < 0 {
			return last
		}
		last = at + i
		at = last + 1
	}
}

func (s *Stream) count(counts Counts) {
	if s.Counts == nil {
		s.Counts = Counts{}
	}
	s.Counts.Add(counts)
}

// ends says whether the last line of a private key is whole.
func ends(key []byte) bool {
	at := bytes.Index(key, []byte(keyEnd))
	return at >= 0 && bytes.Contains(key[at+len(keyEnd):], []byte("-----"))
}

// sweep returns how many bytes at the beginning of a text belong to a private key that has begun before. What follows them, in the key, may be the beginning of its end. fresh is how many
// bytes of text are new.
func (s *Stream) sweep(text []byte, fresh int) int {
	if at := bytes.Index(text, []byte(keyEnd)); at >= 0 {
		last := at + len(keyEnd)
		if dashes := bytes.Index(text[last:], []byte("-----")); dashes >= 0 {
			s.inKey = false
			return last + dashes + 5
		}
	}
	if s.swept += fresh; s.swept > longestKey {
		s.inKey = false // it is none
		return 0
	}
	return len(text) - endBegun(text)
}

// endBegun returns how many bytes at the end of a part of a private key may be the beginning of its last line.
func endBegun(key []byte) int {
	if n := min(len(key), len(keyEnd)+40); bytes.Contains(key[len(key)-n:], []byte("-")) {
		return n
	}
	return 0
}

// tail returns how many bytes at the end of a text may be the beginning of something. What people wait for, such as a prompt without an end of line, is not held back.
func (s *Stream) tail(text []byte, large bool) int {
	return s.Own.whole(text, max(s.tailOfForm(text, large), s.Own.begun(text)))
}

func (s *Stream) tailOfForm(text []byte, large bool) int {
	if escaped(text) {
		return 0 // what comes next begins anew
	}
	n := 0
	digit := false
	for n < len(text) && n < longestHeld && inToken[text[len(text)-1-n]] {
		c := text[len(text)-1-n]
		digit = digit || c >= '0' && c <= '9'
		n++
	}
	end := text[len(text)-n:]
	last := text[max(0, len(text)-longestKeyLine+1):]
	if line := bytes.LastIndex(last, []byte(keyBegin)); s.Secrets && line >= 0 && !bytes.Contains(last[line+len(keyBegin):], []byte("-----")) {
		return len(last) - line
	}
	escape := escapeBefore(text[:len(text)-n])
	if n >= longestHeld || !large && !digit && n < 16 && escape == 0 && !begins(end) {
		return 0
	}
	return n + escape
}

// escapeBefore returns how many bytes at the end of a text belong to an escape sequence that goes on after them; see escaped.
func escapeBefore(text []byte) int {
	const longest = 20
	from := max(0, len(text)-longest)
	i := len(text)
	for i > from && (text[i-1] >= '0' && text[i-1] <= '9' || text[i-1] == ';' || text[i-1] == ':') {
		i--
	}
	if i > from && text[i-1] == '[' {
		i--
		for i > from && alnum[text[i-1]] {
			i--
		}
	} else if i < len(text) {
		return 0
	}
	if i > from && (text[i-1] == '\x1b' || text[i-1] == '\\') {
		return len(text) - i + 1
	}
	return 0
}

// begins says whether a text may be the beginning of a form.
func begins(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	for _, form := range forms {
		if n := min(len(text), len(form.anchor)); string(text[:n]) == form.anchor[:n] {
			return true
		}
	}
	return false
}
