package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/commands/app"
	"cove/internal/core/config"
	"cove/internal/core/problem"
)

// TestServedModels is the table of what clients get for the names that they send.
func TestServedModels(t *testing.T) {
	t.Parallel()
	free := config.Config{Models: config.Models{OpenAIKey: "k", AnthropicKey: "k", Default: "openai/main"}}
	chosen := free
	chosen.Models.Serve = config.List{"anthropic/big", "openai/small"}
	recorded := config.Config{Models: config.Models{Default: "replay:" + recording(t)}}
	several := config.Config{Models: config.Models{OpenAIBaseURL: listing(t), AnthropicKey: "k"}}
	for name, test := range map[string]struct {
		cfg   config.Config
		named string
		want  string // or the code of the problem
	}{
		"none":                          {free, "", "openai/main"},
		"a habit":                       {free, "gpt-4o", "openai/gpt-4o"},
		"another provider":              {free, "anthropic/x", "anthropic/x"},
		"a name with a slash":           {free, "Qwen/Qwen3", "openai/Qwen/Qwen3"},
		"a file of the operator's":      {free, "replay:/etc/passwd", "openai/replay:/etc/passwd"},
		"served: none":                  {chosen, "", "anthropic/big"},
		"served: whole":                 {chosen, "openai/small", "openai/small"},
		"served: name alone":            {chosen, "small", "openai/small"},
		"served: a habit":               {chosen, "gpt-4o", "anthropic/big"},
		"served: refused":               {chosen, "openai/other", "model_not_found"},
		"served: a file":                {chosen, "replay:/etc/passwd", "anthropic/big"},
		"several: none":                 {several, "", "model_not_named"},
		"several: one of them":          {several, "b", "openai/b"},
		"several: whole":                {several, "openai/b", "openai/b"},
		"several: another provider":     {several, "anthropic/x", "anthropic/x"},
		"a recording for all":           {recorded, "gpt-4o", recorded.Models.Default},
		"a recording by another's name": {recorded, "replay:/etc/passwd", recorded.Models.Default},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := app.ChosenModel(t.Context(), test.cfg, test.named)
			if err != nil {
				got = problem.Of(err).Code
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestSeveralModels wants all models of a service to be there to be named, where the settings name none.
func TestSeveralModels(t *testing.T) {
	t.Parallel()
	models := app.Models(config.Config{Models: config.Models{OpenAIBaseURL: listing(t)}})
	list, err := models.List(t.Context())
	if err != nil || len(list) != 2 || list[0].ID != "openai/a" || list[1].ID != "openai/b" || list[0].Default || list[1].Default {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if m, err := models.Open(t.Context(), "b"); err != nil || m.Name() != "openai/b" {
		t.Errorf("b is %v, %v", m, err)
	}
	if _, err := models.Open(t.Context(), ""); err == nil || !strings.Contains(problem.Of(err).Hint, "models.serve") || strings.Contains(err.Error(), "COVE_MODEL") {
		t.Errorf("without a name: %v", err)
	}
}

// TestModelsNamedLikeProviders wants every listed name to be accepted, in both forms, also where a service's own name begins like a provider's.
func TestModelsNamedLikeProviders(t *testing.T) {
	t.Parallel()
	c := config.Config{Models: config.Models{OpenAIBaseURL: listing(t, "openai/gpt-oss-20b", "qwen/qwen3", "b"), Default: "openai/b"}}
	for name, want := range map[string]string{
		"openai/openai/gpt-oss-20b": "openai/openai/gpt-oss-20b", "openai/gpt-oss-20b": "openai/openai/gpt-oss-20b",
		"openai/qwen/qwen3": "openai/qwen/qwen3", "qwen/qwen3": "openai/qwen/qwen3", "openai/b": "openai/b", "b": "openai/b", "openai/unlisted": "openai/unlisted",
	} {
		if got, err := app.ChosenModel(t.Context(), c, name); err != nil || got != want {
			t.Errorf("%s is %s, %v, and not %s", name, got, err, want)
		}
	}
}

// listing is the address of a service with models, which are a and b where none is named.
func listing(t *testing.T, names ...string) string {
	if names == nil {
		names = []string{"a", "b"}
	}
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(c).ReadString('\n')
			body := `{"data":[{"id":"` + strings.Join(names, `"},{"id":"`) + `"}]}`
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	return "http://" + l.Addr().String() + "/v1"
}

func recording(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret-place.json")
	if err := os.WriteFile(file, []byte(`{"parts": [{"text": "fine"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRecordingsAreNotPlaced keeps the operator's folders from clients.
func TestRecordingsAreNotPlaced(t *testing.T) {
	t.Parallel()
	models := app.Models(config.Config{Models: config.Models{Default: "replay:" + recording(t)}})
	m, err := models.Open(t.Context(), "gpt-4o")
	if err != nil {
		t.Fatal(err)
	}
	list, err := models.List(t.Context())
	if err != nil || len(list) != 1 || !list[0].Default {
		t.Fatalf("the list is %+v, %v", list, err)
	}
	for _, name := range []string{m.Name(), list[0].ID} {
		if strings.Contains(name, "secret-place") {
			t.Errorf("clients see %s", name)
		}
	}
}

func TestOneServerPerFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "server")
	release, err := app.LockServer(dir, "http://127.0.0.1:8700")
	if err != nil {
		t.Fatal(err)
	}
	_, err = app.LockServer(dir, "")
	if p := problem.Of(err); p == nil || p.Code != "server_running" || !strings.Contains(p.Message, "http://127.0.0.1:8700") {
		t.Errorf("a second server is told %v", err)
	}
	release()
	if release, err = app.LockServer(dir, ""); err != nil {
		t.Fatalf("after the first one's end: %v", err)
	}
	release()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := app.LockServer(file, ""); problem.Of(err) == nil || problem.Of(err).Code != "data_folder_unusable" {
		t.Errorf("where a file is in the way: %v", err)
	}
}
