package session_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
)

// TestConsumer has whoever reads the events behave badly; the session goes on.
func TestConsumer(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		t.Run("leaves early", func(t *testing.T) {
			for ev, err := range s.Execute(t.Context(), kernel.Request{Code: "import time\nleft = 1\nwhile True: print('x'); time.sleep(0.01)"}) {
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := ev.(kernel.Stream); ok {
					break
				}
			}
			runCell(t, s, code("left", "result 1\nok"))
		})
		t.Run("has canceled before", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for ev, err := range s.Execute(ctx, kernel.Request{Code: "left = 2"}) {
				if done, ok := ev.(kernel.Done); ok && done.Outcome == kernel.OutcomeOK || err != nil && problem.Of(err) == nil {
					t.Errorf("gave %+v, %v", ev, err)
				}
			}
			runCell(t, s, code("left", "result 1\nok"))
		})
		t.Run("come at the same time", func(t *testing.T) {
			execute(t, s, cell{req: kernel.Request{Code: "n = 0"}})
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for _, err := range s.Execute(t.Context(), kernel.Request{Code: "seen = n\nfor _ in range(1000): pass\nn = seen + 1"}) {
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			runCell(t, s, code("n", "result 8\nok"))
		})
		t.Run("completes", func(t *testing.T) {
			runCell(t, s, code("class 词:\n    alpha = 1\n    alphabet = 2", "ok"))
			matches, start, end, err := s.Complete(t.Context(), kernel.Main, "x = 词.alph", len([]rune("x = 词.alph")))
			slices.Sort(matches)
			if diff := cmp.Diff([]string{"alpha", "alphabet"}, matches); err != nil || diff != "" || start != 6 || end != 10 {
				t.Errorf("from %d to %d, %v:\n%s", start, end, err, diff)
			}
			for code, want := range map[string]string{"1 + 1": "complete", "def f():": "incomplete", "1 +* 2": "invalid"} {
				if got, err := s.IsComplete(t.Context(), kernel.Main, code); got != want || err != nil {
					t.Errorf("%q is %q, %v; want %q", code, got, err, want)
				}
			}
		})
		t.Run("closes and goes on", func(t *testing.T) {
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, err := range s.Execute(t.Context(), kernel.Request{Code: "1"}) {
				if p := problem.Of(err); p == nil || p.Code != "session_closed" {
					t.Errorf("gave %v", err)
				}
			}
		})
	})
}
