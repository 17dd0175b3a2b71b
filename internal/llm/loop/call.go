package loop

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"cove/internal/llm/model"
)

const toolName = "python"

// toolNames are the names that models use for the tool out of habit.
var toolNames = map[string]bool{
	toolName: true, "code_interpreter": true, "python_interpreter": true, "execute_python": true,
	"run_python": true, "ipython": true,
}

// codeNames are the argument names that models use for the code, the likeliest first.
var codeNames = []string{
	"code", "input", "source", "script", "python", "python_code", "source_code", "command", "cmd", "query", "content",
	"text", "expression",
}

// wrapperNames are the keys under which some models put the arguments once more.
var wrapperNames = []string{"arguments", "parameters", "args", "input"}

var validName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) })

// isPython says whether a call's name means the python tool. Servers that prefix names with a namespace exist.
func isPython(name string) bool {
	if at := strings.LastIndexAny(name, ".:/"); at >= 0 {
		name = name[at+1:]
	}
	return toolNames[strings.ToLower(strings.TrimSpace(name))]
}

// codeOf returns the code in a call's arguments. Its error is a sentence for the model.
func codeOf(arguments string) (string, error) {
	text := strings.TrimSpace(arguments)
	if text == "" {
		return "", errors.New(`the call has no arguments; send {"code": "..."} with the code to run`)
	}
	value, err := parseLenient(text)
	if err != nil {
		if strings.HasPrefix(text, "{") || strings.HasPrefix(text, `"`) || strings.HasPrefix(text, "[{") {
			return "", fmt.Errorf(`the arguments are not valid JSON (%w); send {"code": "..."} with the code as one `+
				`JSON string, line ends written as \n`, err)
		}
		return unfence(text), nil
	}
	code, ok := codeIn(value, 0)
	switch {
	case !ok:
		return "", errors.New(`the arguments hold no code; send {"code": "..."} with the code as one JSON string`)
	case strings.TrimSpace(code) == "":
		return "", errors.New("the code is empty")
	}
	return unfence(code), nil
}

// codeIn finds the code in decoded arguments.
func codeIn(value any, depth int) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case []any:
		return lines(v)
	case float64, bool, nil:
		return "", false
	case map[string]any:
		for _, name := range codeNames {
			switch c := v[name].(type) {
			case string:
				return c, true
			case []any:
				return lines(c)
			}
		}
		for _, name := range wrapperNames {
			if inner, ok := v[name].(map[string]any); ok && depth == 0 {
				return codeIn(inner, depth+1)
			}
		}
		return only(v)
	}
	return "", false
}

// only returns the value of an object whose single field is a string.
func only(object map[string]any) (string, bool) {
	if len(object) != 1 {
		return "", false
	}
	for _, value := range object {
		text, ok := value.(string)
		return text, ok
	}
	return "", false
}

// lines joins an array of strings, as which some models send code.
func lines(values []any) (string, bool) {
	var out []string
	for _, v := range values {
		line, ok := v.(string)
		if !ok {
			return "", false
		}
		out = append(out, strings.TrimSuffix(line, "\n"))
	}
	return strings.Join(out, "\n"), len(out) > 0
}

// parseLenient decodes JSON, raw control characters in strings allowed.
func parseLenient(text string) (any, error) {
	var value any
	err := json.Unmarshal([]byte(text), &value)
	if err == nil {
		return value, nil
	}
	if json.Unmarshal([]byte(escapeControls(text)), &value) == nil {
		return value, nil
	}
	return nil, err
}

// escapeControls escapes the control characters that stand raw in the strings of JSON text.
func escapeControls(text string) string {
	var b strings.Builder
	in, escape := false, false
	for n := 0; n < len(text); n++ {
		c := text[n]
		switch {
		case in && c < 0x20:
			fmt.Fprintf(&b, `\u%04x`, c)
			escape = false
			continue
		case escape:
			escape = false
		case in && c == '\\':
			escape = true
		case c == '"':
			in = !in
		}
		b.WriteByte(c)
	}
	return b.String()
}

// unfence removes a fence around the whole of code, which some models put into the arguments.
func unfence(code string) string {
	first, rest, ok := strings.Cut(strings.TrimSpace(code), "\n")
	if !ok || !strings.HasPrefix(first, "```") || strings.Contains(strings.Trim(first, "`"), "`") {
		return code
	}
	body, ok := strings.CutSuffix(rest, "```")
	if !ok || strings.HasPrefix(body, "```") || strings.Contains(body, "\n```") {
		return code
	}
	return body
}

// tidy returns a call as it may stand in the conversation: a known name, arguments that are a JSON object.
// Providers refuse others.
func (t *turn) tidy(call model.ToolCall) model.ToolCall {
	if t.isClient(call.Name) {
		call.Arguments = model.ArgumentsObject(strings.ToValidUTF8(call.Arguments, "\uFFFD"))
		return call
	}
	if isPython(call.Name) || call.Name == "" {
		call.Name = toolName
	} else if !validName().MatchString(call.Name) {
		call.Name = "unknown_tool"
	}
	var object map[string]any
	if json.Unmarshal([]byte(call.Arguments), &object) == nil && object != nil {
		return call
	}
	key, text := "code", call.Arguments
	if code, err := codeOf(call.Arguments); err == nil {
		text = code
	} else {
		key = "invalid"
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	encoded, err := json.Marshal(map[string]string{key: text})
	if err != nil {
		encoded = []byte("{}")
	}
	call.Arguments = string(encoded)
	return call
}

// textCall is the content of a <tool_call> element.
type textCall struct {
	Name       string          `json:"name"`
	Arguments  json.RawMessage `json:"arguments"`
	Parameters json.RawMessage `json:"parameters"`
}

// callInText returns the call that the content of a <tool_call> element makes.
func callInText(content string) (model.ToolCall, error) {
	var c textCall
	text := strings.TrimSpace(content)
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		if json.Unmarshal([]byte(escapeControls(text)), &c) != nil {
			return model.ToolCall{}, fmt.Errorf("the <tool_call> is not valid JSON (%w)", err)
		}
	}
	arguments := c.Arguments
	if len(arguments) == 0 {
		arguments = c.Parameters
	}
	// A JSON string here holds the arguments as text once more, or the bare code.
	var inner string
	if json.Unmarshal(arguments, &inner) == nil {
		return model.ToolCall{Name: c.Name, Arguments: inner}, nil
	}
	return model.ToolCall{Name: c.Name, Arguments: string(arguments)}, nil
}
