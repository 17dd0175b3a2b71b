package hub_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// hasty saves a session as soon as it is asked to.
func hasty(o *hub.Options) { o.Limits.SaveAfter = time.Nanosecond }

// put writes a file into a session's workspace.
func (l *life) put(who auth.Principal, session, path, text string) {
	l.t.Helper()
	err := l.Tree(l.t.Context(), who, session, true, func(ctx context.Context, tree hub.Tree) error {
		_, err := tree.Write(ctx, path, strings.NewReader(text))
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// save saves a session in memory as soon as its last execution has let go of it.
func (l *life) save(who auth.Principal, session string) {
	l.t.Helper()
	saved := func() time.Time {
		row, err := l.Session(l.t.Context(), who, session)
		if err != nil {
			l.t.Fatal(err)
		}
		return row.Saved
	}
	before := saved()
	l.until("the session is saved", func() bool {
		l.HurrySaves()
		l.SaveUnsaved(l.t.Context())
		return !saved().Equal(before)
	})
}

// until waits for a fact.
func (l *life) until(what string, is func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("it does not come about that %s", what)
		}
	}
}

// rollbacks runs code and returns what it was told of rollbacks, and what it printed.
func (l *life) rollbacks(who auth.Principal, session, code string) (told []kernel.Rollback, printed string) {
	l.t.Helper()
	f, err := l.Follow(l.t.Context(), who, l.start(who, session, code).ID, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	first := true
	for n, err := range f {
		if err != nil {
			l.t.Fatal(err)
		}
		switch e := n.Event.(type) {
		case kernel.Rollback:
			if !first {
				l.t.Error("a rollback is told after other events")
			}
			told = append(told, e)
		case kernel.Stream:
			printed += string(e.Data)
		}
		first = false
	}
	return told, printed
}

// TestARollbackIsSaid kills a server after a save and after what came after that.
func TestARollbackIsSaid(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, hasty), someone(auth.LocalProject)
	s := l.session(who)
	l.run(who, s.ID, "remember one")
	l.save(who, s.ID)
	before, err := l.Session(t.Context(), who, s.ID)
	if err != nil || before.Saved.IsZero() || before.Disk == 0 || before.State != hub.SessionActive || before.Executions != 1 {
		t.Fatalf("saved: %+v %v", before, err)
	}
	lost := l.start(who, s.ID, "remember two\nfile a.csv\nfile a.csv")
	l.wait(who, lost.ID)
	l.put(who, s.ID, "b", "2")

	n := l.killed()
	want := &hub.Rollback{To: before.Saved, Executions: []string{lost.ID}, Files: []string{"a.csv"}}
	check := func(state hub.SessionState, told bool) {
		t.Helper()
		row, err := n.Session(t.Context(), who, s.ID)
		if err != nil || row.State != state || row.Rollback == nil {
			t.Fatalf("%+v %v", row, err)
		}
		got := *row.Rollback
		if got.At.Before(before.Saved) || !strings.Contains(got.Reason, "the server ended") || got.Told != told {
			t.Errorf("%+v", got)
		}
		got.At, got.Reason, got.Told = time.Time{}, "", false
		if diff := cmp.Diff(want, &got); diff != "" {
			t.Error(diff)
		}
	}
	check(hub.SessionLost, false)
	told, printed := n.rollbacks(who, s.ID, "recall")
	if len(told) != 1 || !told[0].To.Equal(before.Saved) || fmt.Sprint(told[0].Executions, told[0].Files) != fmt.Sprint([]string{lost.ID}, []string{"a.csv"}) {
		t.Errorf("the next execution is told %+v", told)
	}
	if printed != "one b=2" {
		t.Errorf("the session has %q; a file that was put in is kept, what code did is not", printed)
	}
	if told, _ := n.rollbacks(who, s.ID, "say x"); len(told) != 0 {
		t.Error("the one after that is told again")
	}
	check(hub.SessionActive, true)
	if row, err := n.AcknowledgeRollback(t.Context(), who, s.ID); err != nil || row.Rollback != nil {
		t.Errorf("acknowledged: %+v %v", row, err)
	}
	_, err = n.AcknowledgeRollback(t.Context(), someone("prj_other"), s.ID)
	fails(t, err, "session_not_found")
	if row, err := n.PauseSession(t.Context(), who, s.ID); err != nil || row.Rollback != nil || row.State != hub.SessionPaused {
		t.Errorf("%+v %v", row, err)
	}
	if row, err := n.killed().Session(t.Context(), who, s.ID); err != nil || row.State != hub.SessionPaused || row.Rollback != nil {
		t.Errorf("after a crash that cost nothing: %+v %v", row, err)
	}
}

// TestTwoRollbacks has a second server killed before anybody was told of the first one's end.
func TestTwoRollbacks(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, hasty), someone(auth.LocalProject)
	s := l.session(who)
	first := l.start(who, s.ID, "remember one")
	l.wait(who, first.ID)
	n := l.killed()
	second := n.start(who, s.ID, "remember two")
	n.wait(who, second.ID)
	m := n.killed()
	row, err := m.Session(t.Context(), who, s.ID)
	if err != nil || row.Rollback == nil || fmt.Sprint(row.Rollback.Executions) != fmt.Sprint([]string{first.ID, second.ID}) || !row.Rollback.To.IsZero() {
		t.Fatalf("%+v %v", row.Rollback, err)
	}
	if told, printed := m.rollbacks(who, s.ID, "recall"); len(told) != 1 || len(told[0].Executions) != 2 || printed != "" {
		t.Errorf("told %+v, printed %q", told, printed)
	}
}

