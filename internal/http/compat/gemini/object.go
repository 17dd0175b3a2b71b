package gemini

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
)

// reader keeps the first thing that is wrong with a request. Everything after it reads as zero.
type reader struct{ err error }

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// object is a JSON object of a request that is read field by field. As in the JSON form of protocol buffers, a field may be written inlineData or inline_data.
type object struct {
	*reader
	fields map[string]json.RawMessage // by names in camel case; without those that are null
	at     string                     // what the object is called in errors: "" or "contents[0]"
}

// readBody reads the body of a request.
func (s *server) readBody(c *call) (object, error) {
	body, err := bodybudget.Read(c.Context(), bodybudget.Bounded(c.w, c.Body, s.MaxBody))
	if err != nil {
		_, large := errors.AsType[*http.MaxBytesError](err)
		if _, refused := errors.AsType[*problem.Error](err); large || refused {
			return object{}, err
		}
		return object{}, invalid("The request body could not be read.")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	o := newObject(&reader{}, "", body)
	return o, o.err
}

func newObject(r *reader, at string, raw json.RawMessage) object {
	o := object{reader: r, at: at, fields: map[string]json.RawMessage{}}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		o.wrong("", "an object")
		return o
	}
	for name, value := range fields {
		if string(bytes.TrimSpace(value)) == "null" {
			continue
		}
		name = camel(name)
		if _, twice := o.fields[name]; twice {
			o.fail(invalid("'%s' is there twice.", o.path(name)))
		}
		o.fields[name] = value
	}
	return o
}

// camel is inlineData for inline_data.
func camel(name string) string {
	if !strings.Contains(name, "_") {
		return name
	}
	words := strings.Split(name, "_")
	for n, word := range words {
		if n > 0 {
			words[n] = upper(word)
		}
	}
	return strings.Join(words, "")
}

func (o object) path(name string) string {
	switch {
	case o.at == "":
		return name
	case name == "":
		return o.at
	}
	return o.at + "." + name
}

func (o object) wrong(name, want string) {
	where := o.path(name)
	if where == "" {
		o.fail(invalid("Invalid JSON payload received. Expected %s.", want))
		return
	}
	o.fail(invalid("Invalid value at '%s': expected %s.", short(where), want))
}

func (o object) has(name string) bool {
	_, ok := o.fields[name]
	return ok
}

// only refuses fields of other names.
func (o object) only(names ...string) {
	var other []string
	for name := range o.fields {
		if !slices.Contains(names, name) {
			other = append(other, name)
		}
	}
	if len(other) > 0 {
		o.fail(invalid("Invalid JSON payload received. Unknown name \"%s\" at '%s': this server has no such field.", short(slices.Min(other)), short(o.at)))
	}
}

func (o object) value(name string, into any, want string) bool {
	if o.err != nil || !o.has(name) {
		return false
	}
	if json.Unmarshal(o.fields[name], into) != nil {
		o.wrong(name, want)
		return false
	}
	return true
}

func (o object) text(name string) string {
	var s string
	o.value(name, &s, "a string")
	return s
}

// needed is a string that has to be there.
func (o object) needed(name string) string {
	s := o.text(name)
	if s == "" {
		o.fail(invalid("'%s' is required.", short(o.path(name))))
	}
	return s
}

func (o object) yes(name string) bool {
	var b bool
	o.value(name, &b, "a boolean")
	return b
}

// integer is a whole number, which may be written as a string; ok says that there is one.
func (o object) integer(name string) (n int64, ok bool) {
	if !o.has(name) || o.err != nil {
		return 0, false
	}
	text := strings.Trim(string(bytes.TrimSpace(o.fields[name])), `"`)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		var f float64
		if json.Unmarshal(o.fields[name], &f) != nil || f != float64(int64(f)) {
			o.wrong(name, "an integer")
			return 0, false
		}
		n = int64(f)
	}
	return n, true
}

// decimal is a number from 0 to high, or nil.
func (o object) decimal(name string, high float64) *float64 {
	var n float64
	if !o.value(name, &n, "a number") {
		return nil
	}
	if n < 0 || n > high {
		o.fail(invalid("'%s' must be in the range [0, %v].", o.path(name), high))
	}
	return &n
}

func (o object) texts(name string) []string {
	var l []string
	o.value(name, &l, "an array of strings")
	return l
}

func (o object) object(name string) object { return newObject(o.reader, o.path(name), o.fields[name]) }

// objects are the objects of an array, at most most.
func (o object) objects(name string, most int) []object {
	var l []json.RawMessage
	o.value(name, &l, "an array")
	if len(l) > most {
		o.fail(invalid("'%s' has %d elements; this server takes at most %d.", o.path(name), len(l), most))
		return nil
	}
	out := make([]object, 0, len(l))
	for n, raw := range l {
		out = append(out, newObject(o.reader, fmt.Sprintf("%s[%d]", o.path(name), n), raw))
	}
	return out
}

// bytes are written in base64, in the letters for addresses (as the Python SDK sends them) or the others.
func (o object) bytes(name string) []byte {
	text := strings.TrimRight(strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "").Replace(o.text(name)), "=")
	data, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		o.wrong(name, "data in base64")
		return nil
	}
	return data
}
