package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/llm/model/modeltest"
	"cove/internal/server/auth"
	"cove/internal/testkit/testneeds"
)

// TestClientOfEachSurface has one client library of each vendor, as it is published, go one way through its surface, all on one server. TestClients* go all ways with all libraries.
func TestClientOfEachSurface(t *testing.T) {
	t.Parallel()
	testneeds.Asked(t, testneeds.Sandboxes)
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	s := startServer(t, "", testKey(t), "COVE_PACKAGES=standard", "OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted")
	hex, err := auth.HexText(s.key)
	if err != nil {
		t.Fatal(err)
	}
	upstream.Decide(sdkModel)
	t.Run("openai", func(t *testing.T) { goSDK(t, s) })
	for _, c := range []struct {
		name    string
		command func(t *testing.T, source string) *exec.Cmd
		part    string // of what the program does; everything when empty
		said    string
		env     []string
	}{
		{"geminigo", goModule, "", "ok all", []string{"GOOGLE_GEMINI_BASE_URL=" + s.base + "/gemini", "GEMINI_API_KEY=" + s.key, "COVE_TEST_MODEL=scripted"}},
		{"e2b", pythonSDK, "code", "ok code", []string{"E2B_API_URL=" + s.base, "E2B_SANDBOX_URL=" + s.base, "E2B_API_KEY=" + hex}},
		{"daytona", pythonSDK, "code", "ok code", []string{"DAYTONA_API_URL=" + s.base + "/daytona", "DAYTONA_API_KEY=" + s.key}},
		{"jupyterclients", pythonSDK, "kernel", "ok jupyter_kernel_client", []string{"COVE_TEST_URL=" + s.base + "/jupyter", "COVE_TEST_KEY=" + s.key}},
		{"mcp", pythonSDK, "", "ok mcp (Python)", []string{"COVE_TEST_URL=" + s.base + "/mcp", "COVE_TEST_KEY=" + s.key}},
		{"librechat", nodeSDK, "", "ok programmatic", []string{"LIBRECHAT_CODE_BASEURL=" + s.base + "/librechat", "LIBRECHAT_CODE_API_KEY=" + s.key}},
		{"sandboxai", pythonSDK, "", "ok sandboxai-client", []string{"COVE_TEST_URL=" + s.base, "COVE_TEST_KEY=" + s.key}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := c.command(t, filepath.Join("testdata", "sdk", c.name))
			if c.part != "" {
				cmd.Args = append(cmd.Args, c.part)
			}
			cmd.Env = append(os.Environ(), append(c.env, "PYTHONDONTWRITEBYTECODE=")...) // their folder is kept, and need not compile the libraries again each time
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), c.said) {
				t.Errorf("%v\n%s\nthe server: %s", err, out, s.log)
			}
		})
	}
	upstream.Decide(shellModel)
	t.Run("anthropic", func(t *testing.T) { anthropicGo(t, s) })
}