// TestSavedSessionsLoseNothing kills a server after a save, and after files that were put in after it.
func TestSavedSessionsLoseNothing(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, hasty), someone(auth.LocalProject)
	saved, files := l.session(who), l.session(who)
	l.run(who, saved.ID, "remember one")
	l.save(who, saved.ID)
	l.put(who, files.ID, "a", "1")
	n := l.killed()
	for _, c := range []struct{ id, want string }{{saved.ID, "one"}, {files.ID, "a=1"}} {
		if row, err := n.Session(t.Context(), who, c.id); err != nil || row.State != hub.SessionPaused || row.Rollback != nil || row.Reason != "" {
			t.Errorf("%+v %v", row, err)
		}
		if told, printed := n.rollbacks(who, c.id, "recall"); len(told) != 0 || printed != c.want {
			t.Errorf("told %+v, printed %q, want %q", told, printed, c.want)
		}
	}
}

// TestASessionInUseIsSaved saves between the executions of a session that never rests.
func TestASessionInUseIsSaved(t *testing.T) {
	t.Parallel()
	l := newLife(t, func(o *hub.Options) { o.Limits.SaveWithin, o.Limits.SaveAfter = time.Nanosecond, time.Hour })
	who := someone(auth.LocalProject)
	s := l.session(who)
	running := l.start(who, s.ID, "remember one\nsay on\nwait gate")
	l.began(who, running.ID)
	l.SaveUnsaved(t.Context()) // finds no gap
	if row, err := l.Session(t.Context(), who, s.ID); err != nil || !row.Saved.IsZero() {
		t.Errorf("%+v %v", row, err)
	}
	l.toys.open("gate")
	l.wait(who, running.ID)
	l.save(who, s.ID)
}

// TestALostSandboxIsSaid loses the sandbox of a session that is used on at once, and of one that is not.
func TestALostSandboxIsSaid(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, hasty), someone(auth.LocalProject)
	for _, at := range []string{"at once", "later"} {
		s := l.session(who)
		l.run(who, s.ID, "remember one")
		l.save(who, s.ID)
		after := l.start(who, s.ID, "remember two")
		l.wait(who, after.ID)
		gate := "gate " + at
		dying := l.start(who, s.ID, "say x\nwait "+gate+"\ndie")
		if at == "later" {
			l.toys.open(gate)
			l.wait(who, dying.ID)
			l.until("the session is lost", func() bool { return l.state(who, s.ID) == hub.SessionLost })
		}
		next := l.start(who, s.ID, "recall")
		if at == "at once" {
			l.began(who, dying.ID)
			l.toys.open(gate)
		}
		f, err := l.Follow(t.Context(), who, next.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		var seen []string
		for n, err := range f {
			if err != nil {
				t.Fatal(err)
			}
			switch e := n.Event.(type) {
			case kernel.Rollback:
				seen = append(seen, e.Executions...)
			case kernel.Stream:
				seen = append(seen, string(e.Data))
			}
		}
		if want := fmt.Sprint([]string{after.ID, dying.ID, "one"}); fmt.Sprint(seen) != want {
			t.Errorf("%s: the next execution shows %v, want %s", at, seen, want)
		}
	}
}

