package gobuild

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNotices collects the licences of what this program is linked from.
func TestNotices(t *testing.T) {
	t.Chdir("../../..")
	to := filepath.Join(t.TempDir(), Notices)
	if err := WriteNotices(t.Context(), "arm64", to); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"\nThe Go standard library\n", "\ngvisor.dev/gvisor v", "Apache License", "\nmodernc.org/sqlite v", "\nThe web page\n", "## react - ", "## vega - ", "Plotly", "MIT"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%q is not in the notices", part)
		}
	}
	if strings.Contains(string(text), "\ngolang.org/x/tools v") {
		t.Error("they name a module that is not in the program")
	}
}

// TestModulesWithoutALicence are an error, which names them.
func TestModulesWithoutALicence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"license.go": "package license", "README": "free"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := goModule{Path: "example.org/m", Version: "v1.0.0", Dir: dir}
	if err := m.writeLicences(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "example.org/m") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENCE.md"), []byte("terms"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := m.writeLicences(&out); err != nil || !strings.Contains(out.String(), "example.org/m v1.0.0") || !strings.Contains(out.String(), "\nterms\n") {
		t.Errorf("%q %v", out.String(), err)
	}
}
