package e2e_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/auth"
)

// TestE2B has E2B's own client libraries, as they are published, use a server by the variables that they know.
func TestE2B(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", testKey(t), "COVE_PACKAGES=standard")
	hex, err := auth.HexText(s.key)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, key string
		command   func(t *testing.T, source string) *exec.Cmd
		parts     []string
	}{
		{"e2b", hex, pythonSDK, []string{"code", "languages", "commands", "files", "lives", "many"}},
		{"e2bjs", s.key, nodeSDK, []string{"code", "commands", "files", "lives"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := c.command(t, filepath.Join("testdata", "sdk", c.name))
			cmd.Env = append(os.Environ(), "E2B_API_URL="+s.base, "E2B_SANDBOX_URL="+s.base, "E2B_API_KEY="+c.key, "PYTHONDONTWRITEBYTECODE=")
			out, err := cmd.CombinedOutput()
			for _, part := range c.parts {
				if err != nil || !strings.Contains(string(out), "ok "+part+"\n") {
					t.Fatalf("%v\n%s\nthe server: %s", err, out, s.log)
				}
			}
		})
	}
	if list := s.must(http.MethodGet, "/api/v1/sessions", nil, nil); strings.Contains(string(list.body), `"active"`) {
		t.Errorf("sandboxes are left: %s", list.body)
	}
}
