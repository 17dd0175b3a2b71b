package hub_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// TestABusySessionCanBePaused has a session that is never unused, since there is always another request before the last one has ended: a pause and a fork
// get their turn all the same, and so do those who came after them.
func TestABusySessionCanBePaused(t *testing.T) {
	t.Parallel()
	for what, do := range map[string]func(l *life, who auth.Principal, id string) error{
		"pause": func(l *life, who auth.Principal, id string) error {
			_, err := l.PauseSession(l.t.Context(), who, id)
			return err
		},
		"fork": func(l *life, who auth.Principal, id string) error {
			_, err := l.ForkSession(l.t.Context(), who, id, hub.NewSession{})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, who := newLife(t, nil), someone(auth.LocalProject)
				s := l.session(who)
				l.run(who, s.ID, "remember one")
				const most = 20
				begin := func(n int) {
					kernel := []string{"main", "other"}[n%2]
					code := fmt.Sprintf("wait gate%d\nrecall", n)
					if _, err := l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Kernel: kernel, Code: code}); err != nil {
						t.Error(err)
					}
				}
				begin(0)
				var asking sync.WaitGroup
				done := make(chan error, 1)
				asking.Go(func() { done <- do(l, who, s.ID) })
				synctest.Wait()
				turn := 0
				for ; turn < most && len(done) == 0; turn++ {
					asking.Go(func() { begin(turn + 1) })
					synctest.Wait()
					l.toys.open(fmt.Sprint("gate", turn))
					synctest.Wait()
				}
				if turn != 1 {
					t.Errorf("%d others had their turn before", turn)
				}
				l.toys.open(fmt.Sprint("gate", turn))
				if err := <-done; err != nil {
					t.Error(err)
				}
				asking.Wait()
				if got, _ := l.run(who, s.ID, "recall"); fmt.Sprint(got) != "[one]" {
					t.Errorf("the session has %q", got)
				}
			})
		})
	}
}
