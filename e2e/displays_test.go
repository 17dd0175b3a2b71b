package e2e_test

import (
	"io"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// redrawn shows 25 pictures, each in the place of the one before, and 25 versions of a text.
const redrawn = `from IPython.display import Image, Markdown, clear_output, display
for step in range(25):
    clear_output(wait=True)
    display(Image(data=b'\x89PNG\r\n\x1a\n%d' % step, format='png'))
version = display(Markdown('version 0'), display_id=True)
for n in range(25):
    version.update(Markdown(f'version {n}'))`

// TestLastDisplays has code show pictures and a text again and again: clients of MCP and of Anthropic's interface get them as they are in the end, and no other, though there is room for fewer.
func TestLastDisplays(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(func(_ int, r modeltest.Request) modeltest.Turn {
		for _, m := range r.Messages() {
			if m["role"] == "tool" {
				return modeltest.Say("It is drawn.")
			}
		}
		return modeltest.Run(redrawn)
	})
	s := startServer(t, "", testKey(t), "OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted")
	const last = "\x89PNG\r\n\x1a\n24"
	t.Run("mcp", func(t *testing.T) {
		client, err := s.mcpSession(t.Context(), s.key, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		r, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "python", Arguments: map[string]any{"code": redrawn}})
		if err != nil || r.IsError {
			t.Fatalf("%v %+v", err, r)
		}
		text := ""
		var pictures []string
		for _, c := range r.Content {
			switch c := c.(type) {
			case *mcp.TextContent:
				text += c.Text
			case *mcp.ImageContent:
				pictures = append(pictures, string(c.Data))
			}
		}
		if len(pictures) != 1 || pictures[0] != last || strings.Count(text, "version ") != 1 || !strings.Contains(text, "version 24\n") || strings.Contains(text, "not shown") {
			t.Errorf("pictures %q, text %q", pictures, text)
		}
	})
	t.Run("anthropic", func(t *testing.T) {
		client := sdk.NewClient(option.WithBaseURL(s.base+"/anthropic"), option.WithAPIKey(s.key), option.WithMaxRetries(0))
		m, err := client.Messages.New(t.Context(), sdk.MessageNewParams{Model: "scripted", MaxTokens: 1024, Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("draw"))},
			Tools: []sdk.ToolUnionParam{{OfCodeExecutionTool20260120: &sdk.CodeExecutionTool20260120Param{}}}})
		if err != nil || len(m.Content) != 3 {
			t.Fatalf("%v %+v", err, m)
		}
		result := m.Content[1].AsCodeExecutionToolResult().Content
		if len(result.Content) != 1 || result.Stdout != "version 24\n" || result.ReturnCode != 0 {
			t.Fatalf("%s", m.Content[1].RawJSON())
		}
		content, err := client.Files.Download(t.Context(), result.Content[0].FileID, sdk.FileDownloadParams{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = content.Body.Close() }()
		if picture, err := io.ReadAll(content.Body); err != nil || string(picture) != last {
			t.Errorf("%v %q", err, picture)
		}
	})
}
