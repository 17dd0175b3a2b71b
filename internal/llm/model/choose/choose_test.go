package choose_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/llm/model/choose"
)

// nobody is an address where nothing listens.
const nobody = "127.0.0.1:1"

func serving(t *testing.T, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" && r.URL.Path != "/api/tags" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestModel(t *testing.T) {
	t.Parallel()
	one := serving(t, `{"data":[{"id":"qwen3"}]}`) + "/v1"
	two := serving(t, `{"data":[{"id":"a"},{"id":"b"}]}`) + "/v1"
	ollama := strings.TrimPrefix(serving(t, `{"models":[{"name":"llama3"}]}`), "http://")
	empty := strings.TrimPrefix(serving(t, `{"models":[]}`), "http://")
	for name, test := range map[string]struct {
		cfg   config.Config
		named string
		want  string // or the code of the problem
	}{
		"named":                  {config.Config{Models: config.Models{OpenAIKey: "k"}}, "openai/gpt-x", "openai/gpt-x"},
		"setting":                {config.Config{Models: config.Models{OpenAIKey: "k", Default: "ollama/m"}}, "", "ollama/m"},
		"key alone":              {config.Config{Models: config.Models{OpenAIKey: "k"}}, "", "openai/gpt-5.5"},
		"anthropic":              {config.Config{Models: config.Models{AnthropicKey: "k"}}, "", "anthropic/claude-sonnet-5-5"},
		"the only one":           {config.Config{Models: config.Models{OpenAIBaseURL: one}}, "", "openai/qwen3"},
		"several":                {config.Config{Models: config.Models{OpenAIBaseURL: two}}, "", "model_not_named"},
		"ollama":                 {config.Config{Models: config.Models{OllamaHost: ollama}}, "", "ollama/llama3"},
		"ollama without a model": {config.Config{Models: config.Models{OllamaHost: empty}}, "", "ollama_empty"},
		"nothing":                {config.Config{Models: config.Models{OllamaHost: nobody}}, "", "no_model"},
		"no key":                 {config.Config{}, "openai/gpt-x", "model_key_missing"},
		"no provider":            {config.Config{}, "gpt-x", "model_name"},
		"another provider":       {config.Config{}, "mars/gpt-x", "model_provider"},
		"no recording":           {config.Config{}, "replay:/nothere", "input_unreadable"},
		"a name with a slash":    {config.Config{Models: config.Models{OpenAIKey: "k"}}, "openai/Qwen/Qwen3", "openai/Qwen/Qwen3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := choose.Model(t.Context(), test.cfg, test.named)
			text := got.String()
			if err != nil {
				text = problem.Of(err).Code
			}
			if text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}

// TestModelsWithoutTheirProvider wants a name that a provider has to be completed.
func TestModelsWithoutTheirProvider(t *testing.T) {
	t.Parallel()
	own := serving(t, `{"data":[{"id":"tiny"},{"id":"qwen/qwen3"}]}`) + "/v1"
	ollama := strings.TrimPrefix(serving(t, `{"models":[{"name":"llama3:latest"}]}`), "http://")
	all := config.Models{OpenAIBaseURL: own, OllamaHost: ollama, Default: "openai/usual"}
	for named, want := range map[string]string{
		"tiny": "did you mean openai/tiny?", "Tiny": "did you mean openai/tiny?", "qwen/qwen3": "did you mean openai/qwen/qwen3?", "llama3": "did you mean ollama/llama3:latest?",
		"usual": "did you mean openai/usual?", "gpt-5.5": "did you mean openai/gpt-5.5?", "claude-sonnet-5-5": "did you mean anthropic/claude-sonnet-5-5?", "nothing": "write PROVIDER/NAME",
		"mars/x": "the providers are",
	} {
		if _, err := choose.Model(t.Context(), config.Config{Models: all}, named); err == nil || !strings.HasPrefix(problem.Of(err).Hint, want) {
			t.Errorf("%s: %v, %q", named, err, problem.Of(err).Hint)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	base := serving(t, `{"data":[{"id":"a"},{"id":"b"}]}`) + "/v1/"
	names, err := choose.List(t.Context(), choose.Choice{Provider: "openai", BaseURL: base})
	if err != nil || strings.Join(names, " ") != "a b" {
		t.Errorf("got %q, %v", names, err)
	}
	if _, err := choose.List(t.Context(), choose.Choice{Provider: "ollama", BaseURL: nobody}); err == nil {
		t.Error("a server that is not there has models")
	}
}
