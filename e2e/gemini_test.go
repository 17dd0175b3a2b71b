package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// goModule builds a program with a module of its own: what it needs is no part of cove.
func goModule(t *testing.T, source string) *exec.Cmd {
	t.Helper()
	testneeds.Asked(t, testneeds.Index)
	program, err := exec.LookPath("go")
	if err != nil {
		testneeds.Absent(t, testneeds.Index, err)
	}
	out := filepath.Join(t.TempDir(), "program")
	build := exec.CommandContext(t.Context(), program, "build", "-o", out, ".")
	build.Dir = source
	build.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	if text, err := build.CombinedOutput(); err != nil {
		testneeds.Absent(t, testneeds.Index, string(text))
	}
	return exec.CommandContext(t.Context(), out)
}

// TestClientsGemini has Google's own client libraries, as they are published, talk to a server whose model follows a script.
func TestClientsGemini(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(sdkModel)
	s := startServer(t, "", testKey(t), "OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted")
	for name, command := range map[string]func(*testing.T, string) *exec.Cmd{"gemini": pythonSDK, "geminijs": nodeSDK, "geminigo": goModule} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, filepath.Join("testdata", "sdk", name))
			cmd.Env = append(cmd.Environ(), "GOOGLE_GEMINI_BASE_URL="+s.base+"/gemini", "GEMINI_API_KEY="+s.key, "COVE_TEST_MODEL=scripted", "PYTHONDONTWRITEBYTECODE=")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "ok all") {
				t.Errorf("%v\n%s\nthe server: %s", err, out, s.log)
			}
		})
	}
}
