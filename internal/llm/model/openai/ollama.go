package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
)

// Ollama's OpenAI interface takes no size for the window: the model has the one that the server is set to (OLLAMA_CONTEXT_LENGTH), or that the model's file names, and what is longer
// loses its beginning without a word. Its own interface says which it is, once the model is loaded (docs/api.md of Ollama, "List Running Models").

const (
	windowKept    = time.Minute // another client may have the model loaded anew
	longestListed = 1 << 20     // bytes of the list of running models
)

// window is what was learned of a model's window. Who asks holds the place in free.
type window struct {
	free   chan struct{}
	tokens int64
	asked  time.Time
}

// tokensAtOnce returns how many tokens the model takes at once as Ollama has loaded it, and has it load the model where it has not; 0: Ollama does not say.
func (a *adapter) tokensAtOnce(ctx context.Context) int64 {
	w := &a.window
	select {
	case w.free <- struct{}{}:
		defer func() { <-w.free }()
	case <-ctx.Done():
		return 0
	}
	if time.Since(w.asked) < windowKept {
		return w.tokens
	}
	root := strings.TrimSuffix(strings.TrimSuffix(a.opts.BaseURL, "/"), "/v1")
	running, ok := a.running(ctx, root)
	if !ok {
		body, err := json.Marshal(map[string]string{"model": a.opts.Model})
		if err == nil && a.call(ctx, http.MethodPost, root+"/api/generate", body, nil) == nil {
			running, _ = a.running(ctx, root)
		}
	}
	if ctx.Err() == nil {
		w.tokens, w.asked = max(running, 0), time.Now()
	}
	return w.tokens
}

// running returns the window of the model where Ollama has it loaded.
func (a *adapter) running(ctx context.Context, root string) (tokens int64, loaded bool) {
	var list struct {
		Models []struct {
			Name, Model string
			Context     int64 `json:"context_length"`
		}
	}
	if a.call(ctx, http.MethodGet, root+"/api/ps", nil, &list) != nil {
		return 0, false
	}
	whole := a.opts.Model
	if !strings.Contains(whole, ":") {
		whole += ":latest"
	}
	for _, m := range list.Models {
		if m.Name == whole || m.Model == whole {
			return m.Context, true
		}
	}
	return 0, false
}

func (a *adapter) call(ctx context.Context, method, address string, body []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if a.opts.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+a.opts.APIKey)
	}
	answer, err := a.opts.HTTPClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, longestListed))
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(text, into)
}
