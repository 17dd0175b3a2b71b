package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
	"cove/internal/sessions/session"
)

// adopt opens a session in a sandbox that another has left.
func adopt(t *testing.T, e sandbox.Engine, sb sandbox.Sandbox) *session.Live {
	t.Helper()
	s, err := session.Open(t.Context(), session.Options{Engine: e, Env: standard(t), Running: sb})
	if err != nil {
		t.Fatalf("adopt: %+v", err)
	}
	return s
}

func leave(t *testing.T, s *session.Live) sandbox.Sandbox {
	t.Helper()
	sb, err := s.Leave(t.Context())
	if err != nil {
		t.Fatalf("leave: %+v", err)
	}
	if _, err := s.Files(t.Context()); problem.Of(err) == nil || problem.Of(err).Code != "session_closed" {
		t.Errorf("the session that was left answers with %v", err)
	}
	return sb
}

// TestLeave hands one sandbox from session to session: with a living kernel, one that has died, one whose code runs on, and to one
// that gives up.
func TestLeave(t *testing.T) {
	t.Parallel()
	e := newGVisor(t)
	s := open(t, e, sandbox.Limits{})
	runCell(t, s, code(living, "created log.txt 6\nok"))
	sb := leave(t, s)
	t.Cleanup(func() {
		if err := sb.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	given, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := session.Open(given, session.Options{Engine: e, Env: standard(t), Running: sb}); !errors.Is(err, context.Canceled) {
		t.Errorf("opened with an ended context: %v", err)
	}
	s = adopt(t, e, sb)
	runCell(t, s, code(stillLiving, expectedLife+"\nchanged log.txt 13\nok"))
	leave(t, s)

	s = adopt(t, e, sb)
	hurried, hurry := context.WithTimeout(t.Context(), time.Second)
	defer hurry()
	left := make(chan error, 1)
	for ev, err := range s.Execute(t.Context(), kernel.Request{Code: "x = 1; print('on', flush=True); time.sleep(600)"}) {
		if _, ok := ev.(kernel.Stream); ok {
			go func() {
				_, err := s.Leave(hurried)
				left <- err
			}()
		}
		if done, ok := ev.(kernel.Done); err != nil || ok && done.Outcome != kernel.OutcomeInterrupted {
			t.Errorf("code whose session is left ends with %+v, %v", ev, err)
		}
	}
	if err := <-left; err != nil {
		t.Errorf("left in a hurry: %v", err)
	}
	s = adopt(t, e, sb)
	runCell(t, s, code("x", "result 1\nok"))
	for _, err := range s.Execute(t.Context(), kernel.Request{Code: "os._exit(3)"}) {
		if err != nil {
			t.Error(err)
		}
	}
	leave(t, s)
	s = adopt(t, e, sb)
	runCell(t, s, code("'x' in globals()", "result False\nok"))
	leave(t, s)
}
