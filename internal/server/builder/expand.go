package builder

import "strings"

// expand replaces $NAME, ${NAME}, ${NAME:-else} and ${NAME:+then} by what lookup has, and \$ and \\ by the second character. Other dollars and backslashes stay. What is
// between braces is not looked into further.
func expand(text string, lookup func(name string) string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (text[i+1] == '$' || text[i+1] == '\\'):
			i++
			out.WriteByte(text[i])
		case c == '$' && strings.HasPrefix(text[i+1:], "{"):
			length := strings.IndexByte(text[i:], '}')
			value, ok := "", false
			if length > 0 {
				value, ok = braced(text[i+2:i+length], lookup)
			}
			if !ok {
				out.WriteByte(c)
				continue
			}
			out.WriteString(value)
			i += length
		case c == '$' && nameLength(text[i+1:]) > 0:
			n := nameLength(text[i+1:])
			out.WriteString(lookup(text[i+1 : i+1+n]))
			i += n
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// braced is the value of what is between braces; ok is false for what has no such form.
func braced(text string, lookup func(name string) string) (value string, ok bool) {
	n := nameLength(text)
	name, rest := text[:n], text[n:]
	switch {
	case n == 0:
		return "", false
	case rest == "":
		return lookup(name), true
	case strings.HasPrefix(rest, ":-"):
		if value := lookup(name); value != "" {
			return value, true
		}
		return rest[2:], true
	case strings.HasPrefix(rest, ":+"):
		if lookup(name) == "" {
			return "", true
		}
		return rest[2:], true
	}
	return "", false
}

// nameLength is how many bytes at the beginning of a text are the name of a variable.
func nameLength(text string) int {
	for i := range len(text) {
		c := text[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(text)
}
