package model_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/llm/model/anthropic"
	"cove/internal/llm/model/openai"
)

// closedPort is an address where nothing listens, nor will before the test's end: a socket that does not listen has it.
func closedPort(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port)
}

func client(dial func(context.Context, string, string) (net.Conn, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	closed := closedPort(t)
	unresolved := client(func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "models.example.com", IsNotFound: true}}
	})
	// The transport lets a dial outlive the request that asked for it.
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	silent := client(func(context.Context, string, string) (net.Conn, error) {
		<-over
		return nil, net.ErrClosed
	})
	limits := model.Limits{Sleep: func(context.Context, time.Duration) error { return nil }}
	short := limits
	short.Connect = 50 * time.Millisecond
	cases := map[string]struct {
		model   model.Model
		kind    problem.Kind
		code    string
		says    string
		hints   string
		retries int
	}{
		"ollama refused": {openai.New(openai.Options{Model: "qwen3", Ollama: true, BaseURL: openai.OllamaBaseURL(closed), Limits: limits}),
			problem.Unavailable, "model_unreachable", closed, "ollama serve", 3},
		"openai refused": {openai.New(openai.Options{Model: "m", BaseURL: "http://" + closed + "/v1", Limits: limits}),
			problem.Unavailable, "model_unreachable", closed, "OPENAI_BASE_URL", 3},
		"anthropic refused": {anthropic.New(anthropic.Options{Model: "m", BaseURL: "http://" + closed, Limits: limits}),
			problem.Unavailable, "model_unreachable", closed, "ANTHROPIC_BASE_URL", 3},
		"no such host": {openai.New(openai.Options{Model: "m", BaseURL: "http://models.example.com/v1", HTTPClient: unresolved, Limits: limits}),
			problem.Unavailable, "model_unreachable", "models.example.com", "OPENAI_BASE_URL", 0},
		"openai silent": {openai.New(openai.Options{Model: "m", BaseURL: "http://models.example.com/v1", HTTPClient: silent, Limits: short}),
			problem.Timeout, "model_connect_timeout", "no connection to models.example.com within 50ms", "OPENAI_BASE_URL", 0},
		"anthropic silent": {anthropic.New(anthropic.Options{Model: "m", BaseURL: "http://models.example.com", HTTPClient: silent, Limits: short}),
			problem.Timeout, "model_connect_timeout", "models.example.com", "ANTHROPIC_BASE_URL", 0},
		"no scheme": {openai.New(openai.Options{Model: "m", BaseURL: "localhost:8000/v1", Limits: limits}),
			problem.Invalid, "model_base_url", "localhost:8000/v1", "full URL", 0},
		"no URL": {anthropic.New(anthropic.Options{Model: "m", BaseURL: "api", Limits: limits}),
			problem.Invalid, "model_base_url", `"api"`, "ANTHROPIC_BASE_URL", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := listen(c.model.Stream(t.Context(), ask("go")))
			if h.problem == nil || h.problem.Kind != c.kind || h.problem.Code != c.code {
				t.Fatalf("problem %+v, want %s %s", h.problem, c.kind, c.code)
			}
			if !strings.Contains(h.problem.Message, c.says) || !strings.Contains(h.problem.Hint, c.hints) {
				t.Errorf("says %q, hints %q", h.problem.Message, h.problem.Hint)
			}
			if len(h.retries) != c.retries {
				t.Errorf("%d retries, want %d", len(h.retries), c.retries)
			}
		})
	}
}

func TestSight(t *testing.T) {
	t.Parallel()
	cases := map[string]bool{
		"gpt-4o-mini": true, "gpt-5.1": true, "o3": true, "openai/o4-mini": true, "claude-sonnet-4-5": true, "qwen2.5vl:7b": true, "Qwen/Qwen3-VL-8B": true,
		"llava:13b": true, "gemma3:4b": true, "llama3.2-vision": true,
		"gpt-3.5-turbo": false, "qwen2.5-coder:7b": false, "deepseek-chat": false, "llama3.1": false, "yolo1": false, "": false,
	}
	for name, want := range cases {
		if got := model.SightAuto.Sees(name); got != want {
			t.Errorf("%q sees: %v, want %v", name, got, want)
		}
		if !model.SightOn.Sees(name) || model.SightOff.Sees(name) {
			t.Errorf("%q: a set sight is not kept", name)
		}
	}
}

func TestArgumentsObject(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		`{"code":"1"}`: `{"code":"1"}`, "": "{}", "\n": "{}",
		`{"code":"1`: `{"invalid_arguments":"{\"code\":\"1"}`, `[1]`: `{"invalid_arguments":"[1]"}`, `null`: `{"invalid_arguments":"null"}`,
	}
	for in, want := range cases {
		if got := model.ArgumentsObject(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
