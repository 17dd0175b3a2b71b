// Package tool has the tools that code in a sandbox may call: functions that somebody outside of it performs. What code asks for is checked against what was offered, both ways.
package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"cove/internal/core/problem"
)

// Bounds of what is offered and of what is said.
const (
	Most             = 1000    // tools of an execution
	mostSchemas      = 4 << 20 // bytes of all descriptions and schemas
	longestName      = 128     // characters
	MostCalls        = 10_000  // of an execution
	MostAtOnce       = 32      // calls without an answer
	LargestArguments = 1 << 20 // bytes of JSON of one call
	LargestResult    = 4 << 20 // bytes of JSON of one answer
	longestError     = 4 << 10 // bytes of why a tool failed
)

// Tool is a function that code may call.
type Tool struct {
	Name        string // letters, digits, _, - and ., at most 128
	Description string
	Parameters  json.RawMessage // a JSON Schema of an object; empty: any object
	Result      json.RawMessage // a JSON Schema of what it returns; empty: anything
	Asks        bool            // each call waits for somebody's word before it is made
}

// Call is what code asks for.
type Call struct {
	Number    int // of the execution's calls
	Name      string
	Arguments json.RawMessage // an object
}

// Result is the answer to a call. Value is JSON; Err, if there is one, is why there is none, in words for the code.
type Result struct {
	Value json.RawMessage
	Err   string
}

// Failed is the result of a call that came to nothing.
func Failed(why string) Result {
	why = strings.ToValidUTF8(why, "\uFFFD")
	for len(why) > longestError {
		_, size := utf8.DecodeLastRuneInString(why)
		why = why[:len(why)-size]
	}
	if why == "" {
		why = "it failed, without saying why"
	}
	return Result{Err: why}
}

// Set is what an execution is offered. Its zero value has no tools.
type Set struct {
	tools []offered
	named map[string]int
}

type offered struct {
	Tool
	function           string
	parameters, result *schema
}

// schema is one that values are checked against.
type schema struct {
	resolved *jsonschema.Resolved
	outline  *outline
}

// NewSet checks tools. Problems: tool_invalid.
func NewSet(tools []Tool) (*Set, error) {
	invalid := func(format string, args ...any) *problem.Error {
		return problem.New(problem.ToolInvalid, fmt.Sprintf(format, args...))
	}
	if len(tools) > Most {
		return nil, invalid("there are %d tools, which is more than %d", len(tools), Most).WithHint("offer those that the code needs")
	}
	s := &Set{named: map[string]int{}}
	functions, size := map[string]bool{}, 0
	for n, t := range tools {
		if !validName(t.Name) {
			return nil, invalid("tool %d has the name %.80q, which is not valid", n+1, t.Name).WithHint("use up to 128 letters, digits, _, - and .")
		}
		if _, twice := s.named[t.Name]; twice {
			return nil, invalid("there are two tools named %s", t.Name).WithHint("give each its own name")
		}
		if size += len(t.Description) + len(t.Parameters) + len(t.Result); size > mostSchemas {
			return nil, invalid("the descriptions and schemas of the tools have more than 4 MiB").WithHint("offer fewer tools")
		}
		o := offered{Tool: t, function: Function(t.Name)}
		for functions[o.function] {
			o.function += "_"
		}
		functions[o.function] = true
		var err error
		if o.parameters, err = resolve(t.Parameters); err == nil {
			o.result, err = resolve(t.Result)
		}
		if err != nil {
			return nil, invalid("a schema of the tool %s is no JSON Schema: %.300s", t.Name, err).WithHint(`send something like {"type": "object", "properties": {}}`)
		}
		s.named[t.Name] = len(s.tools)
		s.tools = append(s.tools, o)
	}
	return s, nil
}

func validName(name string) bool {
	return name != "" && len(name) <= longestName && strings.IndexFunc(name, func(c rune) bool {
		return c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
	}) < 0
}

func resolve(text json.RawMessage) (*schema, error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || string(trimmed) == "null" {
		return nil, nil
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	resolved, err := s.Resolve(nil) // which loads nothing from elsewhere
	if err != nil {
		return nil, err
	}
	o, err := outlineOf(text)
	return &schema{resolved, o}, err
}

// Len is how many tools there are.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.tools)
}

// All yields the tools, each with the name of its function in Python.
func (s *Set) All(yield func(function string, t Tool) bool) {
	for _, o := range s.tools {
		if !yield(o.function, o.Tool) {
			return
		}
	}
}

// Check returns why a call may not be made: it is of no tool that was offered, or its arguments are not what the tool takes. The words are for the code.
func (s *Set) Check(c Call) error {
	n, ok := s.named[c.Name]
	if !ok {
		return errors.New("there is no tool of this name")
	}
	if len(c.Arguments) > LargestArguments {
		return errors.New("the arguments are larger than 1 MiB")
	}
	var arguments map[string]any
	if err := json.Unmarshal(c.Arguments, &arguments); err != nil || arguments == nil {
		return errors.New("the arguments are no JSON object")
	}
	return fits(s.tools[n].parameters, arguments, len(c.Arguments), "the arguments do not fit")
}

// Answer makes of what a tool returned what the code gets: its result, if that is what the tool was said to return.
func (s *Set) Answer(name string, r Result) Result {
	if r.Err != "" {
		return Failed(r.Err)
	}
	if len(r.Value) == 0 {
		r.Value = json.RawMessage("null")
	}
	var value any
	switch n, ok := s.named[name]; {
	case len(r.Value) > LargestResult:
		return Failed("the result is larger than 4 MiB; ask for less of it")
	case json.Unmarshal(r.Value, &value) != nil:
		return Failed("the result is no JSON")
	case ok:
		if err := fits(s.tools[n].result, value, len(r.Value), "the result does not fit"); err != nil {
			return Failed(err.Error())
		}
	}
	return r
}

// longestMismatch bounds what is said of a value that does not fit, in bytes: it may quote the value.
const longestMismatch = 400

// fits checks a value whose JSON has so many bytes.
func fits(s *schema, value any, size int, what string) error {
	if s == nil {
		return nil
	}
	if err := s.outline.affordable(value, size); err != nil {
		return err
	}
	err := s.resolved.Validate(value)
	if err == nil {
		return nil
	}
	words := strings.ReplaceAll(err.Error(), "validating ", "")
	return fmt.Errorf("%s: %s", what, strings.ToValidUTF8(words[:min(len(words), longestMismatch)], ""))
}

// Function returns what a tool is called in Python: an identifier.
func Function(name string) string {
	out := strings.Map(func(c rune) rune {
		switch {
		case c == '-' || c == '.' || c == ' ':
			return '_'
		case c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z':
			return c
		}
		return -1
	}, name)
	if out == "" || out[0] >= '0' && out[0] <= '9' {
		out = "_" + out
	}
	if slices.Contains(keywords(), out) {
		out += "_tool"
	}
	return out
}

// keywords are the words that Python keeps for itself, and what the module of tools has besides tools.
func keywords() []string {
	return []string{
		"False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in",
		"is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield", "aio", "find_tools", "ToolError",
	}
}
