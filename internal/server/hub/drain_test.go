package hub_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/sessions/ondisk"
)

// slowly has sessions wait for a gate before they are brought in, once the gate's name is set.
func slowly(l **life, gate *string) func(*hub.Options) {
	return func(o *hub.Options) {
		prepare := o.Prepare
		o.Prepare = func(ctx context.Context, b ondisk.Base) (*ondisk.Ground, error) {
			if *gate != "" {
				<-(*l).toys.gate(*gate)
			}
			return prepare(ctx, b)
		}
	}
}

// drained drains with so much patience and returns how long that took.
func (l *life) drained(patience time.Duration) time.Duration {
	l.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.Drain(ctx); err != nil {
		l.t.Error(err)
	}
	return time.Since(began)
}

func TestADrainDoesNotWaitForASessionThatNobodyWantsAnyMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l *life
		gate := ""
		l = newLife(t, slowly(&l, &gate))
		who := someone(auth.LocalProject)
		s := l.session(who)
		if _, err := l.PauseSession(t.Context(), who, s.ID); err != nil {
			t.Fatal(err)
		}
		gate = "bring"
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := l.ResumeSession(ctx, who, s.ID)
			left <- err
		}()
		synctest.Wait()
		leave()
		fails(t, <-left, "canceled")
		go l.toys.open(gate)
		if took := l.drained(time.Minute); took > time.Second {
			t.Errorf("it took %s", took)
		}
		if row, err := l.store.Session(t.Context(), who.Project, s.ID); err != nil || row.State != hub.SessionPaused {
			t.Errorf("%+v %v", row, err)
		}
	})
}

func TestADrainEndsTheUseOfFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, who := newLife(t, nil), someone(auth.LocalProject)
		s := l.session(who)
		ended := make(chan error, 1)
		go func() {
			ended <- l.Tree(context.Background(), who, s.ID, false, func(ctx context.Context, _ hub.Tree) error {
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}()
		synctest.Wait()
		if took := l.drained(20 * time.Second); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("it took %s: the use may last as long as work may, and no longer", took)
		}
		fails(t, <-ended, "draining")
		if row, err := l.store.Session(t.Context(), who.Project, s.ID); err != nil || row.State != hub.SessionPaused {
			t.Errorf("%+v %v", row, err)
		}
	})
}

func TestADrainWithoutADatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, db, who := lifeWhoseStoreGoes(t)
		var all []hub.Session
		for i := range 20 {
			s := l.session(who)
			l.run(who, s.ID, fmt.Sprint("remember ", i))
			all = append(all, s)
		}
		e := l.start(who, all[0].ID, "say on\nwait go")
		l.began(who, e.ID)
		db.down.Store(true)
		l.toys.open("go")
		if took := l.drained(time.Minute); took > 20*time.Second {
			t.Errorf("it took %s to give up the database", took)
		}
		next := lifeIn(t, l.dir, openStore(t, l.dir), nil)
		for i, s := range all {
			if got, _ := next.run(who, s.ID, "recall"); fmt.Sprint(got) != fmt.Sprintf("[%d]", i) {
				t.Errorf("session %d has %q", i, got)
			}
		}
	})
}

// TestADeletionThatTheStoreDoesNotAdmit has a deletion written whose answer was an error.
func TestADeletionThatTheStoreDoesNotAdmit(t *testing.T) {
	t.Parallel()
	l, db, who := lifeWhoseStoreGoes(t)
	s := l.session(who)
	l.run(who, s.ID, "remember one")
	db.forgetful.Store(true)
	fails(t, l.DeleteSession(t.Context(), who, s.ID), "database_unavailable")
	synced(t, func() bool {
		_, err := os.Stat(filepath.Join(l.dir, "sessions", s.ID))
		return os.IsNotExist(err)
	})
	fails(t, l.Tree(t.Context(), who, s.ID, false, func(context.Context, hub.Tree) error { return nil }), "session_not_found")
}

