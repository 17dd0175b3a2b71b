package tool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
)

// doubling is a schema in which each of n definitions refers twice to the next.
func doubling(n int, how string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"$ref":"#/$defs/a0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"a%d":{%q:[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, how, i+1, i+1)
	}
	fmt.Fprintf(&b, `"a%d":{"type":"object"}}}`, n)
	return b.String()
}

func TestSchemasThatTakeForEver(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat(`{"x":`, 200) + "{}" + strings.Repeat("}", 200)
	for name, c := range map[string]struct {
		schema, value string
		costly        bool
	}{
		"doubling":        {doubling(60, "allOf"), `{}`, true},
		"any of two":      {doubling(60, "anyOf"), `{}`, true},
		"a few":           {doubling(5, "allOf"), `{}`, false},
		"itself":          {`{"$ref":"#"}`, `{}`, true},
		"itself, around":  {`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{"$ref":"#/$defs/a"}}}}`, `{}`, true},
		"twice by depth":  {`{"allOf":[{"properties":{"x":{"$ref":"#"}}},{"properties":{"x":{"$ref":"#"}}}]}`, nested, true},
		"once by depth":   {`{"properties":{"x":{"$ref":"#"}}}`, nested, false},
		"patterns":        {`{"properties":{"s":{"allOf":[` + strings.Repeat(`{"pattern":"a"},`, 2000) + `{}]}}}`, `{"s":"` + strings.Repeat("b", 500_000) + `"}`, true},
		"a long list":     {`{"properties":{"l":{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}}`, `{"l":[` + strings.Repeat("1,", 100_000) + `1]}`, false},
		"data":            {`{"properties":{"a":{"default":{"$ref":"elsewhere"},"enum":[{"$ref":"x"}]},"default":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}}`, `{"default":"d"}`, false},
		"an escaped path": {`{"properties":{"x":{"$ref":"#/$defs/a~1b"}},"$defs":{"a/b":{"type":"object"}}}`, `{"x":{}}`, false},
	} {
		set, err := tool.NewSet([]tool.Tool{{Name: "t", Parameters: json.RawMessage(c.schema), Result: json.RawMessage(c.schema)}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		err = set.Check(tool.Call{Name: "t", Arguments: json.RawMessage(c.value)})
		if c.costly != (err != nil && strings.Contains(err.Error(), "takes too long")) || !c.costly && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if r := set.Answer("t", tool.Result{Value: json.RawMessage(c.value)}); c.costly != strings.Contains(r.Err, "takes too long") {
			t.Errorf("%s: the result: %s", name, r.Err)
		}
	}
	for _, schema := range []string{`{"$dynamicRef":"#a"}`, `{"$ref":"#a","$defs":{"a":{"$anchor":"a"}}}`, `{"properties":{"x":{"$ref":"#/$defs/none"}}}`} {
		if _, err := tool.NewSet([]tool.Tool{{Name: "t", Parameters: json.RawMessage(schema)}}); !problem.Has(err, problem.ToolInvalid) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}
