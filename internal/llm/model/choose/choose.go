// Package choose says which language model a name means, and which one to take when nobody names one: what the settings say, and then what
// the environment offers.
package choose

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"cove/internal/core/config"
	"cove/internal/core/problem"
)

// The models that are taken when a key is there and no model is named.
const (
	defaultOpenAI    = "gpt-5.5"
	defaultAnthropic = "claude-sonnet-5-5"
)

// Choice is a model that was named or found.
type Choice struct {
	Provider string // openai, anthropic, ollama or replay
	Name     string // the model's name at the provider; the file of a replay
	BaseURL  string // "" is the provider's own; for ollama OLLAMA_HOST as it was set
	Key      string
	Because  string // why this one, when nobody named it
}

func (c Choice) String() string {
	if c.Provider == "replay" {
		return "replay:" + c.Name
	}
	return c.Provider + "/" + c.Name
}

// Model takes the model that the command line, the variable or the config file names, and else looks for what
// the environment offers.
func Model(ctx context.Context, c config.Config, named string) (Choice, error) {
	if named == "" {
		named = c.Models.Default
	}
	if named != "" {
		choice, err := Parse(c, named)
		return choice, Suggest(ctx, c, named, err)
	}
	if c.Models.OpenAIKey != "" || c.Models.OpenAIBaseURL != "" {
		return foundOpenAI(ctx, c)
	}
	if c.Models.AnthropicKey != "" {
		return Choice{Provider: "anthropic", Name: defaultAnthropic, BaseURL: c.Models.AnthropicBaseURL, Key: c.Models.AnthropicKey, Because: "ANTHROPIC_API_KEY is set"}, nil
	}
	names, err := list(ctx, OllamaAddress(c.Models.OllamaHost)+"/api/tags", "")
	if err == nil && len(names) > 0 {
		return Choice{Provider: "ollama", Name: names[0], BaseURL: c.Models.OllamaHost, Because: "an Ollama server is running on " + OllamaAddress(c.Models.OllamaHost)}, nil
	}
	if err == nil {
		return Choice{}, problem.New(problem.OllamaEmpty, "an Ollama server is running, but it has no model").
			WithHint("get one, for example: ollama pull qwen3")
	}
	return Choice{}, noModel()
}

// Suggest adds to what Parse says of a name, which may be nil, which model the name most likely means.
func Suggest(ctx context.Context, c config.Config, named string, err error) error {
	if !problem.Has(err, problem.ModelName) && !problem.Has(err, problem.ModelProvider) {
		return err
	}
	if meant := meant(ctx, c, named); meant != "" {
		return problem.Of(err).WithHint("did you mean " + printable(meant) + "?")
	}
	return err
}

// meant is PROVIDER/NAME of the model that has this name at a provider, as the settings and the providers say, or "".
func meant(ctx context.Context, c config.Config, named string) string {
	known := append([]string{c.Models.Default}, c.Models.Serve...)
	if at := slices.IndexFunc(known, func(one string) bool { _, name, _ := strings.Cut(one, "/"); return strings.EqualFold(name, named) }); at >= 0 {
		return known[at]
	}
	providers := []Choice{{Provider: "ollama", BaseURL: c.Models.OllamaHost}}
	if c.Models.OpenAIKey != "" || c.Models.OpenAIBaseURL != "" {
		providers = append(providers, Choice{Provider: "openai", BaseURL: c.Models.OpenAIBaseURL, Key: c.Models.OpenAIKey})
	}
	for _, p := range providers {
		names, _ := List(ctx, p) // one that does not answer is not what is meant
		for _, name := range names {
			if short, _, _ := strings.Cut(name, ":"); strings.EqualFold(name, named) || p.Provider == "ollama" && strings.EqualFold(short, named) {
				return p.Provider + "/" + name
			}
		}
	}
	for prefix, provider := range map[string]string{"gpt-": "openai", "claude-": "anthropic"} {
		if strings.HasPrefix(named, prefix) {
			return provider + "/" + named
		}
	}
	return ""
}

func noModel() error {
	return problem.New(problem.NoModel, "no language model is configured").WithHint(`Any one of these gives cove a model:
  1. a service:      export OPENAI_API_KEY=...   or   export ANTHROPIC_API_KEY=...
  2. your own:       install Ollama and run: ollama pull qwen3
  3. any compatible server (vLLM, llama.cpp, DeepSeek, Qwen, ...):
                     export OPENAI_BASE_URL=http://host:8000/v1 COVE_MODEL=openai/NAME
cove run needs no model.`)
}

