package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// moments is what the killing of commands on sessions works with.
type moments struct {
	dir    string
	counts map[string]int // session to what it counts to; -1: it may exist or not, and count or not
	told   int            // how often a loss was reported
}

// names lists the sessions that cove knows.
func (m *moments) names(t *testing.T) []string {
	t.Helper()
	out, err := inSession(t, m.dir, "session", "ls", "--json").Output()
	if err != nil {
		t.Fatalf("session ls: %v", err)
	}
	var listed []struct{ Name string }
	if err := json.Unmarshal(out, &listed); err != nil {
		t.Fatalf("session ls: %v: %s", err, out)
	}
	names := make([]string, 0, len(listed))
	for _, one := range listed {
		names = append(names, one.Name)
	}
	return names
}

// visit uses a session as its owner would after the kill. It must count to what it counted to, or one more if more is allowed, or say why
// it cannot.
func (m *moments) visit(t *testing.T, name string, more int, after string) {
	t.Helper()
	cmd := inSession(t, m.dir, "run", "--session", name, "-c", "print(globals().get('n', 'nothing'))")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	said := errs.String()
	if strings.Contains(said, "as it was at") || strings.Contains(said, "starts anew") {
		m.told++
	}
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 125 || !strings.Contains(said, name) {
			t.Errorf("after %s: session %s: %v: %s", after, name, err, said)
		}
		t.Errorf("after %s: session %s cannot be used: %s", after, name, said)
		return
	}
	got, want := strings.TrimSpace(string(out)), m.counts[name]
	for extra := 0; extra <= more; extra++ {
		if got == fmt.Sprint(want+extra) {
			m.counts[name] = want + extra
			return
		}
	}
	if got == "nothing" && (want < 0 || strings.Contains(said, "starts anew")) || want < 0 && got != "" {
		return
	}
	t.Errorf("after %s: session %s counts to %s, want %d or up to %d more; it said %q", after, name, got, want, more, said)
}

// TestKilledAtMoments kills commands in the midst of creating, using, pausing, resuming, forking and undoing sessions.
func TestKilledAtMoments(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	m := &moments{dir: t.TempDir(), counts: map[string]int{"lab": 1}}
	if out, err := inSession(t, m.dir, "run", "-q", "--session", "lab", "--undoable", "-c", "n = 1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	deeds := []struct {
		args []string
		more int    // what it may add to lab's count
		made string // the session that it makes
	}{
		{args: []string{"run", "-q", "--session", "lab", "-c", "n += 1"}, more: 1},
		{args: []string{"run", "-q", "--session", "lab", "--undoable", "-c", "n += 1"}, more: 1},
		{args: []string{"run", "-q", "--session", "new", "-c", "n = 1"}, made: "new"},
		{args: []string{"session", "fork", "lab", "copy"}, made: "copy"},
		{args: []string{"session", "resume", "lab"}},
		{args: []string{"session", "pause", "lab"}},
		{args: []string{"session", "rm", "copy", "new"}},
	}
	rounds := cycles(t, len(deeds), 50) // each at least once
	for round := range rounds {
		deed := deeds[round%len(deeds)]
		cmd := inSession(t, m.dir, deed.args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(1200 * time.Millisecond))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		after := fmt.Sprintf("%q killed in round %d", deed.args, round)
		if deed.made != "" {
			m.counts[deed.made] = -1
		}
		for _, name := range m.names(t) {
			if _, known := m.counts[name]; !known {
				t.Errorf("after %s: there is a session %s", after, name)
			}
			m.visit(t, name, map[bool]int{true: deed.more}[name == "lab"], after)
		}
	}
	t.Logf("%d kills, %d losses told, lab counts to %d", rounds, m.told, m.counts["lab"])
	m.clean(t)
}

func (m *moments) removeAll(t *testing.T) {
	t.Helper()
	if out, err := inSession(t, m.dir, "session", "rm", "--all").CombinedOutput(); err != nil {
		t.Errorf("rm: %v: %s", err, out)
	}
}

// clean removes all sessions and looks for what is left.
func (m *moments) clean(t *testing.T) {
	t.Helper()
	m.removeAll(t)
	for deadline := time.Now().Add(patience); len(processes(t, m.dir)) > 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	if left := processes(t, m.dir); len(left) > 0 {
		t.Errorf("processes left: %q", left)
	}
	outliveGrace(t, filepath.Join(m.dir, "sessions"), func() *exec.Cmd { return inSession(t, m.dir, "run", "-q", "--session", "last", "-c", "1") })
	m.removeAll(t)
	left := slices.DeleteFunc(folders(t, filepath.Join(m.dir, "sessions")), func(n string) bool { return n == ".home" }) // says which place this is
	if len(left) > 0 {
		t.Errorf("left of sessions: %q", left)
	}
	if left := folders(t, filepath.Join(m.dir, "run", "gvisor")); len(left) > 0 {
		t.Errorf("sandboxes left: %q", left)
	}
	if mounts, _ := os.ReadFile("/proc/self/mounts"); bytes.Contains(mounts, []byte(m.dir)) {
		t.Errorf("mounts left: %s", mounts)
	}
}