func TestOthersDoNotHearOfASessionThatIsBroughtIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l *life
		gate := ""
		l = newLife(t, slowly(&l, &gate))
		who, other := someone(auth.LocalProject), someone("prj_other")
		s := l.session(who)
		if _, err := l.PauseSession(t.Context(), who, s.ID); err != nil {
			t.Fatal(err)
		}
		gate = "bring"
		mine := make(chan error, 1)
		go func() {
			_, err := l.ResumeSession(t.Context(), who, s.ID)
			mine <- err
		}()
		synctest.Wait()
		_, err := l.ResumeSession(t.Context(), other, s.ID) // while the gate is shut
		fails(t, err, "session_not_found")
		l.toys.open(gate)
		if err := <-mine; err != nil {
			t.Error(err)
		}
	})
}

// TestWhatIsBroughtInIsUsed has two sessions compete for the room of one.
func TestWhatIsBroughtInIsUsed(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, func(o *hub.Options) { o.Limits.Project.Sessions = 1 }), someone(auth.LocalProject)
	sessions := []hub.Session{l.session(who), l.session(who)}
	const each = 20
	var all sync.WaitGroup
	for _, s := range sessions {
		all.Go(func() {
			for range each {
				if _, err := l.ResumeSession(context.Background(), who, s.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if most := len(sessions) * (each + 1); l.toys.starts > most {
		t.Errorf("%d requests brought sessions in %d times", most, l.toys.starts)
	}
}

// TestIdleSessionsCanBeUsedUntilTheirTurn has more sessions become idle at once than are saved at once.
func TestIdleSessionsCanBeUsedUntilTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, who := newLife(t, nil), someone(auth.LocalProject)
		const sessions = 7
		var all []hub.Session
		for range sessions {
			s := l.session(who)
			l.run(who, s.ID, "remember one")
			all = append(all, s)
		}
		l.toys.shut = make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = l.Run(ctx) })
		time.Sleep(16 * time.Minute)
		used := 0
		for _, s := range all {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := l.StartExecution(ctx, who, hub.NewExecution{Session: s.ID, Code: "recall"}); err == nil {
				used++
			}
			cancel()
		}
		if used != sessions-4 {
			t.Errorf("%d of %d sessions could be used while 4 were saved", used, sessions)
		}
		close(l.toys.shut)
		stop()
		running.Wait()
	})
}

// TestForksCountAtOnce forks many sessions at the same time where there is room for one more.
func TestForksCountAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := int64(0)
		l, who := newLife(t, func(o *hub.Options) {
			o.Quotas = func(context.Context, string, string) (*hub.Quota, *hub.Quota, error) {
				return &hub.Quota{Disk: limit}, nil, nil
			}
		}), someone(auth.LocalProject)
		var all []hub.Session
		for range 6 {
			s := l.session(who)
			l.run(who, s.ID, "remember one")
			paused, err := l.PauseSession(t.Context(), who, s.ID)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, paused)
		}
		limit = all[0].Disk * int64(len(all)+1)
		time.Sleep(time.Minute) // quotas are believed for a while
		errs := make(chan error, len(all))
		for _, s := range all {
			go func() {
				_, err := l.ForkSession(context.Background(), who, s.ID, hub.NewSession{})
				errs <- err
			}()
		}
		made := 0
		for range all {
			err := <-errs
			if err == nil {
				made++
			} else if problem.Of(err).Code != "quota_disk" {
				t.Error(err)
			}
		}
		if made > 1 {
			t.Errorf("%d forks were made where there is room for one", made)
		}
	})
}

// TestADrainHasAnEnd has many sessions whose sandboxes do not answer when they are saved: a drain does not wait for one after the other.
func TestADrainHasAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, who := newLife(t, nil), someone(auth.LocalProject)
		var all []hub.Session
		for range 20 {
			s := l.session(who)
			time.Sleep(time.Second)
			l.run(who, s.ID, "remember one")
			all = append(all, s)
		}
		l.toys.shut = make(chan struct{})
		if took := l.drained(25 * time.Second); took > 5*time.Minute { // what the unit of systemd grants
			t.Errorf("the drain took %s", took)
		}
		close(l.toys.shut)
		n := l.killed()
		for _, s := range all {
			if row, err := l.store.Session(t.Context(), who.Project, s.ID); err != nil || row.State != hub.SessionLost || row.Rollback == nil {
				t.Errorf("%v %+v", err, row)
			}
			if told, printed := n.rollbacks(who, s.ID, "recall"); len(told) != 1 || printed == "one" {
				t.Errorf("told %+v, printed %q", told, printed)
			}
		}
	})
}
