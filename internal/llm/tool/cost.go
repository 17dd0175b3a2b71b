package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// A validator visits each part of a value with each part of a schema that is about it. Schemas that refer to parts of themselves can make that exponential, or endless; so the visits are
// counted before a value is validated, without the work of one.
const (
	// freeVisits and visitsPerByte bound the visits that the validation of a value may take, by the size of its JSON. A million takes about a second.
	freeVisits    = 250_000
	visitsPerByte = 2
	deepest       = 10_000 // visits within each other
	patternBytes  = 256    // of a text that is matched with a pattern, or a value that is compared, count as a visit
)

var errCostly = errors.New("the schema of the tool takes too long to check this against")

// outline is a schema as JSON.
type outline struct {
	root any
	to   map[string]any // what references lead to
}

// outlineOf reads a schema. It refuses references that are no paths within it, which it could not count.
func outlineOf(schema json.RawMessage) (*outline, error) {
	o := &outline{to: map[string]any{}}
	if err := json.Unmarshal(schema, &o.root); err != nil {
		return nil, err
	}
	return o, o.check(o.root)
}

func (o *outline) check(part any) error {
	switch part := part.(type) {
	case map[string]any:
		for key, value := range part {
			text, isText := value.(string)
			switch {
			case key == "$ref" && isText:
				if o.to[text] = o.at(text); o.to[text] == nil {
					return fmt.Errorf("the reference %.100q is no path within it", text)
				}
			case key == "const" || key == "enum" || key == "default" || key == "examples": // data, but for properties of these names
				continue
			case key == "$dynamicRef" || key == "$recursiveRef":
				return errors.New(key + " is not supported")
			}
			if err := o.check(value); err != nil {
				return err
			}
		}
	case []any:
		for _, value := range part {
			if err := o.check(value); err != nil {
				return err
			}
		}
	}
	return nil
}

// at returns what a reference leads to (RFC 6901), or nil.
func (o *outline) at(reference string) any {
	path, ok := strings.CutPrefix(reference, "#")
	if !ok || path != "" && path[0] != '/' {
		return nil
	}
	if unescaped, err := url.PathUnescape(path); err == nil {
		path = unescaped
	}
	found := o.root
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if path == "" {
			break
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch at := found.(type) {
		case map[string]any:
			found = at[part]
		case []any:
			n, err := strconv.Atoi(part)
			if err != nil || n < 0 || n >= len(at) {
				return nil
			}
			found = at[n]
		default:
			return nil
		}
	}
	return found
}

// affordable says whether a value, of so many bytes of JSON, can be validated.
func (o *outline) affordable(value any, size int) error {
	v := visitor{outline: o, left: freeVisits + visitsPerByte*size}
	if v.visit(o.root, value); v.left < 0 {
		return errCostly
	}
	return nil
}

type visitor struct {
	*outline
	left  int // visits
	depth int
}

// visit counts the visits of a value with a schema.
func (v *visitor) visit(schema, value any) {
	s, ok := schema.(map[string]any)
	if !ok || v.left < 0 {
		return
	}
	if v.left--; v.depth >= deepest {
		v.left = -1
		return
	}
	v.depth++
	defer func() { v.depth-- }()
	for key, sub := range s {
		switch key {
		case "$ref":
			v.follow(sub, value)
		case "not", "if", "then", "else":
			v.visit(sub, value)
		case "allOf", "anyOf", "oneOf":
			v.each(sub, value)
		case "dependentSchemas", "dependencies":
			v.each(sub, value)
		case "pattern":
			if text, ok := value.(string); ok {
				v.left -= len(text) / patternBytes
			}
		case "enum":
			if list, ok := sub.([]any); ok {
				v.left -= len(list)
			}
		}
	}
	switch value := value.(type) {
	case map[string]any:
		v.fields(s, value)
	case []any:
		for _, key := range []string{"items", "additionalItems", "unevaluatedItems", "contains"} {
			if _, ok := s[key].(map[string]any); !ok {
				continue
			}
			for _, one := range value {
				v.visit(s[key], one)
			}
		}
		for _, key := range []string{"items", "prefixItems"} {
			list, _ := s[key].([]any)
			for n := range min(len(list), len(value)) {
				v.visit(list[n], value[n])
			}
		}
	}
}

// follow visits a value with what a reference leads to.
func (v *visitor) follow(reference, value any) {
	text, ok := reference.(string)
	if !ok {
		return
	}
	to, known := v.to[text]
	if !known { // it is in a part that looked like data
		to = v.at(text)
	}
	if to == nil {
		v.left = -1
	}
	v.visit(to, value)
}

// each visits a value with each of a list, or a map, of schemas.
func (v *visitor) each(schemas, value any) {
	switch schemas := schemas.(type) {
	case []any:
		for _, one := range schemas {
			v.visit(one, value)
		}
	case map[string]any:
		for _, one := range schemas {
			v.visit(one, value)
		}
	}
}

func (v *visitor) fields(s, value map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	patterns, _ := s["patternProperties"].(map[string]any)
	for name, one := range value {
		if sub, ok := properties[name]; ok {
			v.visit(sub, one)
		}
		for _, sub := range patterns {
			v.left -= len(name) / patternBytes
			v.visit(sub, one)
		}
		for _, key := range []string{"additionalProperties", "unevaluatedProperties"} {
			v.visit(s[key], one)
		}
		v.visit(s["propertyNames"], name)
		if v.left < 0 {
			return
		}
	}
}
