package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/model/modeltest"
)

// TestGemini has Google's own client libraries, as they are published, talk to a server whose model follows a script.
func TestGemini(t *testing.T) {
	t.Parallel()
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(sdkModel)
	s := startServer(t, "", testKey(t), "OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted")
	for name, command := range map[string]func(*testing.T, string) *exec.Cmd{"gemini": pythonSDK, "geminijs": nodeSDK} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, filepath.Join("testdata", "sdk", name))
			cmd.Env = append(os.Environ(), "GOOGLE_GEMINI_BASE_URL="+s.base+"/gemini", "GEMINI_API_KEY="+s.key, "COVE_TEST_MODEL=scripted", "PYTHONDONTWRITEBYTECODE=")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "ok all") {
				t.Errorf("%v\n%s\nthe server: %s", err, out, s.log)
			}
		})
	}
}
