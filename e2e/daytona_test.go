package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// TestClientsDaytona has Daytona's own client libraries, as they are published, use a server by the variables that they know; and programs for them that have a model write the code.
func TestClientsDaytona(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t), "COVE_PACKAGES=standard")
	t.Run("libraries", func(t *testing.T) {
		for _, c := range []struct {
			name, example string
			command       func(t *testing.T, source string) *exec.Cmd
			parts         []string
		}{
			{"daytonaold", "workspace.py", pythonSDK, []string{"code", "files", "lives"}},
			{"daytona", "sandbox.py", pythonSDK, []string{"code", "files", "ports", "lives", "volumes", "together"}},
			{"daytonajs", "", nodeSDK, []string{"code", "commands", "files", "lives", "images"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				cmd := c.command(t, filepath.Join("testdata", "sdk", c.name))
				cmd.Env = append(os.Environ(), "DAYTONA_API_URL="+s.base+"/daytona", "DAYTONA_API_KEY="+s.key, "PYTHONDONTWRITEBYTECODE=")
				out, err := cmd.CombinedOutput()
				for _, part := range c.parts {
					if err != nil || !strings.Contains(string(out), "ok "+part+"\n") {
						t.Fatalf("%v\n%s\nthe server: %s", err, out, s.log)
					}
				}
				if c.example != "" {
					daytonaExample(t, s, cmd.Path, c.example)
				}
			})
		}
	})
	if list := s.must(http.MethodGet, "/api/v1/sessions", nil, nil); strings.Contains(string(list.body), `"active"`) {
		t.Errorf("sandboxes are left: %s", list.body)
	}
}

// daytonaExample runs one of the examples, whose model writes code that fails at first.
func daytonaExample(t *testing.T, s *server, python, script string) {
	t.Helper()
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(func(n int, r modeltest.Request) modeltest.Turn {
		messages := r.Messages()
		told := modeltest.Request{Body: map[string]any{"messages": []any{messages[len(messages)-1]}}}.Text()
		switch {
		case n == 0:
			return completion(t, "", "print(sum(n * n for n in range(1, 101)) + offset)")
		case n == 1 && strings.Contains(told, "NameError") && strings.HasPrefix(told, "exit code 1\n"):
			return completion(t, "", "print(sum(n * n for n in range(1, 101)))")
		case n == 2:
			return completion(t, "The sum is "+strings.TrimSpace(told)+".", "")
		}
		return modeltest.Error(400, "invalid_request_error", "the script knows nothing of this: "+told)
	})
	cmd := exec.CommandContext(t.Context(), python, filepath.Join("..", "examples", "daytona", script), "What is the sum of the first 100 squares?")
	cmd.Env = append(os.Environ(), "DAYTONA_API_URL="+s.base+"/daytona", "DAYTONA_API_KEY="+s.key, "OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "OPENAI_MODEL=scripted", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "The sum is 338350.\n") {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
}

// completion is what a model answers in OpenAI's form without a stream: a text, or a call of the tool.
func completion(t *testing.T, text, code string) modeltest.Turn {
	t.Helper()
	message := map[string]any{"role": "assistant", "content": text}
	if code != "" {
		arguments, err := json.Marshal(map[string]string{"code": code})
		if err != nil {
			t.Fatal(err)
		}
		message["tool_calls"] = []any{map[string]any{"id": "call_1", "type": "function", "function": map[string]string{"name": "code_interpreter", "arguments": string(arguments)}}}
	}
	body, err := json.Marshal(map[string]any{"id": "c", "object": "chat.completion", "choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": "stop"}}})
	if err != nil {
		t.Fatal(err)
	}
	return modeltest.Turn{Fault: modeltest.Fault{Body: string(body)}}
}
