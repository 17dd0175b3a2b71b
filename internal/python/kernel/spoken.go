package kernel

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of one message of a driver.
const (
	mostMembers  = 1000 // MIME types, or keys of metadata
	mostLines    = 2000 // of a traceback
	deepestValue = 500  // nesting of values; readers of events have limits of their own
	longestReply = 4 << 20
	longestHint  = 1000 // bytes
)

// spoken is a driver's message; which fields are set depends on Type. Lists and objects of any length stay undecoded until it is known how many of their values
// are wanted: decoding two bytes of JSON can take fifty bytes of memory.
type spoken struct {
	Type        string          `json:"type"`
	ID          string          `json:"id"`
	Data        json.RawMessage `json:"data"`
	Metadata    json.RawMessage `json:"metadata"`
	DisplayID   string          `json:"display_id"`
	Update      bool            `json:"update"`
	Count       int             `json:"count"`
	Name        string          `json:"name"`
	Value       string          `json:"value"`
	Traceback   json.RawMessage `json:"traceback"`
	Hint        string          `json:"hint"`
	Wait        bool            `json:"wait"`
	Prompt      string          `json:"prompt"`
	Password    bool            `json:"password"`
	Status      string          `json:"status"`
	ExitCode    int             `json:"exit_code"`
	Interrupted bool            `json:"interrupted"`
	Number      int             `json:"number"`
	Module      string          `json:"module"`
	Loaded      json.RawMessage `json:"loaded"`
	Calls       json.RawMessage `json:"calls"`
	Models      json.RawMessage `json:"models"`
	Closed      json.RawMessage `json:"closed"`
}

// hear decodes a driver's message.
func hear(body []byte) (s spoken, err error) {
	if json.Unmarshal(clean(body), &s) != nil {
		return s, errors.New("a message does not have the expected form")
	}
	return s, nil
}

// clean replaces bytes that are not UTF-8, which undecoded values would pass on.
func clean(body []byte) []byte {
	if utf8.Valid(body) {
		return body
	}
	return bytes.ToValidUTF8(body, []byte("\uFFFD"))
}

// elements calls take to decode each element of an array, or each key and value of an object, up to most of them.
func elements(raw json.RawMessage, kind json.Delim, most int, take func(d *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if first, err := d.Token(); len(raw) == 0 || err == nil && first == nil {
		return nil
	} else if err != nil || first != kind {
		return errors.New("a message has a value of an unexpected type")
	}
	for range most {
		if !d.More() {
			break
		}
		if err := take(d); err != nil {
			return err
		}
	}
	return nil
}

// texts returns the first strings of an array.
func texts(raw json.RawMessage, most int) (list []string, err error) {
	err = elements(raw, '[', most, func(d *json.Decoder) error {
		var text string
		err := d.Decode(&text)
		list = append(list, text)
		return err
	})
	return list, err
}

// hintOf returns a hint on one line, or "" for one that is longer than an honest kernel's.
func hintOf(text string) string {
	if len(text) > longestHint {
		return ""
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
}

// members returns the first members of an object. Strings are decoded; other values stay JSON.
func members(raw json.RawMessage) (map[string]any, error) {
	var all map[string]any
	err := elements(raw, '{', mostMembers, func(d *json.Decoder) error {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if all == nil {
			all = map[string]any{}
		}
		var text string
		switch {
		case value[0] == '"' && json.Unmarshal(value, &text) == nil:
			all[name.(string)] = text
		case depth(value) <= deepestValue:
			all[name.(string)] = value
		}
		return nil
	})
	return all, err
}

// depth returns how many arrays and objects there are within each other.
func depth(value json.RawMessage) (deepest int) {
	inside, text := 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '[' || c == '{':
			inside++
			deepest = max(deepest, inside)
		case c == ']' || c == '}':
			inside--
		}
	}
	return deepest
}

// bundleOf keeps the MIME types whose values are of the type that they must be: text and images are strings.
func bundleOf(raw json.RawMessage) (Bundle, error) {
	data, err := members(raw)
	b := Bundle{}
	for mime, v := range data {
		_, isText := v.(string)
		if isText || strings.HasSuffix(mime, "json") {
			b[mime] = v
		}
	}
	return b, err
}
