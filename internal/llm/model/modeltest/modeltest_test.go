package modeltest_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"cove/internal/llm/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func post(t *testing.T, s *modeltest.Server, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestLoadScript(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "script.json")
	text := `{"dialect": {"no_id": true}, "turns": [
		{"text": ["你好"], "calls": [{"code": "print(1)", "fragment": 100}]},
		{"status": 429, "header": {"Retry-After": "1"}, "body": "slow"}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	script, err := modeltest.LoadScript(path)
	if err != nil {
		t.Fatal(err)
	}
	s := modeltest.Serve(script)
	t.Cleanup(s.Close)
	status, first := post(t, s, "/v1/chat/completions", `{"model":"m","messages":[]}`)
	if status != 200 || !strings.Contains(first, "你好") || !strings.Contains(first, `print(1)`) || strings.Contains(first, "call_1") || !strings.HasSuffix(first, "data: [DONE]\n\n") {
		t.Errorf("%d %s", status, first)
	}
	if status, second := post(t, s, "/v1/messages", `{}`); status != 429 || second != "slow" {
		t.Errorf("%d %s", status, second)
	}
	if status, third := post(t, s, "/v1/messages", `{}`); status != 400 || !strings.Contains(third, "2 turns and this is request 3") {
		t.Errorf("%d %s", status, third)
	}
	if len(script.Requests()) != 3 || script.Left() != 0 {
		t.Errorf("%d requests, %d turns left", len(script.Requests()), script.Left())
	}
	if _, err := modeltest.LoadScript(path + "x"); err == nil {
		t.Error("a script that does not exist was read")
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	s := modeltest.NewServer()
	t.Cleanup(s.Close)
	s.Decide(func(n int, r modeltest.Request) modeltest.Turn {
		return modeltest.Say(strings.Repeat("x", n+1), r.Model())
	})
	for _, want := range []string{`"x"`, `"xx"`} {
		if _, text := post(t, s, "/v1/chat/completions", `{"model":"mine"}`); !strings.Contains(text, want) || !strings.Contains(text, `"mine"`) {
			t.Errorf("%s has no %s", text, want)
		}
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	s := modeltest.NewServer()
	t.Cleanup(s.Close)
	req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, s.OpenAIURL()+"/models", nil)
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if text, _ := io.ReadAll(res.Body); !strings.Contains(string(text), `"id":"scripted"`) {
		t.Errorf("%s", text)
	}
}

// TestCharactersAreSplit shows that a client sees half a character at the end of a read.
func TestCharactersAreSplit(t *testing.T) {
	t.Parallel()
	w := &writes{ResponseWriter: nil, header: http.Header{}}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"m"}`))
	modeltest.NewScript(modeltest.Say("华东")).Handler().ServeHTTP(w, req)
	split := false
	for _, piece := range w.pieces {
		split = split || !utf8.ValidString(piece)
	}
	if all := strings.Join(w.pieces, ""); !split || !strings.Contains(all, "华东") {
		t.Errorf("split: %v in %q", split, w.pieces)
	}
}

// writes keeps each write for itself.
type writes struct {
	http.ResponseWriter
	header http.Header
	pieces []string
}

func (w *writes) Header() http.Header { return w.header }
func (w *writes) WriteHeader(int)     {}
func (w *writes) Flush()              {}
func (w *writes) Write(b []byte) (int, error) {
	w.pieces = append(w.pieces, string(b))
	return len(b), nil
}
