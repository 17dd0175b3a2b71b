package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"cove/internal/llm/tool"
)

func TestSignature(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		``:                  "f(**others)",
		`{"type":"object"}`: "f(**others)",
		`true`:              "f(**others)",
		`{"type":"object","additionalProperties":false}`:                                                               "f()",
		`{"properties":{"city":{"type":"string"},"unit":{"enum":["c","f"],"default":"c"}},"required":["city"]}`:        `f(city: str, unit: Literal["c", "f"] = "c")`,
		`{"properties":{"b":{"type":"array","items":{"type":"integer"}},"a":{"type":["string","null"]}}}`:              "f(a: str | None = None, b: list[int] = None)",
		`{"properties":{"a-b":{"type":"string"},"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["n"]}`: "f(n: int | None, **others)",
		`{"properties":{"on":{"type":"boolean","default":true},"x":{}},"required":["x","on"]}`:                         "f(x: Any, on: bool)",
		`{"properties":{"s":{"enum":["` + strings.Repeat("a", 500) + `"]}},"required":["s"]}`:                          "f(s: Literal[None])",
	} {
		if got := tool.Signature("f", tool.Tool{Parameters: json.RawMessage(schema)}); got != want {
			t.Errorf("%.60s: %s", schema, got)
		}
	}
	if got := tool.Signature("f", tool.Tool{Result: json.RawMessage(`{"type":"array","items":{"type":"object"}}`)}); got != "f(**others) -> list[dict]" {
		t.Errorf("with a result: %s", got)
	}
}
