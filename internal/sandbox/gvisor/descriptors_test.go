package gvisor_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"cove/internal/sandbox"
	"cove/internal/sandbox/sandboxtest"
)

// TestOutOfDescriptors starts sandboxes in a process of its own that may open too few files for it: that fails, ends and leaves nothing open.
func TestOutOfDescriptors(t *testing.T) {
	t.Parallel()
	if os.Getenv("COVE_TEST_FEW_FILES") != "" {
		fewFiles(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOutOfDescriptors$", "-test.v", "-test.timeout=3m")
	cmd.Env = append(os.Environ(), "COVE_TEST_FEW_FILES=1", "COVE_TEST_BINARY="+sandboxtest.Binary(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func fewFiles(t *testing.T) {
	e := newEngine(t)
	sb, err := e.Start(t.Context(), sandbox.Spec{ID: sandbox.NewID("test")}) // keeps the warden, whose own start is not what is looked at
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Stop(context.Background()) }()
	before := openFiles(t)
	const enough = 64 // how many it takes differs between machines, by their cgroups
	for room := range enough {
		limit(t, uint64(before+room))
		sb, err := e.Start(t.Context(), sandbox.Spec{ID: sandbox.NewID("test")})
		started := err == nil
		if started {
			err = sb.Stop(t.Context())
		}
		limit(t, 1024)
		if after := openFiles(t); after != before {
			t.Errorf("with room for %d files, %v: %d were open before and %d are after", room, err, before, after)
		}
		if started && (err != nil || room == 0) {
			t.Errorf("with room for %d files: %v", room, err)
		}
		if started {
			return
		}
		t.Log(room, err)
	}
	t.Errorf("no start succeeded with room for %d files", enough)
}

func limit(t *testing.T, files uint64) {
	t.Helper()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: 1024}); err != nil {
		t.Fatal(err)
	}
}

// openFiles counts the descriptors of this process, but for the one that it needs to look.
func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all) - 1
}
