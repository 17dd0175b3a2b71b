package app_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/commands/app"
	"cove/internal/core/config"
	"cove/internal/llm/model"
	"cove/internal/server/hub"
)

// The list of models says of each what the settings say, and of its sight what its name says where they say nothing.
func TestModelsSayWhatIsKnown(t *testing.T) {
	t.Parallel()
	m := app.ModelsWith(config.Config{Models: config.Models{
		Serve:     config.List{"openai/gpt-5.1", "openai/gpt-4o", "openai/gpt-4.1", "ollama/unknown"},
		About:     config.List{"openai/gpt-5.1 context=400000 input=1.25 output=10 cached=0.125", "openai/gpt-4o vision=off"},
		OpenAIKey: "k",
	}}, nil)
	got, err := m.List(t.Context())
	want := []hub.ModelInfo{
		{ID: "openai/gpt-5.1", Provider: "openai", Default: true, About: model.About{Context: 400_000, Vision: new(true),
			Price: &model.Price{Input: 1_250_000, Output: 10_000_000, Cached: new(int64(125_000)), Currency: "USD"}}},
		{ID: "openai/gpt-4o", Provider: "openai", About: model.About{Vision: new(false)}},
		{ID: "openai/gpt-4.1", Provider: "openai", About: model.About{Vision: new(true)}},
		{ID: "ollama/unknown", Provider: "ollama"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for name, sees := range map[string]bool{"openai/gpt-4o": false, "openai/gpt-4.1": true} {
		if opened, err := m.Open(t.Context(), name); err != nil || opened.Name() != name || opened.Capabilities().Images != sees {
			t.Errorf("%s: %v, %v", name, opened, err)
		}
	}
}
