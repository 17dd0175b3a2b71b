package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// TestClientsSandboxAI has SandboxAI's published client use a server, as its own tests do: cells and commands, split and not, and what a sandbox keeps.
func TestClientsSandboxAI(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	s := startServer(t, "", testKey(t))
	cmd := pythonSDK(t, filepath.Join("testdata", "sdk", "sandboxai"))
	cmd.Env = append(os.Environ(), "COVE_TEST_URL="+s.base, "COVE_TEST_KEY="+s.key)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ok sandboxai-client") {
		t.Errorf("%v\n%s\nthe server: %s", err, out, s.log)
	}
	s.noSessions()
}
