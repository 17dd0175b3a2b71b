package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cove/internal/llm/model/openai"
)

// TestWindowOfOllama asks servers as there are: with the model loaded, without, and older ones that do not say.
func TestWindowOfOllama(t *testing.T) {
	t.Parallel()
	const running = `{"models":[{"name":"other:latest","model":"other:latest","context_length":9},{"name":"%s","model":"%s","size":1,"context_length":%d}]}`
	for name, c := range map[string]struct {
		model  string
		before string // what runs
		after  string // what runs when the model was loaded; "" where loading fails
		want   int64
		loads  int
	}{
		"loaded":             {"qwen3", fmt.Sprintf(running, "qwen3:latest", "qwen3:latest", 4096), "", 4096, 0},
		"loaded, with a tag": {"qwen3:8b", fmt.Sprintf(running, "qwen3:8b", "qwen3:8b", 32768), "", 32768, 0},
		"not loaded":         {"qwen3", `{"models":[]}`, fmt.Sprintf(running, "qwen3:latest", "qwen3:latest", 8192), 8192, 1},
		"another tag runs":   {"qwen3", fmt.Sprintf(running, "qwen3:8b", "qwen3:8b", 9), fmt.Sprintf(running, "qwen3:latest", "qwen3:latest", 4096), 4096, 1},
		"an older server":    {"qwen3", `{"models":[{"name":"qwen3:latest","model":"qwen3:latest"}]}`, "", 0, 0},
		"it cannot load":     {"qwen3", `{"models":[]}`, "", 0, 1},
		"something else":     {"qwen3", `<html>`, "", 0, 1},
		"nonsense":           {"qwen3", fmt.Sprintf(running, "qwen3:latest", "qwen3:latest", -5), "", 0, 0},
	} {
		loads, state := 0, c.before
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.Method + r.URL.Path {
			case "GET/api/ps":
				fmt.Fprint(w, state)
			case "POST/api/generate":
				body, err := io.ReadAll(r.Body)
				if loads++; err != nil || string(body) != `{"model":"`+c.model+`"}` {
					t.Errorf("%s: it is asked for %s, %v", name, body, err)
				}
				if state = c.after; state == "" {
					http.Error(w, `{"error":"model not found"}`, http.StatusNotFound)
				}
			default:
				t.Errorf("%s: %s %s", name, r.Method, r.URL)
			}
		}))
		m := openai.New(openai.Options{Model: c.model, BaseURL: openai.OllamaBaseURL(strings.TrimPrefix(server.URL, "http://")), Ollama: true, HTTPClient: server.Client()})
		for range 2 { // the second time it is known
			if got := m.Capabilities().Window(t.Context()); got != c.want || loads != c.loads {
				t.Errorf("%s: %d tokens after %d loads, want %d after %d", name, got, loads, c.want, c.loads)
			}
		}
		server.Close()
	}
	if openai.New(openai.Options{Model: "gpt"}).Capabilities().Window != nil {
		t.Error("a service that is not Ollama is asked")
	}
}
