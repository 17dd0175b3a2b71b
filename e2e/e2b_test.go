package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/python/deps/indextest"
	"cove/internal/server/auth"
	"cove/internal/testkit/testneeds"
)

// TestClientsE2B has E2B's own client libraries, as they are published, use a server by the variables that they know.
func TestClientsE2B(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t), "COVE_PACKAGES=standard")
	hex, err := auth.HexText(s.key)
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs(filepath.Join("..", "examples", "e2b"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, key string
		command   func(t *testing.T, source string) *exec.Cmd
		parts     []string
	}{
		{"e2b", hex, pythonSDK, []string{"code", "languages", "hosts", "commands", "files", "ports", "builds", "lives", "many"}},
		{"e2bold", s.key, pythonSDK, []string{"code"}},
		{"e2bjs", s.key, nodeSDK, []string{"code", "commands", "files", "lives"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := c.command(t, filepath.Join("testdata", "sdk", c.name))
			cmd.Env = append(os.Environ(), "E2B_API_URL="+s.base, "E2B_SANDBOX_URL="+s.base, "E2B_API_KEY="+c.key, "BY_ADDRESS="+examples, "PYTHONDONTWRITEBYTECODE=")
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

// TestClientsE2BBuilds has E2B's own library build templates on a server with a root and a network, from an index of the test's own, and use what was built.
func TestClientsE2BBuilds(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	wheel := indextest.Wheel{Name: "left-pad", Files: map[string]string{"left_pad/__init__.py": "def pad(text): return '  ' + text\n"}}
	in := newInner(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/simple/left-pad/":
			_, _ = fmt.Fprintf(w, "<a href=\"/files/%[1]s\">%[1]s</a>", wheel.Filename())
		case "/files/" + wheel.Filename():
			_, _ = w.Write(wheel.Bytes())
		default:
			http.NotFound(w, r)
		}
	}))
	s := startServer(t, "", testKey(t), "COVE_ROOT=true", "COVE_PACKAGES=minimal", "COVE_NETWORK_ALLOW="+strings.Join(in.rules, ","))
	cmd := pythonSDK(t, filepath.Join("testdata", "sdk", "e2b"))
	cmd.Args[1] = filepath.Join(filepath.Dir(cmd.Args[1]), "builds.py")
	cmd.Env = append(os.Environ(), "E2B_API_URL="+s.base, "E2B_SANDBOX_URL="+s.base, "E2B_API_KEY="+s.key, "PYTHONDONTWRITEBYTECODE=", "INDEX_HOST="+in.host)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ok builds\n") {
		t.Fatalf("%v\n%s\nthe server: %s", err, out, s.log)
	}
}
