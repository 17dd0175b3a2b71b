package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
)

// form is a JSON object of a request that is read field by field. The first thing that is wrong is kept in err, in OpenAI's words, and
// everything after it reads as zero.
type form struct {
	raw map[string]json.RawMessage
	at  string // what the object is called in errors: "" or "tools[0]"
	err error
}

// readForm reads the body of a request.
func (s *server) readForm(c *call) (*form, error) {
	body, err := bodybudget.Read(c.Context(), bodybudget.Bounded(c.w, c.Body, s.MaxBody))
	if err != nil {
		_, large := errors.AsType[*http.MaxBytesError](err)
		if _, refused := errors.AsType[*problem.Error](err); large || refused {
			return nil, err
		}
		return nil, invalid("", "", "The request body could not be read.")
	}
	return s.formOf(body)
}

// formOf reads a JSON object; nothing at all is an empty one.
func (s *server) formOf(body []byte) (*form, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	f := &form{}
	if json.Unmarshal(body, &f.raw) != nil || f.raw == nil {
		return nil, invalid("", "", "We could not parse the JSON body of your request. "+
			"(HINT: This likely means you aren't using your HTTP library correctly. The API expects a JSON object.)")
	}
	return f, nil
}

// object returns raw as a form; what is not an object is an error of f.
func (f *form) object(name string, raw json.RawMessage) *form {
	inner := &form{at: f.path(name)}
	if f.err == nil && (json.Unmarshal(raw, &inner.raw) != nil || inner.raw == nil) {
		f.err = wrongType(inner.at, "an object", raw)
	}
	return inner
}

func (f *form) path(name string) string {
	if f.at == "" || strings.HasPrefix(name, "[") {
		return f.at + name
	}
	return f.at + "." + name
}

func (f *form) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// only refuses fields of other names.
func (f *form) only(names ...string) {
	var other []string
	for name := range f.raw {
		if !slices.Contains(names, name) {
			other = append(other, name)
		}
	}
	if len(other) > 0 {
		f.fail(unknown(f.path(slices.Min(other))))
	}
}

// has says whether the field is there and not null.
func (f *form) has(name string) bool {
	raw, ok := f.raw[name]
	return ok && string(bytes.TrimSpace(raw)) != "null"
}

func (f *form) value(name string, into any, want string) bool {
	if f.err != nil || !f.has(name) {
		return false
	}
	if json.Unmarshal(f.raw[name], into) != nil {
		f.err = wrongType(f.path(name), want, f.raw[name])
		return false
	}
	return true
}

func (f *form) text(name string) string {
	var s string
	f.value(name, &s, "a string")
	return s
}

// needed is a string that has to be there.
func (f *form) needed(name string) string {
	if !f.has(name) {
		f.fail(missing(f.path(name)))
	}
	return f.text(name)
}

func (f *form) boolean(name string) *bool {
	var b bool
	if !f.value(name, &b, "a boolean") {
		return nil
	}
	return &b
}

func (f *form) yes(name string) bool {
	b := f.boolean(name)
	return b != nil && *b
}

// integer is a number of at least low, or nil.
func (f *form) integer(name string, low int64) *int64 {
	var n int64
	if !f.value(name, &n, "an integer") {
		return nil
	}
	if n < low {
		f.err = invalid(f.path(name), "integer_below_min_value",
			fmt.Sprintf("Invalid '%s': integer below minimum value. Expected a value >= %d, but got %d instead.", f.path(name), low, n))
	}
	return &n
}

// decimal is a number from 0 to high, or nil.
func (f *form) decimal(name string, high float64) *float64 {
	var n float64
	if !f.value(name, &n, "a decimal") {
		return nil
	}
	number := strconv.FormatFloat(n, 'f', -1, 64)
	switch {
	case n < 0:
		f.err = invalid(f.path(name), "decimal_below_min_value",
			fmt.Sprintf("Invalid '%s': decimal below minimum value. Expected a value >= 0, but got %s instead.", f.path(name), number))
	case n > high:
		f.err = invalid(f.path(name), "decimal_above_max_value",
			fmt.Sprintf("Invalid '%s': decimal above maximum value. Expected a value <= %v, but got %s instead.", f.path(name), high, number))
	}
	return &n
}

func (f *form) list(name string) []json.RawMessage {
	var l []json.RawMessage
	f.value(name, &l, "an array")
	return l
}

func (f *form) texts(name string) []string {
	var l []string
	f.value(name, &l, "an array of strings")
	return l
}

// choice is one of values, or "" when the field is not there.
func (f *form) choice(name string, values ...string) string {
	s := f.text(name)
	if f.err == nil && f.has(name) && !slices.Contains(values, s) {
		f.err = notOneOf(f.path(name), s, values)
	}
	return s
}

// metadata are at most 16 pairs, names of 64 and values of 512 characters.
func (f *form) metadata(name string) map[string]string {
	var raw map[string]json.RawMessage
	if !f.value(name, &raw, "an object") {
		return nil
	}
	at := f.path(name)
	if len(raw) > 16 {
		f.fail(invalid(at, "object_above_max_properties", fmt.Sprintf("Invalid '%s': too many properties. Expected an object with at most 16 properties, "+
			"but got an object with %d properties instead.", at, len(raw))))
	}
	out := map[string]string{}
	for key, value := range raw {
		var s string
		switch {
		case json.Unmarshal(value, &s) != nil:
			f.fail(wrongType(at+"."+key, "a string", value))
		case utf8.RuneCountInString(key) > 64:
			f.fail(tooLong(at, 64, utf8.RuneCountInString(key)))
		case utf8.RuneCountInString(s) > 512:
			f.fail(tooLong(at+"."+key, 512, utf8.RuneCountInString(s)))
		}
		out[key] = s
	}
	return out
}

func tooMany(at string, limit, got int) error {
	return invalid(at, "array_above_max_length", fmt.Sprintf("Invalid '%s': array too long. Expected an array with maximum length %d, "+
		"but got an array with length %d instead.", at, limit, got))
}

func tooLong(at string, limit, got int) error {
	return invalid(at, "string_above_max_length", fmt.Sprintf("Invalid '%s': string too long. Expected a string with maximum length %d, "+
		"but got a string with length %d instead.", at, limit, got))
}

func notOneOf(at, got string, values []string) error {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = "'" + v + "'"
	}
	all := quoted[0]
	switch n := len(quoted); {
	case n == 2:
		all = quoted[0] + " and " + quoted[1]
	case n > 2:
		all = strings.Join(quoted[:n-1], ", ") + ", and " + quoted[n-1]
	}
	return invalid(at, "invalid_value", "Invalid value: '"+short(got)+"'. Supported values are: "+all+".")
}

func wrongType(at, want string, got json.RawMessage) error {
	return invalid(at, "invalid_type", "Invalid type for '"+at+"': expected "+want+", but got "+kindOf(got)+" instead.")
}

func kindOf(raw json.RawMessage) string {
	text := strings.TrimSpace(string(raw))
	switch {
	case text == "" || text == "null":
		return "null"
	case text[0] == '"':
		return "a string"
	case text[0] == '{':
		return "an object"
	case text[0] == '[':
		return "an array"
	case text == "true" || text == "false":
		return "a boolean"
	case strings.ContainsAny(text, ".eE"):
		return "a decimal"
	}
	return "an integer"
}

// short keeps what a client sent within an error message.
func short(s string) string {
	if r := []rune(s); len(r) > 100 {
		return string(r[:100]) + "…"
	}
	return s
}
