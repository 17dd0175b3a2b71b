package gvisor_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/machine/wire"
	"cove/internal/testkit/testneeds"
)

// TestKilledForMemory has the host's kernel kill a sandbox whose cgroup is full. The group's limit is lowered from outside, because
// the guest would end the code long before the sandbox as a whole meets its own.
func TestKilledForMemory(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	e := newEngine(t)
	sb, l := sandboxtest.Start(t, e, sandbox.Spec{})
	files, _ := filepath.Glob("/sys/fs/cgroup/memory/cove/" + sb.ID() + "/memory.limit_in_bytes")
	v2, _ := filepath.Glob(gvisor.UnifiedGroup(sb.ID()) + "/memory.max")
	if files = append(files, v2...); len(files) == 0 {
		by, err := e.LimitsEnforcedBy(t.Context())
		if err != nil || by != "watchdog" {
			t.Fatalf("no cgroup found, but limits are enforced by %q, %v", by, err)
		}
		testneeds.RunsElsewhere(t, "a user who may make cgroups", "TestWatchedMemory covers what stands in for them")
	}
	if err := os.WriteFile(files[0], []byte("200000000"), 0); err != nil {
		t.Fatal(err)
	}
	eatMemory(t, sb, l.Run, eating)
}

// TestWatchedMemory exceeds the limit where no cgroup holds it, as for an ordinary user.
func TestWatchedMemory(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	if by, err := e.LimitsEnforcedBy(t.Context()); err != nil || by != "watchdog" {
		if err != nil {
			t.Fatal(err)
		}
		testneeds.RunsElsewhere(t, "a user who may not make cgroups", "limits are enforced by "+by+" here, which TestKilledForMemory covers")
	}
	for name, script := range map[string]string{
		"through the sentry": eating,
		// What a process writes to its own memory goes past the sentry.
		"by itself": `awk 'BEGIN { x = "x"; while (length(x) < 800000000) x = x x; while (1) y++ }'`,
	} {
		t.Run(name, func(t *testing.T) {
			sb, l := sandboxtest.Start(t, e, sandbox.Spec{Limits: sandbox.Limits{Memory: 128 << 20}})
			eatMemory(t, sb, l.Run, script)
		})
	}
}

// eating tries again: on a busy machine both processes have ended alone, at 230 to 300 MB, before the sandbox did.
const eating = "while :; do for i in 1 2; do head -c 1300M /dev/zero | tail -c 1200M >/dev/null & done; wait; done"

type runner func(ctx context.Context, spec wire.ProcessSpec, stdout, stderr io.Writer) (int, error)

func eatMemory(t *testing.T, sb sandbox.Sandbox, run runner, script string) {
	t.Helper()
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	code, err := run(ctx, wire.ProcessSpec{Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}}, &out, &out)
	if err == nil {
		t.Fatalf("it ended by itself with %d: %s", code, out.String())
	}
	select {
	case <-sb.Done():
	case <-time.After(testneeds.Patience):
		t.Fatal("the sandbox lives on")
	}
	if p := problem.Of(sb.Cause()); p == nil || p.Code != "session_oom" || p.Hint == "" {
		t.Errorf("the cause is %v", sb.Cause())
	}
}
