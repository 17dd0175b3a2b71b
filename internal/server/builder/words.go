package builder

import (
	"errors"
	"strings"
)

// split cuts a line of a Dockerfile into words, in the form that expand takes: quotes are gone, and what they keep from being a variable has a backslash.
func split(line string) (words []string, err error) {
	var word strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == 0 && (c == ' ' || c == '\t'):
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
			continue
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		case quote == '\'' && (c == '$' || c == '\\'):
			word.WriteString(`\` + string(c))
		case c == '\\' && quote != '\'' && i+1 < len(line):
			i++
			word.WriteString(escaped(line[i], quote))
		default:
			word.WriteByte(c)
		}
		in = true
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if in {
		words = append(words, word.String())
	}
	if len(words) == 0 {
		return nil, errors.New("it says nothing")
	}
	return words, nil
}

// escaped is a character that has a backslash before it: within double quotes that stays but before a dollar, a quote and another.
func escaped(c, quote byte) string {
	switch {
	case c == '$' || c == '\\':
		return `\` + string(c)
	case quote == '"' && c != '"':
		return `\\` + string(c)
	}
	return string(c)
}

// normal is a whole line as one word. What cannot be read so stays as it is.
func normal(line string) string {
	words, err := split(line)
	if err != nil {
		return line
	}
	return strings.Join(words, " ")
}

// literal is a text in the form that expand gives back as it is.
func literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, `$`, `\$`).Replace(text)
}

// shellLine is a line for the shell that has these words.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quotedWord(w)
	}
	return strings.Join(quoted, " ")
}

func quotedWord(w string) string {
	if w != "" && strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%") == "" {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
