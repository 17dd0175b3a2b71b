package docker_test

import (
	"cmp"
	"os"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/docker"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

// newEngine returns an engine whose containers share the host's kernel, or have the runtime that COVE_DOCKER_RUNTIME names.
func newEngine(t *testing.T) *docker.Engine {
	return docker.New(docker.Options{State: t.TempDir(), Host: sandboxtest.Docker(t), Runtime: cmp.Or(os.Getenv("COVE_DOCKER_RUNTIME"), "runc")})
}

func TestContract(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	sandboxtest.DockerForParts(t)
	sandboxtest.Run(t, func(t *testing.T) sandbox.Engine { return newEngine(t) })
}

// TestContractWithGVisor is the contract with the program cove as the daemon's runtime, for when there is time.
func TestContractWithGVisor(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	if os.Getenv("COVE_SOAK") != "full" {
		testneeds.RunsElsewhere(t, "COVE_SOAK=full", "TestGVisor starts one such container")
	}
	host := sandboxtest.DockerForParts(t)
	sandboxtest.Run(t, func(t *testing.T) sandbox.Engine { return docker.New(docker.Options{State: t.TempDir(), Host: host}) })
}

// TestGVisor has the program cove as the daemon's runtime, which is taken where it is there.
func TestGVisor(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	e := docker.New(docker.Options{State: t.TempDir(), Host: sandboxtest.Docker(t)})
	sb, l := sandboxtest.Start(t, e, sandbox.Spec{Limits: sandbox.Limits{Processes: 64}})
	for script, want := range map[string]string{
		"uname -r": "gvisor",
		"bash -c 'for i in $(seq 200); do sleep 20 & done; wait' 2>&1 | grep -m1 -o 'Resource temporarily unavailable'; pkill sleep": "Resource temporarily unavailable",
		"id -un; pwd; touch a /tmp/a && stat -c %a /tmp": "user\n/home/user\n1777\n",
		"ls -l /proc/self/root/opt/cove/host/guest":      "No such file",
		"grep ^CapBnd /proc/self/status":                 "0000000000000000",
	} {
		if _, out := sandboxtest.Shell(t, l, script); !strings.Contains(out, want) {
			t.Errorf("%s\ngave %q, not %q", script, out, want)
		}
	}
	isolation, _, err := e.Describe(t.Context())
	if err != nil || !strings.HasPrefix(isolation, "docker+runsc isolates") {
		t.Errorf("it is described as %q, %v", isolation, err)
	}
	if err := sb.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	e := newEngine(t)
	if err := e.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	isolation, warnings, err := e.Describe(t.Context())
	if err != nil || !strings.HasPrefix(isolation, "docker+") || len(warnings) == 0 {
		t.Errorf("it is described as %q, %q, %v", isolation, warnings, err)
	}
	if _, _, err := docker.New(docker.Options{State: t.TempDir(), Host: sandboxtest.Docker(t), Runtime: "none-such"}).Describe(t.Context()); !problem.Has(err, problem.DockerUnfit) {
		t.Errorf("a runtime that is not there: %v", err)
	}
}
