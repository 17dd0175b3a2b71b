package bodybudget_test

import (
	"encoding/json"
	"testing"

	"cove/internal/http/bodybudget"
)

func TestWhyNotJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"code":5}`:          "code has to be a string, not a number",
		`{"code":[1]}`:        "code has to be a string, not an array",
		`{"count":"x"}`:       "count has to be a whole number, not a string",
		`{"count":1.5}`:       "count has to be a whole number, not 1.5",
		`{"list":{}}`:         "list has to be an array, not an object",
		`{"inner":{"yes":1}}`: "inner.yes has to be true or false, not a number",
		`{"inner":true}`:      "inner has to be an object, not true or false",
		`[]`:                  "it has to be an object, not an array",
		`{"code":`:            "unexpected end of JSON input, at byte 8",
		`{"code":x}`:          "invalid character 'x' looking for beginning of value, at byte 9",
		`{"pointer":"x"}`:     "pointer has to be a number, not a string",
	} {
		var v struct {
			Code  string   `json:"code"`
			Count int      `json:"count"`
			List  []string `json:"list"`
			Inner struct {
				Yes bool `json:"yes"`
			} `json:"inner"`
			Pointer *float64 `json:"pointer"`
		}
		if err := json.Unmarshal([]byte(text), &v); err == nil || bodybudget.WhyNotJSON(err) != want {
			t.Errorf("%s: %v becomes %q, want %q", text, err, bodybudget.WhyNotJSON(err), want)
		}
	}
}
