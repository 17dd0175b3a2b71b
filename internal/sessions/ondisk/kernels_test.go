package ondisk_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/python/kernel"
	"cove/internal/sessions/ondisk"
)

// TestKernelsAreRemembered has every snapshot know its kernels, wherever it is gone on from.
func TestKernelsAreRemembered(t *testing.T) {
	t.Parallel()
	m := &machine{}
	store := ondisk.Store{Dir: t.TempDir()}
	o := m.options()
	use := func(name string, want map[string]int, do func(s *ondisk.LeasedSession)) {
		t.Helper()
		s := open(t, store, name, o)
		if diff := cmp.Diff(want, m.kernels); diff != "" {
			t.Errorf("session %s was prepared with other kernels: %s", name, diff)
		}
		do(s)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	one, two := map[string]int{"main": 7}, map[string]int{"main": 7, "b": 12}
	o.Undoable = true
	use("lab", nil, func(s *ondisk.LeasedSession) {
		m.last.kernels = one
		execute(t, s, "a")
	})
	use("lab", one, func(s *ondisk.LeasedSession) {
		m.last.kernels = two
		execute(t, s, "b")
	})
	o.Undoable = false
	use("lab", two, func(*ondisk.LeasedSession) { m.last.kernels = map[string]int{"main": 1} }) // nothing happened, nothing is saved
	use("lab", two, func(*ondisk.LeasedSession) { m.last.kernels, m.last.touched = map[string]int{"main": 7, "b": 0}, true })
	use("lab", map[string]int{"main": 7, "b": 0}, func(*ondisk.LeasedSession) {})
	if _, err := store.Fork(t.Context(), "lab", "fork", "test", ""); err != nil {
		t.Fatal(err)
	}
	use("fork", map[string]int{"main": 7, "b": 0}, func(*ondisk.LeasedSession) {})
	if _, err := store.Undo(t.Context(), "lab", "test"); err != nil {
		t.Fatal(err)
	}
	use("lab", one, func(*ondisk.LeasedSession) {})
}

// TestTouchedIsSavedUnlessDiscarded saves what changed without an execution.
func TestTouchedIsSavedUnlessDiscarded(t *testing.T) {
	t.Parallel()
	m := &machine{}
	store := ondisk.Store{Dir: t.TempDir()}
	for _, c := range []struct {
		end  func(*ondisk.LeasedSession, context.Context) error
		want ondisk.State
	}{{(*ondisk.LeasedSession).Discard, ondisk.New}, {(*ondisk.LeasedSession).Close, ondisk.Paused}} {
		s := open(t, store, "lab", m.options())
		m.last.touched = true
		if err := c.end(s, t.Context()); err != nil {
			t.Fatal(err)
		}
		if info := show(t, store); info.State != c.want {
			t.Errorf("the session is %s, want %s", info.State, c.want)
		}
	}
}

// TestExecutionsRunBesideEachOther leaves it to the kernels what waits for what, and closing waits for all.
func TestExecutionsRunBesideEachOther(t *testing.T) {
	t.Parallel()
	m := &machine{started: make(chan string, 9)}
	s := open(t, ondisk.Store{Dir: t.TempDir()}, "lab", m.options())
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan kernel.Done, 1)
	go func() {
		var done kernel.Done
		for ev, err := range s.Execute(ctx, kernel.Request{Code: "block"}) {
			if err != nil {
				t.Error(err)
			}
			done, _ = ev.(kernel.Done)
		}
		over <- done
	}()
	<-m.started
	if done := execute(t, s, "beside"); done.Outcome != kernel.OutcomeOK {
		t.Errorf("beside another, code ended with %+v", done)
	}
	saved := make(chan error, 1)
	go func() { saved <- s.Close(t.Context()) }()
	select {
	case err := <-saved:
		t.Errorf("closed while code ran: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	stop()
	if done := <-over; done.Outcome != kernel.OutcomeInterrupted {
		t.Errorf("ended with %+v", done)
	}
	if err := <-saved; err != nil {
		t.Error(err)
	}
}
