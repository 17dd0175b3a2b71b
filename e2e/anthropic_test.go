package e2e_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"cove/internal/model/modeltest"
	"cove/internal/testneeds"
)

// TestAnthropic has Anthropic's published clients talk to a server whose model, behind another provider's interface, follows a script.
func TestAnthropic(t *testing.T) {
	t.Parallel()
	testneeds.Asked(t, testneeds.Sandboxes)
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(sdkModel)
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
	_, err = client.Messages.New(t.Context(), params("limited"))
	if e, ok := errors.AsType[*sdk.Error](err); !ok || e.StatusCode != 429 || e.RequestID == "" {
		t.Errorf("%v", err)
	}
}
