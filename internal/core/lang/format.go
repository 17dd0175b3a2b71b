package lang

import "strings"

// Format is a format of package fmt, taken apart: Literals[0], Verbs[0], Literals[1] and so on to the last literal.
type Format struct {
	Literals []string // of which there is one more than verbs; %% is % in them
	Verbs    []Verb
}

// Verb is one of a format.
type Verb struct {
	Text string // as it stands there: %-8s
	Kind byte   // its letter
	Arg  int    // the number of the argument that it shows, from 0 on
	Star bool   // its width or precision is an argument
}

// ParseFormat takes a format apart. What is no verb stays literal.
func ParseFormat(format string) Format {
	f := Format{}
	var literal strings.Builder
	arg := 0
	for {
		before, after, found := strings.Cut(format, "%")
		literal.WriteString(before)
		if !found {
			break
		}
		if strings.HasPrefix(after, "%") {
			literal.WriteByte('%')
			format = after[1:]
			continue
		}
		v, size := verb(after, &arg)
		if size == 0 {
			literal.WriteByte('%')
			format = after
			continue
		}
		f.Literals, f.Verbs = append(f.Literals, literal.String()), append(f.Verbs, v)
		literal.Reset()
		format = after[size:]
	}
	f.Literals = append(f.Literals, literal.String())
	return f
}

// verb reads what stands after a %. arg is the number of the next argument.
func verb(text string, arg *int) (v Verb, size int) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '*':
			v.Star = true
			*arg++
		case c == '[':
			end := strings.IndexByte(text[i:], ']')
			n := number(text[i+1 : i+max(end, 1)])
			if n == 0 {
				return Verb{}, 0
			}
			*arg = n - 1
			i += end
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			v.Text, v.Kind, v.Arg = "%"+text[:i+1], c, *arg
			*arg++
			return v, i + 1
		case !strings.ContainsRune("+-# 0123456789.", rune(c)):
			return Verb{}, 0
		}
	}
	return Verb{}, 0
}

func number(text string) int {
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' || n > 99 {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// literal is how many bytes of letters the format says itself.
func (f Format) literal() int {
	n := 0
	for _, l := range f.Literals {
		for _, r := range l {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				n++
			}
		}
	}
	return n
}

// fill is the format with these arguments, which were formatted before.
func (f Format) fill(args []string) string {
	var b strings.Builder
	for i, v := range f.Verbs {
		b.WriteString(f.Literals[i])
		if v.Arg < len(args) {
			b.WriteString(args[v.Arg])
		}
	}
	b.WriteString(f.Literals[len(f.Verbs)])
	return b.String()
}
