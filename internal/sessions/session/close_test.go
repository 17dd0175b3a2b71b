package session_test

import (
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
)

// TestCloseEndsExecutions closes a session under code that would run on and does not listen to a friendly request.
func TestCloseEndsExecutions(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		closed := make(chan error, 1)
		var last kernel.Done
		code := "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('on', flush=True)\nwhile True: time.sleep(1)"
		for ev, err := range s.Execute(t.Context(), kernel.Request{Code: code}) {
			if err != nil {
				t.Fatal(err)
			}
			switch ev := ev.(type) {
			case kernel.Stream:
				go func() { closed <- s.Close(t.Context()) }()
			case kernel.Done:
				last = ev
			}
		}
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
		if last.Outcome != kernel.OutcomeInterrupted || last.Lost != kernel.LostSession {
			t.Errorf("the execution ended as %+v", last)
		}
	})
}
