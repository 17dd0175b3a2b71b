package gvisor_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/machine/wire"
	"cove/internal/testkit/testneeds"
)

// TestMemoryIsHeld has code use up all that the sandbox's group may have, while nobody inside takes notice for a while: it waits, and is not killed. When
// memory comes back everything goes on, with the limit that it had.
func TestMemoryIsHeld(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	const limit = 300 << 20
	// More than the limit, held for a time, as when the guest comes late. At the limit, version 1 lets page faults wait but refuses what the sentry asks of the kernel itself, as for a new
	// thread: one that asks in that very moment ends. The next sandbox does not.
	script := "echo kept > file; (head -c 400M /dev/zero; sleep 3) | tail -c 400M > /dev/null; cat file"
	var sb sandbox.Sandbox
	var files []string
	for tries := 3; ; tries-- {
		var l *guestlink.Link
		sb, l = sandboxtest.Start(t, newEngine(t), sandbox.Spec{})
		files, _ = filepath.Glob("/sys/fs/cgroup/memory/cove/" + sb.ID() + "/memory.limit_in_bytes")
		if len(files) == 0 {
			testneeds.RunsElsewhere(t, "a machine with cgroups of version 1", "nothing holds the memory here")
		}
		if err := os.WriteFile(files[0], []byte(fmt.Sprint(limit)), 0); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		code, err := l.Run(t.Context(), wire.ProcessSpec{Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}}, &out, &out)
		if err == nil {
			if code != 0 || !strings.HasSuffix(out.String(), "kept\n") {
				t.Errorf("%d %q", code, out.String())
			}
			break
		}
		<-sb.Done()
		if tries == 1 {
			t.Fatalf("three sandboxes were lost, the last: %v: %v", sb.Cause(), problem.Of(sb.Cause()).Cause)
		}
		t.Logf("the sandbox was lost: %v", sb.Cause())
	}
	select {
	case <-sb.Done():
		t.Fatalf("the sandbox was lost: %v", sb.Cause())
	default:
	}
	most, err := os.ReadFile(filepath.Join(filepath.Dir(files[0]), "memory.failcnt"))
	if err != nil || strings.TrimSpace(string(most)) == "0" {
		t.Errorf("it never was at its limit, which shows nothing: %s %v", most, err)
	}
	for deadline := time.Now().Add(testneeds.Patience); ; time.Sleep(20 * time.Millisecond) {
		now, err := os.ReadFile(files[0])
		if err == nil && strings.TrimSpace(string(now)) == fmt.Sprint(limit) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the limit is still %s, %v", now, err)
		}
	}
}

// slow starts a sandbox that version 2 slows down from high on, and returns the folder of its group.
func slow(t *testing.T, high int64) (sandbox.Sandbox, *guestlink.Link, string) {
	t.Helper()
	sb, l := sandboxtest.Start(t, newEngine(t), sandbox.Spec{})
	dir := gvisor.UnifiedGroup(sb.ID())
	if _, err := os.Stat(filepath.Join(dir, "memory.high")); err != nil {
		testneeds.RunsElsewhere(t, "make cgroup2", "there is no cgroup of version 2 to slow it down")
	}
	if err := os.WriteFile(filepath.Join(dir, "memory.high"), []byte(fmt.Sprint(high)), 0); err != nil {
		t.Fatal(err)
	}
	return sb, l, dir
}

// grabbing takes its memory without the sentry, which is the quickest way, and more than the reserve.
const grabbing = `awk 'BEGIN { x = "x"; while (length(x) < 800000000) x = x x; while (1) y++ }'`

// TestMemoryIsSlowed has code take more than the sandbox's group may have at full speed. The sandbox says so, and the guest can still end the code; then
// everything goes on, with the limit that it had.
func TestMemoryIsSlowed(t *testing.T) {
	t.Parallel()
	const high = 200 << 20
	sb, l, dir := slow(t, high)
	if code, out := sandboxtest.Shell(t, l, "echo kept > file"); code != 0 {
		t.Fatal(out)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ended := make(chan error, 1)
	go func() {
		spec := wire.ProcessSpec{Args: []string{"/bin/sh", "-c", grabbing}, Env: []string{"PATH=/usr/bin:/bin"}}
		_, err := l.Run(ctx, spec, io.Discard, io.Discard)
		ended <- err
	}()
	starves := sb.(sandbox.MemoryReporter).WaitsForMemory
	waitFor(t, "it starves", starves)
	end()
	if err := <-ended; err == nil {
		t.Error("the code got its memory")
	}
	waitFor(t, "the memory comes back", func() bool { return !starves() })
	if code, out := sandboxtest.Shell(t, l, "cat file"); code != 0 || out != "kept\n" {
		t.Errorf("afterwards: %d %q", code, out)
	}
	events, err := os.ReadFile(filepath.Join(dir, "memory.events"))
	if err != nil || !strings.Contains(string(events), "oom_kill 0\n") {
		t.Errorf("something was killed: %s %v", events, err)
	}
	now, err := os.ReadFile(filepath.Join(dir, "memory.high"))
	if err != nil || strings.TrimSpace(string(now)) != fmt.Sprint(high) {
		t.Errorf("it is slowed down from %s on, %v", now, err)
	}
}

// TestSlowedForGood has nobody end the code: then the sandbox ends, rather than stand.
func TestSlowedForGood(t *testing.T) {
	t.Parallel()
	sb, l, _ := slow(t, 200<<20)
	eatMemory(t, sb, l.Run, grabbing)
}

func waitFor(t *testing.T, what string, fact func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testneeds.Patience); !fact(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("in vain waited until " + what)
		}
	}
}
