package session_test

import (
	"cmp"
	"context"
	"os"
	"slices"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/docker"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/local"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/pyenv"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

func standard(t *testing.T) *pyenv.Environment {
	t.Helper()
	return testneeds.Environment(t, pyenv.Standard)
}

func newGVisor(t *testing.T) sandbox.Engine {
	return gvisor.New(gvisor.Options{State: t.TempDir(), Executable: sandboxtest.Binary(t)})
}

func newLocal(t *testing.T) sandbox.Engine {
	testneeds.FullTier(t)
	return local.New(local.Options{State: t.TempDir()})
}

func newDocker(t *testing.T) sandbox.Engine {
	testneeds.FullTier(t)
	return docker.New(docker.Options{State: t.TempDir(), Host: sandboxtest.Docker(t), Runtime: cmp.Or(os.Getenv("COVE_DOCKER_RUNTIME"), "runc")})
}

// longOnDocker are tests of what the driver and the guest do, which take their time wherever that is. COVE_SOAK=full runs them in containers as well.
var longOnDocker = []string{"TestInterrupt", "TestChartText", "TestPlotStyle", "TestPlotStyleOff", "TestDisplays", "TestOutputLimit", "TestMuchOutput"}

// onEachEngine runs a test in parallel on every engine: what code does must not depend on where it runs. In the landing tier it runs on gVisor alone.
func onEachEngine(t *testing.T, test func(t *testing.T, e sandbox.Engine)) {
	t.Parallel()
	for name, engine := range map[string]func(*testing.T) sandbox.Engine{"gvisor": newGVisor, "local": newLocal, "docker": newDocker} {
		if name == "docker" && slices.Contains(longOnDocker, t.Name()) && os.Getenv("COVE_SOAK") != "full" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, engine(t))
		})
	}
}

// open starts a session that ends with the test.
func open(t *testing.T, e sandbox.Engine, l sandbox.Limits) *session.Live {
	t.Helper()
	s, err := session.Open(t.Context(), session.Options{Engine: e, Env: standard(t), Limits: l})
	if err != nil {
		t.Fatalf("open: %+v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}
