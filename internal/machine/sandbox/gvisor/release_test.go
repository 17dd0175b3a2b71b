//go:build release

package gvisor_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// TestNoNewerGVisorCanBeHad fails when the module proxy has a newer gVisor than go.mod names: cove is to be made with the newest, and its filters and patches with that (docs/release.md). `make gvisor-check` runs it, and a release does: a change of another kind is not refused because gVisor was released that day.
func TestNoNewerGVisorCanBeHad(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Index)
	mod, err := os.ReadFile("../../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	pinned := regexp.MustCompile(`gvisor\.dev/gvisor (v\S+)`).FindSubmatch(mod)
	if pinned == nil {
		t.Fatal("go.mod does not name gVisor")
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "gvisor.dev/gvisor@latest")
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
	out, err := cmd.CombinedOutput()
	if err != nil {
		testneeds.Absent(t, testneeds.Index, err)
	}
	if newest := strings.TrimSpace(string(out)); newest > string(pinned[1]) { // both are v0.0.0-DATE-COMMIT
		t.Errorf("there is a newer gVisor, %s: go get gvisor.dev/gvisor@latest, and what docs/release.md says of that", newest)
	}
}