// foundOpenAI names the default model at OpenAI itself; another server is asked what it has.
func foundOpenAI(ctx context.Context, c config.Config) (Choice, error) {
	choice := Choice{Provider: "openai", Name: defaultOpenAI, BaseURL: c.Models.OpenAIBaseURL, Key: c.Models.OpenAIKey, Because: "OPENAI_API_KEY is set"}
	if c.Models.OpenAIBaseURL == "" {
		return choice, nil
	}
	choice.Because = "OPENAI_BASE_URL is set"
	names, err := list(ctx, strings.TrimSuffix(c.Models.OpenAIBaseURL, "/")+"/models", c.Models.OpenAIKey)
	if err != nil || len(names) == 0 {
		return choice, nil // asking the model will say what is wrong with the server
	}
	for _, n := range names {
		if n == defaultOpenAI {
			return choice, nil
		}
	}
	if len(names) == 1 {
		choice.Name, choice.Because = names[0], "it is the only model of the server that OPENAI_BASE_URL names"
		return choice, nil
	}
	return Choice{}, problem.New(problem.ModelNotNamed, fmt.Sprintf("the server that OPENAI_BASE_URL names has %d models", len(names))).
		WithHint("choose one with --model or COVE_MODEL, for example openai/" + printable(names[0]))
}

// Parse returns the model that PROVIDER/NAME or replay:FILE names.
func Parse(c config.Config, named string) (Choice, error) {
	if file, ok := strings.CutPrefix(named, "replay:"); ok {
		if _, err := os.Stat(file); err != nil {
			return Choice{}, problem.New(problem.InputUnreadable, "the recording "+printable(file)+" cannot be read").WithCause(err)
		}
		return Choice{Provider: "replay", Name: file}, nil
	}
	provider, name, ok := strings.Cut(named, "/")
	if !ok || name == "" {
		return Choice{}, problem.New(problem.ModelName, fmt.Sprintf("%q does not name a model", named)).
			WithHint("write PROVIDER/NAME, for example openai/" + defaultOpenAI + ", anthropic/" + defaultAnthropic + ", ollama/qwen3, or replay:FILE")
	}
	switch provider {
	case "openai":
		if c.Models.OpenAIKey == "" && c.Models.OpenAIBaseURL == "" {
			return Choice{}, missingKey("OPENAI_API_KEY", "; for a compatible server of your own set OPENAI_BASE_URL")
		}
		return Choice{Provider: provider, Name: name, BaseURL: c.Models.OpenAIBaseURL, Key: c.Models.OpenAIKey}, nil
	case "anthropic":
		if c.Models.AnthropicKey == "" && c.Models.AnthropicBaseURL == "" {
			return Choice{}, missingKey("ANTHROPIC_API_KEY", "")
		}
		return Choice{Provider: provider, Name: name, BaseURL: c.Models.AnthropicBaseURL, Key: c.Models.AnthropicKey}, nil
	case "ollama":
		return Choice{Provider: provider, Name: name, BaseURL: c.Models.OllamaHost}, nil
	}
	return Choice{}, problem.New(problem.ModelProvider, fmt.Sprintf("there is no provider %q", provider)).
		WithHint("the providers are openai, anthropic and ollama; a server that speaks OpenAI's protocol is openai with OPENAI_BASE_URL")
}

func missingKey(variable, also string) error {
	return problem.New(problem.ModelKeyMissing, "this model needs a key and "+variable+" is not set").
		WithHint("set " + variable + also)
}

// OllamaAddress is the address of an Ollama server for a value of OLLAMA_HOST, which may lack scheme and port.
func OllamaAddress(host string) string {
	host = strings.TrimSuffix(strings.TrimSpace(host), "/")
	if host == "" {
		host = "127.0.0.1"
	}
	scheme, rest, ok := strings.Cut(host, "://")
	if !ok {
		scheme, rest = "http", host
	}
	rest = strings.Replace(rest, "0.0.0.0", "127.0.0.1", 1)
	if !strings.Contains(rest, ":") && scheme == "http" {
		rest += ":11434"
	}
	return scheme + "://" + rest
}

// printable is a name that another program gave, fit for a sentence.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

// List returns the names of the models that the provider of c has, without the provider. What it cannot be asked is an error.
func List(ctx context.Context, c Choice) ([]string, error) {
	switch c.Provider {
	case "openai":
		base := c.BaseURL
		if base == "" {
			base = "https://api.openai.com/v1"
		}
		return list(ctx, strings.TrimSuffix(base, "/")+"/models", c.Key)
	case "ollama":
		return list(ctx, OllamaAddress(c.BaseURL)+"/api/tags", "")
	}
	return []string{c.Name}, nil
}

// list asks a server which models it has; it understands Ollama's /api/tags and OpenAI's /models.
func list(ctx context.Context, url, key string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s", resp.Status)
	}
	var body struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&body); err != nil {
		return nil, err
	}
	var names []string
	for _, m := range body.Models {
		names = append(names, m.Name)
	}
	for _, m := range body.Data {
		names = append(names, m.ID)
	}
	return names, nil
}
