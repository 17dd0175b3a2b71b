package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

const (
	mostChoices  = 12  // of an enumeration, in a signature
	longestTyped = 400 // bytes of a type in a signature
)

// shape is what a signature says of a JSON Schema.
type shape struct {
	Type       json.RawMessage            `json:"type"`
	Enum       []json.RawMessage          `json:"enum"`
	AnyOf      []shape                    `json:"anyOf"`
	OneOf      []shape                    `json:"oneOf"`
	Items      json.RawMessage            `json:"items"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Default    json.RawMessage            `json:"default"`
	Additional json.RawMessage            `json:"additionalProperties"`
}

// Signature returns a tool as Python shows a function: "search(query: str, limit: int = 10) -> list". It says what the kernel's own function takes; see tools.py of package kernel.
func Signature(function string, t Tool) string {
	s := shapeOf(t.Parameters)
	names := make([]string, 0, len(s.Properties))
	free := len(s.Properties) == 0 && !isFalse(s.Additional)
	for name := range s.Properties {
		if Function(name) != name {
			free = true // it is no name of Python's
			continue
		}
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(index(s.Required, a), index(s.Required, b)), cmp.Compare(a, b))
	})
	parameters := make([]string, 0, len(names)+1)
	for _, name := range names {
		p := shapeOf(s.Properties[name])
		text := name + ": " + p.python(0)
		if !slices.Contains(s.Required, name) {
			text += " = " + literal(p.Default)
		}
		parameters = append(parameters, text)
	}
	if free {
		parameters = append(parameters, "**others")
	}
	out := function + "(" + strings.Join(parameters, ", ") + ")"
	if len(t.Result) > 0 {
		out += " -> " + shapeOf(t.Result).python(0)
	}
	return out
}

// index is where a parameter comes: those that are required first, in their order.
func index(required []string, name string) int {
	if i := slices.Index(required, name); i >= 0 {
		return i
	}
	return len(required)
}

func shapeOf(schema json.RawMessage) (s shape) {
	_ = json.Unmarshal(schema, &s) // what is no object, as true, says nothing
	return s
}

func isFalse(schema json.RawMessage) bool { return string(bytes.TrimSpace(schema)) == "false" }

// python is the type of a value in Python.
func (s shape) python(depth int) string {
	const deepest = 3
	if depth > deepest {
		return "Any"
	}
	if len(s.Enum) > 0 {
		var choices []string
		for _, c := range s.Enum[:min(len(s.Enum), mostChoices)] {
			choices = append(choices, literal(c))
		}
		if len(s.Enum) > mostChoices {
			choices = append(choices, "...")
		}
		return bounded("Literal["+strings.Join(choices, ", ")+"]", "str")
	}
	var kinds []string
	for _, kind := range kindsOf(s.Type) {
		kinds = append(kinds, map[string]string{"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict", "null": "None"}[kind])
	}
	for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
		kinds = append(kinds, one.python(depth+1))
	}
	kinds = slices.DeleteFunc(slices.Compact(kinds), func(k string) bool { return k == "" })
	switch items := shapeOf(s.Items).python(depth + 1); {
	case len(kinds) == 0:
		return "Any"
	case len(kinds) == 1 && kinds[0] == "list" && items != "Any":
		return bounded("list["+items+"]", "list")
	}
	return bounded(strings.Join(kinds, " | "), "Any")
}

func bounded(text, otherwise string) string {
	if len(text) > longestTyped {
		return otherwise
	}
	return text
}

func kindsOf(kind json.RawMessage) (kinds []string) {
	var one string
	if json.Unmarshal(kind, &one) == nil && one != "" {
		return []string{one}
	}
	_ = json.Unmarshal(kind, &kinds)
	return kinds
}

// literal is a JSON value as Python writes it, as far as that is short.
func literal(value json.RawMessage) string {
	const longest = 60
	switch text := string(bytes.TrimSpace(value)); {
	case text == "" || text == "null" || len(text) > longest:
		return "None"
	case text == "true":
		return "True"
	case text == "false":
		return "False"
	default:
		return text
	}
}
