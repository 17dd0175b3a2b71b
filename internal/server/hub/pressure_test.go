package hub_test

import (
	"sync/atomic"
	"testing"
	"time"

	"cove/internal/core/memory"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/testkit/testneeds"
)

// tight is a machine of 3 GiB on which each session in memory holds 600 MiB.
type tight struct {
	l     *life
	other atomic.Int64 // what else holds memory
	shed  atomic.Int64 // sandboxes that are only kept ready, of 200 MiB each
	later atomic.Int64 // how much later it is
}

func newTight(t *testing.T) *tight {
	m := &tight{}
	m.l = newLife(t, func(o *hub.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(m.later.Load())) }
		o.Room = func() (memory.Room, error) {
			held := m.other.Load() + m.shed.Load()*(200<<20)
			if m.l != nil {
				held += int64(m.l.InMemory()) * (600 << 20)
			}
			return memory.Room{Total: 3 << 30, Available: max(0, 3<<30-held)}, nil
		}
		o.Shed = func() bool { return m.shed.Add(-1) >= 0 || m.shed.Add(1) < 0 }
	})
	return m
}

// expect says which sessions are active; the others are paused.
func (m *tight) expect(who auth.Principal, active map[string]bool) {
	m.l.t.Helper()
	for s, is := range active {
		want := hub.SessionPaused
		if is {
			want = hub.SessionActive
		}
		if got := m.l.state(who, s); got != want {
			m.l.t.Errorf("of %v session %s is %s, want %s", active, s, got, want)
		}
	}
}

// TestIdleSessionsMakeRoomInMemory begins code where little memory is left: what is kept ready goes first, then the sessions that nobody has used for longest.
func TestIdleSessionsMakeRoomInMemory(t *testing.T) {
	t.Parallel()
	m, who := newTight(t), someone(auth.LocalProject)
	l := m.l
	m.shed.Store(2)
	a, b, c := l.session(who), l.session(who), l.session(who)
	for _, s := range []hub.Session{b, a, c} {
		l.run(who, s.ID, "remember one")
		m.later.Add(int64(time.Minute))
	}
	m.other.Store(1100 << 20)
	l.LookAgain()
	l.run(who, c.ID, "remember two")
	if left := m.shed.Load(); left != 0 {
		t.Errorf("%d sandboxes are kept ready", left)
	}
	m.expect(who, map[string]bool{a.ID: true, b.ID: false, c.ID: true})
	if got, _ := l.run(who, b.ID, "recall"); len(got) != 1 || got[0] != "one" {
		t.Errorf("the session that made room has %q", got)
	}
}

// TestWhatTakesMostMakesRoom begins code where little memory is left. What is evicted is not what nobody has used for longest, but what has held most memory for nothing.
func TestWhatTakesMostMakesRoom(t *testing.T) {
	t.Parallel()
	m, who := newTight(t), someone(auth.LocalProject)
	l := m.l
	small, large, last := l.session(who), l.session(who), l.session(who)
	for s, code := range map[string]string{small.ID: "hold 50", large.ID: "hold 500", last.ID: "hold 2000"} {
		l.run(who, s, code)
	}
	for _, s := range []hub.Session{small, large, last} {
		l.run(who, s.ID, "say x")
		m.later.Add(int64(time.Minute))
	}
	m.other.Store(1100 << 20)
	l.LookAgain()
	l.run(who, last.ID, "say y")
	m.expect(who, map[string]bool{small.ID: true, large.ID: false, last.ID: true})
}

// TestNoMemoryIsLeft refuses with a time to come back what has no memory, and lets it in when there is some again.
func TestNoMemoryIsLeft(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Time)
	m, who := newTight(t), someone(auth.LocalProject)
	s := m.l.session(who)
	m.other.Store(3 << 30)
	m.l.LookAgain()
	_, err := m.l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Code: "say x"})
	fails(t, err, "server_memory")
	_, err = m.l.CreateSession(t.Context(), who, hub.NewSession{})
	fails(t, err, "server_memory")
	m.other.Store(0)
	m.l.LookAgain()
	if got, _ := m.l.run(who, s.ID, "say x"); len(got) != 1 {
		t.Errorf("with memory again: %q", got)
	}
}
