package names

import (
	"iter"
	"strings"
)

// lines is a text of "key<TAB>rest" lines sorted by key, byte by byte. It is searched where it lies in the binary: nothing is
// parsed or copied at the start of a process.
type lines string

// from returns the offset of the first line whose key is not less than key.
func (l lines) from(key string) int {
	text := string(l)
	low, high := 0, len(text)
	for low < high {
		start := low + (high-low)/2
		for start > low && text[start-1] != '\n' {
			start--
		}
		tab := start + strings.IndexByte(text[start:high], '\t')
		if text[start:tab] >= key {
			high = start
			continue
		}
		low = tab + strings.IndexByte(text[tab:high], '\n') + 1
	}
	return low
}

// after yields the keys and rests of the lines from an offset on.
func (l lines) after(offset int) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for text := string(l[offset:]); text != ""; {
			var line string
			line, text, _ = strings.Cut(text, "\n")
			key, rest, _ := strings.Cut(line, "\t")
			if !yield(key, rest) {
				return
			}
		}
	}
}

// get returns what stands after a key.
func (l lines) get(key string) (string, bool) {
	line, ok := strings.CutPrefix(string(l[l.from(key):]), key)
	if !ok || line == "" || line[0] != '\t' {
		return "", false
	}
	rest, _, _ := strings.Cut(line[1:], "\n")
	return rest, true
}

// near yields the keys that differ from name by one character added, left out, doubled or replaced, or by two neighbours swapped.
// starts are those of the same text.
func (l lines) near(name string, starts *starts) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if len(name) < 3 {
			return
		}
		head := name[:2]
		for key, rest := range l.after(l.from(head)) {
			if !strings.HasPrefix(key, head) {
				break
			}
			if oneSlip(key, name) && !yield(key, rest) {
				return
			}
		}
		// A slip in the first two characters leads elsewhere in the text.
		for _, other := range slipsAtStart(name) {
			if strings.HasPrefix(other, head) || !starts.may(other) {
				continue
			}
			if rest, ok := l.get(other); ok && !yield(other, rest) {
				return
			}
		}
	}
}

// starts is the set of the first three characters of the keys of a text, as far as they are of the alphabet. It spares most of the searches for slips.
type starts [len(alphabet) * len(alphabet) * len(alphabet)]bool

func startsOf(l lines) *starts {
	var s starts
	for key := range l.after(0) {
		if i := startOf(key); i >= 0 {
			s[i] = true
		}
	}
	return &s
}

func (s *starts) may(key string) bool {
	i := startOf(key)
	return i < 0 || s[i]
}

func startOf(key string) int {
	if len(key) < 3 {
		return -1
	}
	at := 0
	for i := range 3 {
		c := strings.IndexByte(alphabet, key[i])
		if c < 0 {
			return -1
		}
		at = at*len(alphabet) + c
	}
	return at
}

const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789_"

func slipsAtStart(name string) []string {
	out := make([]string, 0, 4*len(alphabet)+4)
	out = append(out, name[1:], name[:1]+name[2:], string([]byte{name[1], name[0]})+name[2:], string([]byte{name[0], name[2], name[1]})+name[3:])
	for i := range 2 {
		for _, c := range alphabet {
			out = append(out, name[:i]+string(c)+name[i:], name[:i]+string(c)+name[i+1:])
		}
	}
	return out
}

// oneSlip says whether two different names are one slip apart.
func oneSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || a == b {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
