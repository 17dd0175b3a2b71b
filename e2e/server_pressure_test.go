package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// limited makes a memory cgroup with a limit and returns its folder, or says why that cannot be.
func limited(t *testing.T, limit int64) (dir string, err error) {
	t.Helper()
	root, file := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(root); err != nil {
		root, file = "/sys/fs/cgroup", "memory.max"
	}
	dir = filepath.Join(root, "cove-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	t.Cleanup(func() {
		for deadline := time.Now().Add(patience); os.Remove(dir) != nil && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond) // its last process may be about to end
		}
	})
	return dir, os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(limit, 10)), 0)
}

// TestScaleSessionsFitIntoMemory has more sessions hold data than the server's memory has room for. Those that nobody uses make room; none loses its data.
func TestScaleSessionsFitIntoMemory(t *testing.T) {
	testneeds.FullTier(t)
	sessions := cycles(t, 6, 14)
	const each = 150 << 20
	dir, err := limited(t, int64(sessions)*each+(100<<20))
	if err != nil {
		testneeds.RunsElsewhere(t, "a user who may make cgroups", err.Error())
	}
	s := startServerIn(t, dir, testKey(t), crowd...)
	ids := make([]string, sessions)
	for i := range ids {
		var made struct{ ID string }
		r, err := s.expect(t.Context(), "POST", "/api/v1/sessions", map[string]any{})
		if err != nil {
			t.Fatal(err, s.log)
		}
		r.into(t, &made)
		ids[i] = made.ID
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(sessions)*30*time.Second)
	defer cancel()
	cell := func(code, prints string) {
		var all sync.WaitGroup
		for _, id := range ids {
			all.Go(func() {
				if err := s.cell(ctx, newAcknowledged(), id, code, prints); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	cell(fmt.Sprintf("x = b'x' * %d\nprint(len(x))", each), fmt.Sprintln(each))
	cell("print(x[-1], len(x))", fmt.Sprintf("120 %d\n", each))
	if t.Failed() {
		t.Log(s.log)
	}
	if kills, err := os.ReadFile(filepath.Join(dir, "memory.oom_control")); err == nil && !strings.Contains(string(kills), "oom_kill 0") {
		t.Logf("the system has killed: %s", kills)
	}
	s.stop().ended(t, 0)
}
