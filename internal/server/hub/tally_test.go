package hub_test

import (
	"testing"
	"time"

	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// spent is the processor time that an execution was charged; the toys say that each took a second.
func (l *life) spent(id string) time.Duration {
	l.t.Helper()
	e, err := l.store.Execution(l.t.Context(), auth.LocalProject, id)
	if err != nil {
		l.t.Fatal(err)
	}
	return e.CPU
}

func TestProcessorTimeIsChargedOnce(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s := l.session(who)
	if s.CPUs != 2 {
		t.Fatalf("the session has %v processors", s.CPUs)
	}
	begin := func(kernel, code string) hub.Execution {
		e, err := l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Kernel: kernel, Code: code})
		if err != nil {
			t.Fatal(err)
		}
		l.began(who, e.ID)
		return e
	}
	end := func(e hub.Execution, gate string, want time.Duration) {
		t.Helper()
		l.toys.open(gate)
		l.wait(who, e.ID)
		if got := l.spent(e.ID); got != want {
			t.Errorf("%s was charged %v, want %v", gate, got, want)
		}
	}
	l.toys.burn(10*time.Second, true) // its start is nobody's
	first := begin("main", "say on\nwait first")
	l.toys.burn(500*time.Millisecond, true)
	second := begin("other", "say on\nwait second")
	l.toys.burn(600*time.Millisecond, true)
	end(first, "first", 800*time.Millisecond)
	l.toys.burn(100*time.Millisecond, true)
	end(second, "second", 400*time.Millisecond)

	l.toys.burn(10*time.Second, true) // nor is this anybody's
	e := begin("main", "say on\nwait idle")
	end(e, "idle", time.Microsecond)

	e = begin("main", "say on\nwait bounded")
	l.toys.burn(time.Hour, true)
	end(e, "bounded", 2200*time.Millisecond)

	// From here on it is not known for a while.
	e = begin("main", "say on\nwait unknown")
	l.toys.burn(time.Second, false)
	end(e, "unknown", 0)
	e = begin("main", "say on\nwait halfway")
	l.toys.burn(time.Second, true)
	end(e, "halfway", 0)
	e = begin("main", "say on\nwait again")
	l.toys.burn(time.Second, true)
	end(e, "again", time.Second)
}

// TestUnknownProcessorTime charges the wall clock where nothing measures, and what was measured elsewhere.
func TestUnknownProcessorTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ measures, refused bool }{"measured": {true, false}, "not measured": {false, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, who := newLife(t, func(o *hub.Options) { o.Limits.Project.CPUSeconds = 1 }), someone(auth.LocalProject)
			l.toys.burn(0, c.measures)
			s := l.session(who)
			l.run(who, s.ID, "say hello")
			var err error
			for range 3 {
				var e hub.Execution
				if e, err = l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Code: "say hello"}); err != nil {
					break
				}
				l.wait(who, e.ID)
			}
			if c.refused {
				fails(t, err, "quota_cpu")
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// burnt is the processor time that the local project was charged today.
func (l *life) burnt() float64 {
	l.t.Helper()
	day := time.Now().UTC()
	rows, err := l.Usage(l.t.Context(), someone(auth.LocalProject), "", day.AddDate(0, 0, -1).Format(time.DateOnly), day.AddDate(0, 0, 1).Format(time.DateOnly))
	if err != nil {
		l.t.Fatal(err)
	}
	sum := 0.0
	for _, r := range rows {
		sum += r.CPUSeconds
	}
	return sum
}

// TestProcessorTimeBetweenExecutions has sessions go on working when their executions have ended, or said so: it is charged, and does not go on for ever.
func TestProcessorTimeBetweenExecutions(t *testing.T) {
	t.Parallel()
	charged := func(l *life, want float64) {
		t.Helper()
		synced(t, func() bool { got := l.burnt(); return got >= want && got < want+1 })
	}
	// What is used before the last execution has let go of a session is forgotten with that use.
	free := func(l *life, session string) { synced(t, func() bool { return l.Free(session) }) }
	for name, leave := range map[string]func(*life, auth.Principal, string) error{
		"after a while": func(l *life, _ auth.Principal, _ string) error { l.PauseIdle(t.Context()); return nil },
		"at a pause": func(l *life, who auth.Principal, id string) error {
			_, err := l.PauseSession(t.Context(), who, id)
			return err
		},
		"at its end": func(l *life, who auth.Principal, id string) error { return l.DeleteSession(t.Context(), who, id) },
		"at a save": func(l *life, _ auth.Principal, _ string) error {
			l.HurrySaves()
			l.SaveUnsaved(t.Context())
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, who := newLife(t, func(o *hub.Options) { o.Limits.SaveAfter = time.Nanosecond }), someone(auth.LocalProject)
			l.toys.burn(10*time.Second, true) // its start is nobody's
			s := l.session(who)
			l.run(who, s.ID, "remember one\nsay hello")
			free(l, s.ID)
			before := l.burnt()
			l.toys.burn(3*time.Second, true)
			if err := leave(l, who, s.ID); err != nil {
				t.Fatal(err)
			}
			synced(t, func() bool { got := l.burnt() - before; return got >= 3 && got < 4 })
		})
	}
	t.Run("for long", func(t *testing.T) {
		t.Parallel()
		l, who := newLife(t, nil), someone(auth.LocalProject)
		l.toys.burn(0, true)
		s := l.session(who)
		for range 2 {
			l.run(who, s.ID, "say hello")
			free(l, s.ID)
			l.toys.burn(4*time.Minute, true)
			l.PauseIdle(t.Context())
			if state := l.state(who, s.ID); state != hub.SessionActive {
				t.Errorf("%s", state)
			}
		}
		l.toys.burn(time.Minute, true)
		synced(t, func() bool {
			l.PauseIdle(t.Context())
			return l.state(who, s.ID) == hub.SessionPaused
		})
		charged(l, 9*60)
		l.run(who, s.ID, "say hello") // it goes on with the next use
	})
	t.Run("with nothing left", func(t *testing.T) {
		t.Parallel()
		l, who := newLife(t, func(o *hub.Options) { o.Limits.Project.CPUSeconds = 2 }), someone(auth.LocalProject)
		l.toys.burn(0, true)
		s := l.session(who)
		l.run(who, s.ID, "say hello")
		free(l, s.ID)
		l.toys.burn(3*time.Second, true)
		synced(t, func() bool {
			l.PauseIdle(t.Context())
			return l.state(who, s.ID) == hub.SessionPaused
		})
		_, err := l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Code: "say hello"})
		fails(t, err, "quota_cpu")
	})
}
