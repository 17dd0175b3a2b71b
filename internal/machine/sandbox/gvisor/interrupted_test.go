package gvisor_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

// TestInterruptedStart gives up starts at every moment, also before the warden has heard of them.
func TestInterruptedStart(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	state := t.TempDir()
	e := gvisor.New(gvisor.Options{State: state, Executable: sandboxtest.Binary(t)})
	sandboxtest.Start(t, e, sandbox.Spec{ID: "stays"}) // so that there is one warden for all
	for round := range 40 {
		ctx, cancel := context.WithCancel(t.Context())
		if round%2 == 0 {
			time.AfterFunc(time.Duration(round)*4*time.Millisecond, cancel)
		} else {
			time.AfterFunc(time.Duration(round)*50*time.Microsecond, cancel)
		}
		sb, err := e.Start(ctx, sandbox.Spec{ID: sandbox.NewID("test")})
		if err == nil {
			err = sb.Stop(context.Background())
		} else if ctx.Err() != nil {
			err = nil
		}
		cancel()
		if err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
	entries, err := os.ReadDir(state)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "stays" && !strings.HasPrefix(name, ".") {
			t.Errorf("left: %s", name)
		}
	}
	if left := sandboxtest.Processes(t, "runsc", filepath.Join(state, "test-")); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}
