package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/server/auth"
	"cove/internal/testkit/testneeds"
)

// TestVolumes has E2B's own library make volumes and share them among sandboxes; TestClientsDaytona does so with Daytona's.
func TestVolumes(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Root)
	s := startServer(t, "", testKey(t), "COVE_PACKAGES=minimal", "COVE_MAX_VOLUME=64MiB")
	hex, err := auth.HexText(s.key)
	if err != nil {
		t.Fatal(err)
	}
	cmd := pythonSDK(t, filepath.Join("testdata", "sdk", "e2b"))
	cmd.Args[1] = filepath.Join(filepath.Dir(cmd.Args[1]), "volumes.py")
	cmd.Env = append(os.Environ(), "E2B_API_URL="+s.base, "E2B_SANDBOX_URL="+s.base, "E2B_VOLUME_API_URL="+s.base, "E2B_API_KEY="+hex, "PYTHONDONTWRITEBYTECODE=", "VOLUME_MIB=64")
	out, err := cmd.CombinedOutput()
	for _, part := range []string{"content", "sandboxes", "bounds"} {
		if err != nil || !strings.Contains(string(out), "ok "+part+"\n") {
			t.Fatalf("%v\n%s\nthe server: %s", err, out, s.log)
		}
	}
}
