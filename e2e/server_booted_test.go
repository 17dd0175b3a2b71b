package e2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// TestResumedInABootedSandbox has sessions resumed and forked in sandboxes that were booted before, and one that has other limits in its own.
func TestResumedInABootedSandbox(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t), "COVE_POOL=2")
	var other struct{ ID string }
	s.must("POST", "/api/v1/sessions", map[string]any{"memory_bytes": 1 << 30}, &other)
	id := s.session()
	for _, session := range []string{id, other.ID} {
		s.says(session, "x = 42")
		s.must("POST", "/api/v1/sessions/"+session+"/pause", nil, nil)
	}
	s.booted("2")
	waiting := s.sandboxes()
	if got := s.says(other.ID, "print(x)"); got != "42\n" {
		t.Errorf("the session with other limits says %q", got)
	}
	s.must("POST", "/api/v1/sessions/"+other.ID+"/pause", nil, nil)
	if now := s.sandboxes(); !containsAll(now, waiting) {
		t.Errorf("the session with other limits has taken one of %q: there are %q", waiting, now)
	}
	if got := s.says(id, "print(x)"); got != "42\n" {
		t.Errorf("resumed, it says %q", got)
	}
	s.must("POST", "/api/v1/sessions/"+id+"/pause", nil, nil)
	if now := s.sandboxes(); containsAll(now, waiting) {
		t.Errorf("it has taken none of %q: there are %q", waiting, now)
	}
	s.booted("2")
	var fork struct{ ID string }
	s.must("POST", "/api/v1/sessions/"+id+"/fork", map[string]any{}, &fork)
	if got := s.says(fork.ID, "x += 1; print(x)") + s.says(id, "print(x)"); got != "43\n42\n" {
		t.Errorf("the fork and the session say %q", got)
	}
	s.stop().ended(t, 0)
}

// booted waits until so many empty sandboxes wait.
func (s *server) booted(want string) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); s.metric("cove_sandboxes_booted") != want; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("there are %s empty sandboxes, not %s", s.metric("cove_sandboxes_booted"), want)
		}
	}
}

// sandboxes lists those that the server has.
func (s *server) sandboxes() []string {
	s.t.Helper()
	boxes, err := filepath.Glob(filepath.Join(s.runtime, "gvisor", "sbx-*"))
	if err != nil {
		s.t.Fatal(err)
	}
	return boxes
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}

// metric returns the value of a gauge.
func (s *server) metric(name string) string {
	s.t.Helper()
	for line := range strings.Lines(string(s.must("GET", "/metrics", nil, nil).body)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	s.t.Fatalf("there is no metric %s", name)
	return ""
}
