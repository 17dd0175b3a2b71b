package config

import (
	"fmt"
	"strings"
)

// List is several words. It is read from "one, two" or "one two", and in the config file from ["one", "two"] too.
type List []string

// UnmarshalText reads words that commas or blanks divide.
func (l *List) UnmarshalText(text []byte) error {
	*l = strings.FieldsFunc(string(text), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
	return nil
}

// UnmarshalTOML reads a string or an array of strings.
func (l *List) UnmarshalTOML(value any) error {
	switch v := value.(type) {
	case string:
		return l.UnmarshalText([]byte(v))
	case []any:
		*l = nil
		for _, item := range v {
			word, ok := item.(string)
			if !ok {
				return fmt.Errorf("%v is not a text", item)
			}
			*l = append(*l, word)
		}
		return nil
	}
	return fmt.Errorf("%v is not a list of texts", value)
}

// String is the words with commas between them; UnmarshalText reads it back unchanged.
func (l List) String() string { return strings.Join(l, ", ") }
