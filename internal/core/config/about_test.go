package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/config"
)

func TestWhatIsKnownOfModels(t *testing.T) {
	t.Parallel()
	file := "[models]\nabout = [\"openai/gpt-5.1 context=400000 input=1.25 output=10 cached=0.125 vision=on\", \"ollama/qwen3:8b context=40960 vision=off\", \"openai/free input=0 output=0\"]\n"
	want := map[string]config.ModelAbout{
		"openai/gpt-5.1":  {Context: 400_000, Vision: new(true), Price: &config.ModelPrice{Input: 1_250_000, Output: 10_000_000, Cached: new(int64(125_000)), Currency: "USD"}},
		"ollama/qwen3:8b": {Context: 40_960, Vision: new(false)},
		"openai/free":     {Price: &config.ModelPrice{Currency: "USD"}},
	}
	c, err := load(t, file)
	if err != nil {
		t.Fatal(err)
	}
	again, err := load(t, "", "COVE_MODELS_ABOUT", c.Models.About.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []config.Config{c, again} {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
		got, err := c.Models.Known()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
	}
}

func TestMistakesAboutModels(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"context=5":                         "without a model before it",
		"gpt context=5":                     `openai/NAME, not "gpt"`,
		"a/b context=5 a/b":                 `"a/b" twice`,
		"a/b context=5 context=6":           "context twice",
		"a/b context=0":                     "number of tokens",
		"a/b context=1e6":                   "number of tokens",
		"a/b context=99999999999":           "number of tokens",
		"a/b vision=perhaps":                "perhaps",
		"a/b size=5":                        `no "size"`,
		"a/b =5":                            `no ""`,
		"a/b input=1":                       "both input and output",
		"a/b cached=1":                      "both input and output",
		"a/b currency=USD":                  "both input and output",
		"a/b input=-1 output=1":             `"-1" is not a price`,
		"a/b input=1e3 output=1":            "is not a price",
		"a/b input=0.0000001 output=1":      "is not a price",
		"a/b input=NaN output=1":            "is not a price",
		"a/b input=1 output=":               "is not a price",
		"a/b input=1 output=1 currency=usd": "not a currency",
		"a/b input=1 output=1 a/c input=1 output=2 currency=CNY": "USD (a/b) and in CNY (a/c)",
	} {
		c, err := load(t, "", "COVE_MODELS_ABOUT", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "models.about") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
