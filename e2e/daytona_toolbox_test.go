package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// TestClientsDaytonaToolbox has Daytona's own client libraries use what a sandbox has: code, shells, terminals, files, Git and language servers.
func TestClientsDaytonaToolbox(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t), "COVE_PACKAGES=standard")
	for _, c := range []struct {
		name, script string
		command      func(t *testing.T, source string) *exec.Cmd
		parts        []string
	}{
		{"daytona", "toolbox.py", pythonSDK, []string{"code", "charts", "execute", "sessions", "interpreter", "terminals", "files", "git", "lsp", "system"}},
		{"daytonajs", "toolbox.mjs", nodeSDK, []string{"code", "sessions", "interpreter", "terminals", "files", "git"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := c.command(t, filepath.Join("testdata", "sdk", c.name))
			cmd.Args[1] = filepath.Join(filepath.Dir(cmd.Args[1]), c.script)
			cmd.Env = append(os.Environ(), "DAYTONA_API_URL="+s.base+"/daytona", "DAYTONA_API_KEY="+s.key, "PYTHONDONTWRITEBYTECODE=")
			out, err := cmd.CombinedOutput()
			for _, part := range c.parts {
				if err != nil || !strings.Contains(string(out), "ok "+part+"\n") {
					t.Fatalf("%v\n%.20000s\nthe server: %s", err, out, s.log)
				}
			}
		})
	}
}
