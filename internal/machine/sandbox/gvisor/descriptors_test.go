package gvisor_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
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

// TestStrays starts a process with files that it is meant to have, and with others.
func TestStrays(t *testing.T) {
	t.Parallel()
	if os.Getenv("COVE_TEST_STRAYS") != "" {
		gvisor.CloseStrays(os.Args)
		for fd := range 10 {
			if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && strings.HasPrefix(filepath.Base(name), "stray-") {
				fmt.Printf("%d=%s\n", fd, filepath.Base(name))
			}
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStrays$", "--", "--one-fd=4", "--some-fds=6,7", "--fd-of-none=8", "--pass-fd=9:3")
	cmd.Env = append(os.Environ(), "COVE_TEST_STRAYS=1")
	for i := range 7 {
		f, err := os.Create(filepath.Join(t.TempDir(), fmt.Sprintf("stray-%d", 3+i)))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	out, err := cmd.CombinedOutput()
	var left []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "=stray-") {
			left = append(left, strings.TrimSpace(line))
		}
	}
	if want := []string{"3=stray-3", "4=stray-4", "6=stray-6", "7=stray-7", "9=stray-9"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("%q are left, want %q: %v\n%s", left, want, err, out)
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