// TestASandboxThatDiesInSilenceIsSaid loses the sandbox of a session that is held while no code runs: between two steps of a turn, and where the turn's own
// look into files is what finds that out, or what dies.
func TestASandboxThatDiesInSilenceIsSaid(t *testing.T) {
	t.Parallel()
	table := []kernel.File{{Path: "table.xlsx", Size: 3}}
	for name, c := range map[string]struct {
		files   []kernel.File
		early   func(m *toys) // before the turn
		between func(m *toys) // before its second step
	}{
		"between two steps":    {between: func(m *toys) { m.last.die() }},
		"found by a look":      {files: table, early: func(m *toys) { m.last.die() }},
		"while a look goes on": {files: table, early: func(m *toys) { m.losesSandbox.Store(true) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &voice{t: t, lines: []line{calls(python("c1", "recall")), calls(python("c2", "recall")), words("Done.")}}
			l, who := newLife(t, func(o *hub.Options) {
				o.Models, o.Limits.Points = v, 0 // so that no turn saves the session when it begins
				hasty(o)
			}), someone(auth.LocalProject)
			if c.between != nil {
				v.lines[1].first = func() { c.between(l.toys) }
			}
			s := l.session(who)
			l.run(who, s.ID, "remember one")
			l.save(who, s.ID)
			before := l.start(who, s.ID, "remember two")
			l.wait(who, before.ID)
			l.toys.files = c.files
			var told []kernel.Rollback
			var seen []string
			// Held, so that nobody takes it out of memory because its sandbox is lost.
			err := l.Tree(t.Context(), who, s.ID, false, func(context.Context, hub.Tree) error {
				if c.early != nil {
					c.early(l.toys)
				}
				events, err := l.hear(who, l.begin(who, hub.NewTurn{Session: s.ID, Input: input("go")}).ID)
				for _, e := range events {
					out, ok := e.Event.(loop.Output)
					if !ok {
						continue
					}
					switch e := out.Event.(type) {
					case kernel.Rollback:
						told = append(told, e)
						seen = append(seen, "rollback")
					case kernel.Stream:
						seen = append(seen, string(e.Data))
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"rollback", "one", "one"}
			if c.between != nil {
				want = []string{"one two", "rollback", "one"}
			}
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Error(diff)
			}
			row, err := l.Session(t.Context(), who, s.ID)
			if err != nil || len(told) != 1 || !told[0].To.Equal(row.Saved) || !slices.Contains(told[0].Executions, before.ID) {
				t.Errorf("told %+v, the session is %+v: %v", told, row, err)
			}
		})
	}
}

// slowFork looks at the disk when a fork is recorded.
type slowFork struct {
	hub.Store
	dir  string
	seen chan error
}

func (s *slowFork) AddSession(ctx context.Context, row hub.Session) error {
	if row.State == hub.SessionPaused {
		_, err := os.Stat(filepath.Join(s.dir, row.ID, "session.json"))
		s.seen <- err
	}
	return s.Store.AddSession(ctx, row)
}

// TestAForkIsThereBeforeItIsRecorded makes sure that a crash between the two leaves no fork that is silently empty.
func TestAForkIsThereBeforeItIsRecorded(t *testing.T) {
	t.Parallel()
	seen := make(chan error, 1)
	l := newLife(t, func(o *hub.Options) { o.Store = &slowFork{o.Store, o.Sessions.Dir, seen} })
	who := someone(auth.LocalProject)
	s := l.session(who)
	l.run(who, s.ID, "remember one")
	fork, err := l.ForkSession(t.Context(), who, s.ID, hub.NewSession{})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-seen; err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(l.dir, "sessions", fork.ID)); err != nil {
		t.Fatal(err)
	}
	if told, _ := l.rollbacks(who, fork.ID, "recall"); len(told) != 1 || !told[0].To.IsZero() {
		t.Errorf("a session whose files are gone starts with %+v", told)
	}
}

// TestARollbackWaitsForSomebodyWhoHears runs code that no client hears, as surfaces do to prepare a kernel: the first execution that a client hears is told.
func TestARollbackWaitsForSomebodyWhoHears(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, hasty), someone(auth.LocalProject)
	s := l.session(who)
	l.run(who, s.ID, "remember one")
	l.save(who, s.ID)
	l.run(who, s.ID, "remember two")
	n := l.killed()
	for range 2 {
		e, err := n.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Code: "say hidden", Unheard: true})
		if err != nil {
			t.Fatal(err)
		}
		n.wait(who, e.ID)
	}
	if told, printed := n.rollbacks(who, s.ID, "recall"); len(told) != 1 || printed != "one" {
		t.Errorf("told %+v, printed %q", told, printed)
	}
	if told, _ := n.rollbacks(who, s.ID, "say x"); len(told) != 0 {
		t.Error("the one after that is told again")
	}
}

// TestTurnsTellOfARollback has clients that hear notices, and clients that do not, ask in a session that lost something.
func TestTurnsTellOfARollback(t *testing.T) {
	t.Parallel()
	for _, unnoticed := range []bool{false, true} {
		t.Run(fmt.Sprint(unnoticed), func(t *testing.T) {
			t.Parallel()
			v := &voice{t: t, lines: []line{calls(python("c1", "say a")), calls(python("c2", "say b")), words("Done.")}}
			l := newLife(t, func(o *hub.Options) { hasty(o); o.Models = v })
			who := someone(auth.LocalProject)
			s := l.session(who)
			l.run(who, s.ID, "remember one")
			n := l.killedWith(func(o *hub.Options) { o.Models = v })
			turn := n.begin(who, hub.NewTurn{Session: s.ID, Input: input("go"), Unnoticed: unnoticed})
			events, err := n.hear(who, turn.ID)
			if err != nil {
				t.Fatal(err)
			}
			notices, steps := 0, []int{}
			for _, e := range events {
				switch e := e.Event.(type) {
				case loop.Notice:
					notices++
				case loop.Output:
					if _, ok := e.Event.(kernel.Rollback); ok {
						steps = append(steps, e.Step)
					}
				}
			}
			want := "[]"
			if unnoticed {
				want = "[1]"
			}
			if notices != 1 || fmt.Sprint(steps) != want {
				t.Errorf("%d notices, and rollbacks in the steps %v, want %s", notices, steps, want)
			}
			if told := strings.Count(v.asked(2), "started anew"); told != 1 {
				t.Errorf("the model is told %d times: %s", told, v.asked(2))
			}
		})
	}
}
