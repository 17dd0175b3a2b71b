package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/server/stream"
)

// A PostgreSQL of pgtest ends with the process, and two goroutines wait for that.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("cove/internal/server/store/pgtest.begin.func1"), goleak.IgnoreAnyFunction("cove/internal/server/store/pgtest.removeAfterwards.func2"))
}

func TestProjectsTakeTurns(t *testing.T) {
	t.Parallel()
	l := newLife(t, func(o *hub.Options) { o.Limits.Executions = 1 })
	many, few := someone("prj_many"), someone("prj_few")
	first := l.start(many, l.session(many).ID, "say on\nwait go")
	l.began(many, first.ID)
	var waiting []hub.Execution
	for range 5 {
		waiting = append(waiting, l.start(many, l.session(many).ID, "say hello"))
	}
	one := l.start(few, l.session(few).ID, "say hello")
	synced(t, func() bool { return l.Waiting() == 6 })
	l.toys.open("go")
	var order []hub.Execution
	for _, e := range append(waiting, one) {
		who := many
		if e.ID == one.ID {
			who = few
		}
		l.wait(who, e.ID)
		e, err := l.Execution(t.Context(), who, e.ID)
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, e)
	}
	slices.SortFunc(order, func(a, b hub.Execution) int { return a.Started.Compare(b.Started) })
	if at := slices.IndexFunc(order, func(e hub.Execution) bool { return e.ID == one.ID }); at > 1 {
		t.Errorf("the project with one execution came at place %d", at)
	}
	if l.toys.most != 1 {
		t.Errorf("%d executions ran at once", l.toys.most)
	}
}

// synced waits until something is so that takes no time but that of other goroutines.
func synced(t *testing.T, is func() bool) {
	t.Helper()
	for !is() {
		if t.Context().Err() != nil {
			t.Fatal("it never was so")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAQueueIsBounded(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, func(o *hub.Options) { o.Limits.Queue = 2 }), someone(auth.LocalProject)
	s := l.session(who)
	running := l.start(who, s.ID, "say on\nwait go")
	l.began(who, running.ID)
	var all []hub.Execution
	for i := range 2 {
		all = append(all, l.start(who, s.ID, fmt.Sprint("remember ", i, "\nrecall")))
	}
	if running.State != hub.ExecutionRunning || running.Started.IsZero() || all[0].State != hub.ExecutionQueued || !all[0].Started.IsZero() {
		t.Errorf("what can run at once is %s, what has to wait is %s", running.State, all[0].State)
	}
	_, err := l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Code: "say hello"})
	fails(t, err, "queue_full")
	other, err := l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Kernel: "other", Code: "say hello"})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := l.wait(who, other.ID); fmt.Sprint(got) != "[hello]" {
		t.Errorf("beside code that runs in another kernel: %q", got)
	}
	_, err = l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Kernel: "none", Code: "say hello"})
	fails(t, err, "kernel_not_found")
	l.toys.open("go")
	for i, want := range []string{"[0]", "[0 1]"} {
		if got, _ := l.wait(who, all[i].ID); fmt.Sprint(got) != want {
			t.Errorf("got %q, want %s", got, want)
		}
	}
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	l := newLife(t, func(o *hub.Options) {
		o.Quotas = func(_ context.Context, project, _ string) (*hub.Quota, *hub.Quota, error) {
			return map[string]*hub.Quota{
				"prj_executions": {Executions: 1}, "prj_cpu": {CPUSeconds: 2}, "prj_disk": {Disk: 1}, "prj_sessions": {Sessions: 1},
			}[project], nil, nil
		}
	})
	busy := someone("prj_executions")
	s := l.session(busy)
	e := l.start(busy, s.ID, "say on\nwait go")
	_, err := l.StartExecution(t.Context(), busy, hub.NewExecution{Session: s.ID, Code: "say hello"})
	fails(t, err, "quota_executions")
	l.toys.open("go")
	l.wait(busy, e.ID)
	l.run(busy, s.ID, "say hello")

	hot := someone("prj_cpu")
	s = l.session(hot)
	l.run(hot, s.ID, "say hello")
	l.run(hot, s.ID, "say hello")
	_, err = l.StartExecution(t.Context(), hot, hub.NewExecution{Session: s.ID, Code: "say hello"})
	fails(t, err, "quota_cpu")

	full := someone("prj_disk")
	s = l.session(full)
	l.run(full, s.ID, "remember one")
	if _, err := l.PauseSession(t.Context(), full, s.ID); err != nil {
		t.Fatal(err)
	}
	_, err = l.CreateSession(t.Context(), full, hub.NewSession{})
	fails(t, err, "quota_disk")

	one := someone("prj_sessions")
	s, next := l.session(one), l.session(one)
	if l.state(one, s.ID) != hub.SessionPaused || l.state(one, next.ID) != hub.SessionActive {
		t.Errorf("the sessions are %s and %s", l.state(one, s.ID), l.state(one, next.ID))
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	again := lifeIn(t, l.dir, openStore(t, l.dir), func(o *hub.Options) { o.Limits.Project.CPUSeconds = 2 })
	_, err = again.StartExecution(t.Context(), hot, hub.NewExecution{Session: s.ID, Code: "say hello"})
	fails(t, err, "quota_cpu")
}

func TestAFullServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, who := newLife(t, func(o *hub.Options) { o.Limits.Sessions = 2 }), someone(auth.LocalProject)
		a, b := l.session(who), l.session(who)
		first, second := l.start(who, a.ID, "say on\nwait a"), l.start(who, b.ID, "say on\nwait b")
		_, err := l.CreateSession(t.Context(), who, hub.NewSession{})
		fails(t, err, "too_many_sessions")
		if p := problem.Of(err); p.Kind != problem.Exhausted || p.Hint == "" {
			t.Errorf("%+v", p)
		}
		l.toys.open("b")
		l.wait(who, second.ID)
		l.session(who)
		if l.state(who, b.ID) != hub.SessionPaused || l.state(who, a.ID) != hub.SessionActive {
			t.Errorf("the sessions are %s and %s", l.state(who, a.ID), l.state(who, b.ID))
		}
		l.toys.open("a")
		l.wait(who, first.ID)
	})
}

func TestASessionGetsSoMuchMemory(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, func(o *hub.Options) { o.Limits.Memory = 1 << 30 }), someone(auth.LocalProject)
	_, err := l.CreateSession(t.Context(), who, hub.NewSession{Memory: 1<<30 + 1})
	fails(t, err, "session_memory")
	if _, err := l.CreateSession(t.Context(), who, hub.NewSession{Memory: 1 << 30}); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeSavedStaysInMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, who := newLife(t, func(o *hub.Options) { o.Limits.Sessions = 1 }), someone(auth.LocalProject)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = l.Run(ctx) })
		defer running.Wait()
		defer stop()
		s := l.session(who)
		l.run(who, s.ID, "remember one")
		l.toys.fill(true)
		_, err := l.PauseSession(t.Context(), who, s.ID)
		fails(t, err, "disk_full")
		if p := problem.Of(err); p.Hint == "" {
			t.Error("nobody is told what to do")
		}
		_, err = l.ForkSession(t.Context(), who, s.ID, hub.NewSession{})
		fails(t, err, "disk_full")
		_, err = l.CreateSession(t.Context(), who, hub.NewSession{})
		fails(t, err, "server_disk_full")
		time.Sleep(time.Hour) // it should have been paused long since
		if got, _ := l.run(who, s.ID, "recall"); fmt.Sprint(got) != "[one]" || l.state(who, s.ID) != hub.SessionActive || l.toys.starts != 1 {
			t.Errorf("%s session has %q after %d starts", l.state(who, s.ID), got, l.toys.starts)
		}
		l.toys.fill(false)
		time.Sleep(time.Hour)
		if l.state(who, s.ID) != hub.SessionPaused {
			t.Errorf("with room on the disk it is %s", l.state(who, s.ID))
		}
		if got, _ := l.run(who, s.ID, "recall"); fmt.Sprint(got) != "[one]" {
			t.Errorf("got %q", got)
		}
	})
}

func TestIdleSessionsPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, who := newLife(t, nil), someone(auth.LocalProject)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := l.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		quiet, busy := l.session(who), l.session(who)
		l.run(who, quiet.ID, "remember one")
		e := l.start(who, busy.ID, "say on\nwait go")
		time.Sleep(14 * time.Minute)
		if l.state(who, quiet.ID) != hub.SessionActive {
			t.Errorf("after 14 minutes it is %s", l.state(who, quiet.ID))
		}
		time.Sleep(2 * time.Minute)
		if l.state(who, quiet.ID) != hub.SessionPaused || l.state(who, busy.ID) != hub.SessionActive {
			t.Errorf("after 16 minutes they are %s and %s", l.state(who, quiet.ID), l.state(who, busy.ID))
		}
		l.toys.open("go")
		l.wait(who, e.ID)
		if got, _ := l.run(who, quiet.ID, "recall"); fmt.Sprint(got) != "[one]" {
			t.Errorf("got %q", got)
		}
		hour := time.Hour
		if _, err := l.ChangeSession(t.Context(), who, quiet.ID, hub.SessionChange{Life: &hour}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(hour + 2*time.Minute)
		_, err := l.Session(t.Context(), who, quiet.ID)
		fails(t, err, "session_not_found")
		if l.state(who, busy.ID) != hub.SessionPaused {
			t.Errorf("the other is %s", l.state(who, busy.ID))
		}
		stop()
		running.Wait()
	})
}

// away is a store whose database can go away. forgetful, it does once what it says that it did not.
type away struct {
	*store.Store
	down, forgetful atomic.Bool
	finals          atomic.Int64
}

func (a *away) UpdateSession(ctx context.Context, project, id string, change func(*hub.Session) error) (hub.Session, error) {
	if a.down.Load() {
		return hub.Session{}, unreachable()
	}
	s, err := a.Store.UpdateSession(ctx, project, id, change)
	if a.forgetful.CompareAndSwap(true, false) {
		return s, errors.Join(err, unreachable())
	}
	return s, err
}

