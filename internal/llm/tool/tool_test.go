package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
)

func TestNewSet(t *testing.T) {
	t.Parallel()
	for name, tools := range map[string][]tool.Tool{
		"no name":         {{}},
		"a bad name":      {{Name: "rm -rf"}},
		"a long name":     {{Name: strings.Repeat("a", 129)}},
		"twice":           {{Name: "a"}, {Name: "a"}},
		"a bad schema":    {{Name: "a", Parameters: json.RawMessage(`{"type":7}`)}},
		"no schema":       {{Name: "a", Parameters: json.RawMessage(`[]`)}},
		"from elsewhere":  {{Name: "a", Parameters: json.RawMessage(`{"$ref":"https://example.com/schema.json"}`)}},
		"from a file":     {{Name: "a", Parameters: json.RawMessage(`{"$ref":"file:///etc/passwd"}`)}},
		"too many":        make([]tool.Tool, tool.Most+1),
		"too much":        {{Name: "a", Description: strings.Repeat("a", 5<<20)}},
		"a bad reference": {{Name: "a", Result: json.RawMessage(`{"$ref":"#/$defs/none"}`)}},
	} {
		if _, err := tool.NewSet(tools); !problem.Has(err, problem.ToolInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	set, err := tool.NewSet([]tool.Tool{{Name: "a-b"}, {Name: "a_b"}, {Name: "a.b", Parameters: json.RawMessage(" null ")}})
	if err != nil {
		t.Fatal(err)
	}
	var functions []string
	for function := range set.All {
		functions = append(functions, function)
	}
	if got := strings.Join(functions, " "); got != "a_b a_b_ a_b__" || set.Len() != 3 {
		t.Errorf("functions are %s", got)
	}
	if none := (*tool.Set)(nil); none.Len() != 0 {
		t.Error("no set has tools")
	}
}

func TestFunction(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"get-weather": "get_weather", "7up": "_7up", "class": "class_tool", "a.b c": "a_b_c", "é": "_", "search": "search", "aio": "aio_tool", "x": "x"} {
		if got := tool.Function(name); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSet([]tool.Tool{{Name: "q", Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":1},"s":{"type":"string"}},"required":["n"]}`), Result: json.RawMessage(`{"type":"array"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]string{
		`{"n":1}`: "", `{"n":0}`: "do not fit", `{}`: "do not fit", `{"n":1,"s":2}`: "do not fit", `[]`: "no JSON object", `null`: "no JSON object", `{`: "no JSON object", ``: "no JSON object",
		`{"n":1,"s":"` + strings.Repeat("a", tool.LargestArguments) + `"}`: "larger than",
	} {
		if err := set.Check(tool.Call{Name: "q", Arguments: json.RawMessage(arguments)}); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 600) {
			t.Errorf("%.40s: %v", arguments, err)
		}
	}
	if err := set.Check(tool.Call{Name: "r", Arguments: json.RawMessage(`{}`)}); err == nil {
		t.Error("a tool that was not offered is called")
	}
	for value, want := range map[string]string{`[1]`: "", `{}`: "does not fit", ``: "does not fit", `[`: "no JSON", `"` + strings.Repeat("a", tool.LargestResult) + `"`: "larger than"} {
		if r := set.Answer("q", tool.Result{Value: json.RawMessage(value)}); want == "" && r.Err != "" || !strings.Contains(r.Err, want) {
			t.Errorf("%.40s: %q", value, r.Err)
		}
	}
	if r := set.Answer("q", tool.Failed(strings.Repeat("é", 10_000))); len(r.Err) > 4<<10 || r.Err == "" {
		t.Errorf("an error of %d bytes", len(r.Err))
	}
	if tool.Failed("").Err == "" {
		t.Error("a failure says nothing")
	}
}
