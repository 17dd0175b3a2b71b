package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// TestClientsAnthropic has Anthropic's published clients talk to a server whose model, after another provider's interface, follows a script.
func TestClientsAnthropic(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(shellModel)
	s := startServer(t, "", testKey(t), "OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted")
	t.Run("go", func(t *testing.T) { anthropicGo(t, s) })
	for name, command := range map[string]func(*testing.T, string) *exec.Cmd{"anthropic": pythonSDK, "anthropicjs": nodeSDK} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, filepath.Join("testdata", "sdk", name))
			cmd.Env = append(os.Environ(), "ANTHROPIC_BASE_URL="+s.base+"/anthropic", "ANTHROPIC_API_KEY="+s.key, "PYTHONDONTWRITEBYTECODE=")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "ok anthropic") {
				t.Errorf("%v\n%s\nthe server: %s", err, out, s.log)
			}
		})
	}
}

// shellCalls are what the model calls with the tools of commands and files, by a word of the last question.
func shellCalls() map[string][]modeltest.Call {
	run := func(command string) modeltest.Call {
		arguments, _ := json.Marshal(map[string]string{"command": command})
		return modeltest.Call{Name: "bash_code_execution", Arguments: string(arguments)}
	}
	edit := func(arguments string) modeltest.Call {
		return modeltest.Call{Name: "text_editor_code_execution", Arguments: arguments}
	}
	return map[string][]modeltest.Call{
		"list all": {run("ls -la | head -5; python3 -c 'print(6 * 7)'")},
		"config.yaml": {
			edit(`{"command": "create", "path": "config.yaml", "file_text": "database:\n  host: localhost\n  port: 5432\n"}`), edit(`{"command": "view", "path": "config.yaml"}`),
			edit(`{"command": "str_replace", "path": "config.yaml", "old_str": "port: 5432", "new_str": "port: 3306"}`), run("cat config.yaml"),
		},
		"output.png":              {run("echo " + sdkPixel + " | base64 -d > output.png")},
		"Write a file with a ran": {run("echo 7 > /tmp/number.txt")},
		"Read the number":         {run("n=$(cat /tmp/number.txt); echo $((n * n))")},
		"fails":                   {run("echo out; echo err >&2; exit 3"), edit(`{"command": "view", "path": "none.txt"}`)},
		"attached":                {run("cat data.csv")},
	}
}

// shellModel is sdkModel where Python is offered. With commands and files it makes one call after the other, and says what the last one gave.
func shellModel(n int, r modeltest.Request) modeltest.Turn {
	if !slices.Contains(r.Tools(), "bash_code_execution") {
		return sdkModel(n, r)
	}
	messages, done, printed := r.Messages(), 0, ""
	for k := len(messages) - 1; k >= 0; k-- {
		text := modeltest.Request{Body: map[string]any{"messages": []any{messages[k]}}}.Text()
		if messages[k]["role"] == "tool" {
			if done++; printed == "" {
				printed = text
			}
		}
		if messages[k]["role"] != "user" {
			continue
		}
		for word, calls := range shellCalls() {
			if !strings.Contains(text, word) {
				continue
			}
			turn := modeltest.Say("It gave: " + printed)
			if done < len(calls) {
				turn = modeltest.Turn{Calls: calls[done : done+1]}
			}
			turn.Input, turn.Output = 10, 5
			return turn
		}
	}
	return sdkModel(n, r)
}

// anthropicGo streams an answer, goes on in its container, and takes what the code wrote.
func anthropicGo(t *testing.T, s *server) {
	client := sdk.NewClient(option.WithBaseURL(s.base+"/anthropic"), option.WithAPIKey(s.key), option.WithMaxRetries(0))
	params := func(text string) sdk.MessageNewParams {
		return sdk.MessageNewParams{Model: "scripted", MaxTokens: 1024, Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock(text))},
			Tools: []sdk.ToolUnionParam{{OfCodeExecutionTool20260120: &sdk.CodeExecutionTool20260120Param{}}}}
	}
	streamed := func(ctx context.Context, p sdk.MessageNewParams) (m sdk.Message) {
		stream := client.Messages.NewStreaming(ctx, p)
		for stream.Next() {
			if err := m.Accumulate(stream.Current()); err != nil {
				t.Fatal(err)
			}
		}
		if stream.Err() != nil {
			t.Fatal(stream.Err())
		}
		return m
	}
	m := streamed(t.Context(), params("plot"))
	if len(m.Content) != 3 || m.Content[0].Type != "server_tool_use" || !strings.Contains(string(m.Content[0].Input), "plot.txt") || m.StopReason != "end_turn" {
		t.Fatalf("%s", m.RawJSON())
	}
	result := m.Content[1].AsCodeExecutionToolResult().Content
	if len(result.Content) != 2 || result.ReturnCode != 0 {
		t.Fatalf("%s", m.Content[1].RawJSON())
	}
	content, err := client.Files.Download(t.Context(), result.Content[1].FileID, sdk.FileDownloadParams{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Body.Close() }()
	if text, err := io.ReadAll(content.Body); err != nil || string(text) != "plotted" {
		t.Errorf("%v %q", err, text)
	}
	shell := params("Create a config.yaml file with database settings, then update the port from 5432 to 3306")
	shell.Tools = []sdk.ToolUnionParam{{OfCodeExecutionTool20250825: &sdk.CodeExecutionTool20250825Param{}}}
	m = streamed(t.Context(), shell)
	if len(m.Content) != 9 || m.Content[0].Name != "text_editor_code_execution" || !strings.Contains(string(m.Content[0].Input), "5432") || m.Container.ID == "" {
		t.Fatalf("%s", m.RawJSON())
	}
	if view := m.Content[3].AsTextEditorCodeExecutionToolResult().Content.AsResponseTextEditorCodeExecutionViewResultBlock(); view.TotalLines != 3 || view.FileType != "text" {
		t.Errorf("%s", m.Content[3].RawJSON())
	}
	if change := m.Content[5].AsTextEditorCodeExecutionToolResult().Content.AsResponseTextEditorCodeExecutionStrReplaceResultBlock(); len(change.Lines) != 2 || change.OldStart != 3 {
		t.Errorf("%s", m.Content[5].RawJSON())
	}
	if ran := m.Content[7].AsBashCodeExecutionToolResult().Content.AsResponseBashCodeExecutionResultBlock(); !strings.Contains(ran.Stdout, "port: 3306") || len(ran.Content) != 1 {
		t.Errorf("%s", m.Content[7].RawJSON())
	}
	_, err = client.Messages.New(t.Context(), params("limited"))
	if e, ok := errors.AsType[*sdk.Error](err); !ok || e.StatusCode != 429 || e.RequestID == "" {
		t.Errorf("%v", err)
	}
}