func unreachable() error {
	return problem.New(problem.DatabaseUnavailable, "the database does not answer")
}

func (a *away) AddEvents(ctx context.Context, e []stream.Event) error {
	if a.down.Load() {
		return unreachable()
	}
	return a.Store.AddEvents(ctx, e)
}

func (a *away) FinishExecution(ctx context.Context, e hub.Execution, last []stream.Event) (bool, error) {
	if a.down.Load() {
		return false, unreachable()
	}
	first, err := a.Store.FinishExecution(ctx, e, last)
	if first {
		a.finals.Add(1)
	}
	if a.forgetful.CompareAndSwap(true, false) {
		return false, errors.Join(err, unreachable())
	}
	return first, err
}

// lifeWhoseStoreGoes is a life whose store can be away.
func lifeWhoseStoreGoes(t *testing.T, lines ...line) (*life, *away, auth.Principal) {
	var db *away
	l := newLife(t, func(o *hub.Options) {
		db = &away{Store: o.Store.(*store.Store)}
		o.Store, o.Models = db, &voice{t: t, lines: lines}
	})
	return l, db, someone(auth.LocalProject)
}

func TestTheDatabaseIsAwayAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, db, who := lifeWhoseStoreGoes(t)
		s := l.session(who)
		e := l.start(who, s.ID, "say on\nwait go\ncount 10")
		l.began(who, e.ID)
		db.down.Store(true)
		l.toys.open("go")
		time.Sleep(time.Minute)
		fails(t, l.Ready(t.Context()), "database_unavailable")
		if kernels, err := l.Kernels(t.Context(), who, s.ID); err != nil || len(kernels) == 0 || kernels[0].Busy {
			t.Errorf("a kernel whose code has ended: %+v %v", kernels, err)
		}
		_, err := l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Code: "say hello"})
		fails(t, err, "database_unavailable")
		if e, err := l.Execution(t.Context(), who, e.ID); err != nil || e.State.Final() {
			t.Errorf("%+v %v", e, err)
		}
		db.forgetful.Store(true)
		db.down.Store(false)
		got, done := l.wait(who, e.ID)
		if len(got) != 11 || done.Outcome != kernel.OutcomeOK {
			t.Errorf("%q %+v", got, done)
		}
		if n := db.finals.Load(); n != 1 {
			t.Errorf("%d ends were written", n)
		}
		time.Sleep(time.Minute) // what the database did not take the first time is tried again
		if err := l.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		if events, err := l.store.Events(t.Context(), e.ID, "", 0, 100, 1<<30); err != nil || len(events) != 12 {
			t.Errorf("%d events are stored: %v", len(events), err)
		}
		l.run(who, s.ID, "say hello")
	})
}

// TestEndsRace has executions end by themselves, by requests and by a drain at the same moment.
func TestEndsRace(t *testing.T) {
	t.Parallel()
	l, db, who := lifeWhoseStoreGoes(t)
	var all []hub.Execution
	for range 3 {
		s := l.session(who)
		for range 4 {
			all = append(all, l.start(who, s.ID, "say on\nwait go\nsay off"))
		}
	}
	var racers sync.WaitGroup
	for _, e := range all {
		for range 2 {
			racers.Go(func() {
				if _, err := l.InterruptExecution(context.Background(), who, e.ID); err != nil {
					t.Error(err)
				}
			})
		}
	}
	racers.Go(func() { l.toys.open("go") })
	racers.Go(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := l.Drain(ctx); err != nil {
			t.Error(err)
		}
	})
	racers.Wait()
	if n := db.finals.Load(); n != int64(len(all)) {
		t.Errorf("%d ends were written for %d executions", n, len(all))
	}
	for _, e := range all {
		events, err := l.store.Events(t.Context(), e.ID, "", 0, 100, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		e, err = l.store.Execution(t.Context(), who.Project, e.ID)
		if err != nil || !e.State.Final() || e.State == hub.ExecutionLost || e.Events != int64(len(events)) {
			t.Errorf("%+v %v, with %d events", e, err, len(events))
		}
	}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s := l.session(who)
	n := hub.NewExecution{Session: s.ID, Code: "say hello", Once: "word"}
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			e, err := l.StartExecution(context.Background(), who, n)
			if ids[i] = e.ID; err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := sorted(ids); got[0] == "" || got[0] != got[len(got)-1] {
		t.Errorf("got %q", got)
	}
	list, err := l.Executions(t.Context(), who, hub.ExecutionFilter{Session: s.ID}, hub.Page{})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("there are %d executions: %v", len(list.Items), err)
	}
	n.Code = "say bye"
	_, err = l.StartExecution(t.Context(), who, n)
	fails(t, err, "idempotency_mismatch")
	n.Session, n.Once = "ses_none", "other"
	_, err = l.StartExecution(t.Context(), who, n)
	fails(t, err, "session_not_found")
	n.Session = s.ID
	if _, err = l.StartExecution(t.Context(), who, n); err != nil {
		t.Errorf("a word whose request failed cannot be used again: %v", err)
	}
}
