package hub_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/ownership"
)

// twoLives are two servers with folders of their own on one database.
func twoLives(t *testing.T, change func(*hub.Options)) (a, b *life) {
	t.Helper()
	dir := t.TempDir()
	a, b = lifeIn(t, t.TempDir(), openStore(t, dir), change), lifeIn(t, t.TempDir(), openStore(t, dir), change)
	a.shared = dir
	return a, b
}

// die has the others find a process dead, as if it had been killed.
func (l *life) die() {
	l.t.Helper()
	if err := l.store.RemoveOwner(l.t.Context(), l.own.ID); err != nil {
		l.t.Fatal(err)
	}
}

// TestTwoServersLeaveEachOtherAlone has one server look at, and reach for, what another one has.
func TestTwoServersLeaveEachOtherAlone(t *testing.T) {
	t.Parallel()
	a, b := twoLives(t, nil)
	who, ctx := someone(auth.LocalProject), t.Context()
	used, paused := a.session(who), a.session(who)
	a.run(who, paused.ID, "remember one")
	if _, err := a.PauseSession(ctx, who, paused.ID); err != nil {
		t.Fatal(err)
	}
	running, queued := a.start(who, used.ID, "say on\nwait go\nsay off"), a.start(who, used.ID, "say hello")
	a.began(who, running.ID)

	if err := b.RecoverAbandoned(ctx); err != nil {
		t.Fatal(err)
	}
	b.Sweep(ctx)
	for id, state := range map[string]hub.SessionState{used.ID: hub.SessionActive, paused.ID: hub.SessionPaused} {
		if got := b.state(who, id); got != state {
			t.Errorf("at the other server session %s is %s", id, got)
		}
		for name, reach := range map[string]func() error{
			"run": func() error {
				_, err := b.StartExecution(ctx, who, hub.NewExecution{Session: id, Code: "say x"})
				return err
			},
			"pause":  func() error { _, err := b.PauseSession(ctx, who, id); return err },
			"resume": func() error { _, err := b.ResumeSession(ctx, who, id); return err },
			"fork":   func() error { _, err := b.ForkSession(ctx, who, id, hub.NewSession{}); return err },
			"delete": func() error { return b.DeleteSession(ctx, who, id) },
		} {
			if err := reach(); problem.Of(err) == nil || problem.Of(err).Code != "session_elsewhere" || !strings.Contains(problem.Of(err).Message, a.own.Host) {
				t.Errorf("%s %s: %v", name, id, err)
			}
		}
	}
	_, err := b.InterruptExecution(ctx, who, running.ID)
	fails(t, err, "execution_elsewhere")

	f, err := b.Follow(ctx, who, running.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for n, err := range f {
		switch e := n.Event.(type) {
		case kernel.Stream:
			if seen = append(seen, string(e.Data)); len(seen) == 1 {
				a.toys.open("go")
			}
		case kernel.Done:
			seen = append(seen, string(e.Outcome))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(seen) != "[on off ok]" {
		t.Errorf("a follower at the other server saw %q", seen)
	}
	if printed, done := b.wait(who, queued.ID); fmt.Sprint(printed) != "[hello]" || done.Outcome != kernel.OutcomeOK {
		t.Errorf("%q %+v", printed, done)
	}
	if printed, _ := a.run(who, paused.ID, "recall"); fmt.Sprint(printed) != "[one]" {
		t.Errorf("the paused session recalls %q", printed)
	}
	if _, err := b.InterruptExecution(ctx, who, running.ID); err != nil {
		t.Errorf("interrupting what has ended: %v", err)
	}
}

// TestTheOtherServerEndsWhatADeadOneLeft has a server die, and come back.
func TestTheOtherServerEndsWhatADeadOneLeft(t *testing.T) {
	t.Parallel()
	a, b := twoLives(t, nil)
	who, ctx := someone(auth.LocalProject), t.Context()
	idle, saved, busy, paused := a.session(who), a.session(who), a.session(who), a.session(who)
	for _, s := range []hub.Session{saved, paused} {
		a.run(who, s.ID, "remember one")
		if _, err := a.PauseSession(ctx, who, s.ID); err != nil {
			t.Fatal(err)
		}
	}
	a.run(who, saved.ID, "remember two")
	running := a.start(who, busy.ID, "count 5\nwait never")
	stored(t, a, running.ID, 5)
	mine := b.session(who)
	own := b.start(who, mine.ID, "say on\nwait go")
	b.began(who, own.ID)
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(a.dir)); err != nil {
		t.Fatal(err)
	}

	a.die()
	for range 2 { // the second one finds nothing to do
		if err := b.RecoverAbandoned(ctx); err != nil {
			t.Fatal(err)
		}
	}
	lost(t, b, who, running.ID, 5)
	for id, want := range map[string]hub.SessionState{
		idle.ID: hub.SessionLost, saved.ID: hub.SessionLost, busy.ID: hub.SessionLost, paused.ID: hub.SessionPaused, mine.ID: hub.SessionActive,
	} {
		if row, err := b.Session(ctx, who, id); err != nil || row.State != want || (row.Reason == "") != (want != hub.SessionLost) {
			t.Errorf("%s is %+v %v, want %s", id, row, err, want)
		}
	}
	if e, err := b.Execution(ctx, who, own.ID); err != nil || e.State != hub.ExecutionRunning {
		t.Errorf("what the living one runs is %s, %v", e.State, err)
	}

	back := lifeIn(t, folder, openStore(t, a.shared), nil)
	for _, c := range []struct {
		session hub.Session
		state   hub.SessionState
		recall  string
	}{{idle, hub.SessionPaused, ""}, {saved, hub.SessionLost, "one"}, {busy, hub.SessionLost, ""}, {paused, hub.SessionPaused, "one"}} {
		if row, err := back.Session(ctx, who, c.session.ID); err != nil || row.State != c.state || row.Owner != "" {
			t.Errorf("back home %s is %+v %v, want %s", c.session.ID, row, err, c.state)
		}
		if got, _ := back.run(who, c.session.ID, "recall"); strings.Join(got, "") != c.recall {
			t.Errorf("it recalls %q, want %q", got, c.recall)
		}
	}
	if row, err := back.Session(ctx, who, mine.ID); err != nil || row.State != hub.SessionActive || row.Home != b.own.Home {
		t.Errorf("the living one's is %+v %v", row, err)
	}
	b.toys.open("go")
	if _, done := b.wait(who, own.ID); done.Outcome != kernel.OutcomeOK {
		t.Errorf("what the living one ran ended as %+v", done)
	}
}

// TestADeadServerAcknowledgesNothing has a server go on that others have taken for dead.
func TestADeadServerAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	a, b := twoLives(t, nil)
	who, ctx := someone(auth.LocalProject), t.Context()
	s := a.session(who)
	a.run(who, s.ID, "remember one")
	e := a.start(who, s.ID, "say on\nwait go")
	stored(t, a, e.ID, 1)
	f, err := a.Follow(ctx, who, e.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	a.die()
	a.toys.open("go")
	for n, err := range f {
		if err == nil {
			t.Errorf("a dead server tells %+v", n)
			continue
		}
		fails(t, err, "owner_lost")
	}
	_, err = a.StartExecution(ctx, who, hub.NewExecution{Session: s.ID, Code: "say x"})
	fails(t, err, "owner_lost")
	_, err = a.CreateSession(ctx, who, hub.NewSession{})
	fails(t, err, "owner_lost")
	select {
	case <-a.own.Lost():
	case <-time.After(time.Minute):
		t.Error("the dead server does not know it")
	}
	if err := b.RecoverAbandoned(ctx); err != nil {
		t.Fatal(err)
	}
	lost(t, b, who, e.ID, 1)
	if err := a.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	next := lifeIn(t, a.dir, openStore(t, a.shared), nil)
	if got, _ := next.run(who, s.ID, "recall"); fmt.Sprint(got) != "[one]" {
		t.Errorf("what the dead server saved at its end recalls %q", got)
	}
}

// TestACommandBesideAServer has a process that is not alone in its home.
func TestACommandBesideAServer(t *testing.T) {
	t.Parallel()
	server, who, ctx := newLife(t, nil), someone(auth.LocalProject), t.Context()
	s := server.session(who)
	e := server.start(who, s.ID, "say on\nwait go")
	server.began(who, e.ID)
	command := func() *life {
		return lifeOf(t, server.dir, openStore(t, server.dir), ownership.Options{Command: "cove ask"}, nil)
	}
	c := command()
	if c.own.Home != server.own.Home || c.state(who, s.ID) != hub.SessionActive {
		t.Errorf("%+v is not beside %+v", c.own.Record, server.own.Record)
	}
	_, err := c.StartExecution(ctx, who, hub.NewExecution{Session: s.ID, Code: "say x"})
	fails(t, err, "session_in_use")
	own := c.session(who)
	c.run(who, own.ID, "remember one")
	_, err = server.StartExecution(ctx, who, hub.NewExecution{Session: own.ID, Code: "say x"})
	fails(t, err, "session_in_use")
	fails(t, server.DeleteSession(ctx, who, own.ID), "session_in_use")

	next := command()
	if _, err := c.PauseSession(ctx, who, own.ID); err != nil {
		t.Fatal(err)
	}
	if got, _ := next.run(who, own.ID, "recall"); fmt.Sprint(got) != "[one]" {
		t.Errorf("the next command recalls %q", got)
	}
	if _, err := next.PauseSession(ctx, who, own.ID); err != nil {
		t.Fatal(err)
	}
	left := next.start(who, own.ID, "say on\nwait never")
	stored(t, next, left.ID, 1)
	next.die()
	next.toys.open("never")
	if err := command().RecoverAbandoned(ctx); err != nil {
		t.Fatal(err)
	}
	lost(t, server, who, left.ID, 1)
	server.toys.open("go")
	if _, done := server.wait(who, e.ID); done.Outcome != kernel.OutcomeOK {
		t.Errorf("the server's code ended as %+v", done)
	}
}

// TestNobodyExpiresWhatLivesElsewhere has sessions end whose homes are served, and are not.
func TestNobodyExpiresWhatLivesElsewhere(t *testing.T) {
	t.Parallel()
	a, b := twoLives(t, nil)
	who, ctx := someone(auth.LocalProject), t.Context()
	s, err := a.CreateSession(ctx, who, hub.NewSession{Life: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.PauseSession(ctx, who, s.ID); err != nil {
		t.Fatal(err)
	}
	b.Sweep(ctx)
	if got := b.state(who, s.ID); got != hub.SessionPaused {
		t.Errorf("another server's session is %s", got)
	}
	a.die()
	b.Sweep(ctx)
	_, err = b.Session(ctx, who, s.ID)
	fails(t, err, "session_not_found")
	folder := filepath.Join(a.dir, "sessions", s.ID)
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("the other home's disk was touched: %v", err)
	}
	lifeIn(t, a.dir, openStore(t, a.shared), nil)
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("what was left at home is still there: %v", err)
	}
}

// TestProcessesOfOneHomeShareItsFiles has two of them add, read and delete the same content, while both sweep.
func TestProcessesOfOneHomeShareItsFiles(t *testing.T) {
	t.Parallel()
	server, who := newLife(t, nil), someone(auth.LocalProject)
	command := lifeOf(t, server.dir, openStore(t, server.dir), ownership.Options{Command: "cove ask"}, nil)
	var all sync.WaitGroup
	for _, l := range []*life{server, command} {
		all.Go(func() {
			for range 100 {
				f := l.add(who, "f", "the same")
				if got := l.content(who, f.ID); got != "the same" {
					t.Errorf("a file has %q", got)
				}
				if err := errors.Join(l.SweepFiles(t.Context()), l.DeleteFile(t.Context(), who, f.ID)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestAStepThatEndedIsToldToHaveEnded has a server die when the end of a turn's step was recorded and not yet in the turn's stream.
func TestAStepThatEndedIsToldToHaveEnded(t *testing.T) {
	t.Parallel()
	l, who, ctx := newLife(t, nil), someone(auth.LocalProject), t.Context()
	now := time.Now().Truncate(time.Microsecond)
	turn := hub.Turn{ID: ident.New(ident.Turn), Project: who.Project, Conversation: ident.New(ident.Conversation), State: hub.TurnRunning, Created: now, Owner: "dead"}
	step := hub.Execution{ID: ident.New(ident.Execution), Project: who.Project, Turn: turn.ID, Step: 1, State: hub.ExecutionRunning, Created: now, Owner: "dead"}
	ended := step
	ended.State, ended.Finished = "ok", now
	if err := errors.Join(l.store.AddConversation(ctx, hub.Conversation{ID: turn.Conversation, Project: who.Project, Created: now, Used: now}),
		l.store.AddTurn(ctx, turn), l.store.AddExecution(ctx, step)); err != nil {
		t.Fatal(err)
	}
	if first, err := l.store.FinishExecution(ctx, ended, nil); !first || err != nil {
		t.Fatal(first, err)
	}
	if err := l.RecoverAbandoned(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Turn(ctx, who, turn.ID); err != nil || got.State != hub.TurnLost {
		t.Errorf("the turn is %s, %v", got.State, err)
	}
	if _, done := l.wait(who, step.ID); done.Outcome != kernel.OutcomeOK {
		t.Errorf("its step ended as %+v", done)
	}
}

// TestTheFirstServerTakesWhatIsNobodys has records from before there were owners, or from a backup.
func TestTheFirstServerTakesWhatIsNobodys(t *testing.T) {
	t.Parallel()
	l, who, ctx := newLife(t, nil), someone(auth.LocalProject), t.Context()
	paused, active := l.session(who), l.session(who)
	l.run(who, paused.ID, "remember one")
	if _, err := l.PauseSession(ctx, who, paused.ID); err != nil {
		t.Fatal(err)
	}
	for _, s := range []hub.Session{paused, active} {
		if _, err := l.store.UpdateSession(ctx, who.Project, s.ID, func(row *hub.Session) error { row.Home, row.Owner = "", ""; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	e := hub.Execution{ID: ident.New(ident.Execution), Project: who.Project, Session: active.ID, State: hub.ExecutionRunning, Created: time.Now().Truncate(time.Microsecond)}
	if err := l.store.AddExecution(ctx, e); err != nil {
		t.Fatal(err)
	}
	n := l.killed()
	for _, s := range []hub.Session{paused, active} {
		if row, err := n.Session(ctx, who, s.ID); err != nil || row.Home != n.own.Home || row.State != hub.SessionPaused {
			t.Errorf("%+v %v", row, err)
		}
	}
	lost(t, n, who, e.ID, 0)
	if got, _ := n.run(who, paused.ID, "recall"); fmt.Sprint(got) != "[one]" {
		t.Errorf("it recalls %q", got)
	}
}
