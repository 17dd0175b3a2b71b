package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// TestClientsOpenWebUI has Open WebUI's own client run code in kernels of a server.
func TestClientsOpenWebUI(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t))
	cmd := pythonSDK(t, filepath.Join("testdata", "sdk", "openwebui"))
	cmd.Env = append(os.Environ(), "COVE_TEST_URL="+s.base+"/jupyter", "COVE_TEST_KEY="+s.key, "PYTHONDONTWRITEBYTECODE=", "DATA_DIR="+t.TempDir(), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ok open-webui") {
		t.Errorf("%v\n%s\nthe server: %s", err, out, s.log)
	}
	var left []notebookKernel
	s.must(http.MethodGet, "/jupyter/api/kernels", nil, &left)
	if len(left) > 0 {
		t.Errorf("kernels are left: %+v", left)
	}
}
