package hub_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/ownership"
)

// killed returns what is on the disk now, as a killed server leaves it, with a server started on it.
func (l *life) killed() *life {
	l.t.Helper()
	return l.killedWith(nil)
}

// killedWith is killed for a server with other options.
func (l *life) killedWith(change func(*hub.Options)) *life {
	l.t.Helper()
	dir := l.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(l.dir)); err != nil {
		l.t.Fatal(err)
	}
	return lifeIn(l.t, dir, openStore(l.t, dir), change)
}

func TestRecover(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	untouched, used, saved, resumed, paused, gone := l.session(who), l.session(who), l.session(who), l.session(who), l.session(who), l.session(who)
	l.run(who, used.ID, "remember one")
	for _, s := range []hub.Session{saved, resumed, paused} {
		l.run(who, s.ID, "remember one")
		if _, err := l.PauseSession(t.Context(), who, s.ID); err != nil {
			t.Fatal(err)
		}
	}
	l.run(who, saved.ID, "remember two")
	finished := l.start(who, saved.ID, "say hello")
	l.wait(who, finished.ID)
	running := l.start(who, saved.ID, "count 5\nwait never")
	queued := l.start(who, saved.ID, "say hello")
	stored(t, l, running.ID, 5)
	if _, err := l.ResumeSession(t.Context(), who, resumed.ID); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(l.dir, "sessions", gone.ID)); err != nil {
		t.Fatal(err)
	}
	orphan := "ses_" + strings.Repeat("0", 26)
	if err := os.MkdirAll(filepath.Join(l.dir, "sessions", orphan), 0o700); err != nil {
		t.Fatal(err)
	}

	n := l.killed()
	for _, c := range []struct {
		session hub.Session
		state   hub.SessionState
		reason  string
		recall  string
	}{
		{untouched, hub.SessionPaused, "", "[]"},
		{used, hub.SessionLost, "it starts anew", "[]"},
		{saved, hub.SessionLost, "variables and files since ", "[one]"},
		{paused, hub.SessionPaused, "", "[one]"},
		{resumed, hub.SessionPaused, "", "[one]"},
		{gone, hub.SessionLost, "its files are gone", "[]"},
	} {
		row, err := n.Session(t.Context(), who, c.session.ID)
		if err != nil || row.State != c.state || !strings.Contains(row.Reason, c.reason) || (c.reason == "") != (row.Reason == "") {
			t.Errorf("%+v %v, want %s because %q", row, err, c.state, c.reason)
		}
		if got, _ := n.run(who, c.session.ID, "recall"); strings.Trim(fmt.Sprint(got), "[]") != strings.Trim(c.recall, "[]") {
			t.Errorf("got %q, want %s", got, c.recall)
		}
		if row, err := n.Session(t.Context(), who, c.session.ID); err != nil || row.State != hub.SessionActive || row.Reason != "" {
			t.Errorf("in use it is %+v %v", row, err)
		}
	}
	if _, err := os.Stat(filepath.Join(n.dir, "sessions", orphan)); !os.IsNotExist(err) {
		t.Errorf("the orphan is still there: %v", err)
	}
	if e, err := n.Execution(t.Context(), who, finished.ID); err != nil || e.State != "ok" {
		t.Errorf("%+v %v", e, err)
	}
	lost(t, n, who, running.ID, 5)
	lost(t, n, who, queued.ID, 0)
	// A second crash finds nothing to do.
	if e, err := n.killed().Execution(t.Context(), who, running.ID); err != nil || e.State != hub.ExecutionLost {
		t.Errorf("%+v %v", e, err)
	}
}

// lost checks that an execution is lost, and what a client sees who has seen more than was stored.
func lost(t *testing.T, l *life, who auth.Principal, id string, printed int) {
	t.Helper()
	e, err := l.Execution(t.Context(), who, id)
	if err != nil || e.State != hub.ExecutionLost || e.Finished.IsZero() || e.Message == "" {
		t.Errorf("%+v %v", e, err)
	}
	for _, after := range []int64{0, int64(printed), int64(printed) + 1000} {
		f, err := l.Follow(t.Context(), who, id, after)
		if err != nil {
			t.Fatal(err)
		}
		var seen []string
		for n, err := range f {
			if err != nil {
				t.Fatal(err)
			}
			if n.Seq <= after {
				t.Errorf("number %d comes after %d", n.Seq, after)
			}
			switch e := n.Event.(type) {
			case kernel.Done:
				seen = append(seen, string(e.Outcome))
			case nil:
				seen = append(seen, fmt.Sprint("gap ", n.Gap))
			default:
				seen = append(seen, "event")
			}
		}
		want := strings.Repeat("event ", max(0, printed-int(after))) + "gap true lost"
		if got := strings.Join(seen, " "); got != want {
			t.Errorf("after %d: %q, want %q", after, got, want)
		}
	}
}

// stored waits until the store has so many events of a stream.
func stored(t *testing.T, l *life, id string, n int) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		events, err := l.store.Events(t.Context(), id, "", 0, 100, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the store has %d events of %s and never got %d", len(events), id, n)
		}
	}
}

func TestADatabaseThatIsNotOurs(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s := l.session(who)
	if _, err := l.PauseSession(t.Context(), who, s.ID); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "sessions"), os.DirFS(filepath.Join(l.dir, "sessions"))); err != nil {
		t.Fatal(err)
	}
	lifeIn(t, dir, openStore(t, dir), nil)
	if _, err := os.Stat(filepath.Join(dir, "sessions", s.ID)); err != nil {
		t.Errorf("an empty database had the sessions removed: %v", err)
	}
}

// TestAKilledCommandsSessions: those that it made for its clients are lost as a server's are; those that were attached, which are on the disk under other names or not at all, are given back.
func TestAKilledCommandsSessions(t *testing.T) {
	t.Parallel()
	dir, who := t.TempDir(), someone(auth.LocalProject)
	l := lifeOf(t, dir, openStore(t, dir), ownership.Options{Command: "cove mcp"}, func(o *hub.Options) { o.Command = "cove mcp" })
	made := l.session(who)
	l.run(who, made.ID, "remember one")
	brought, _ := l.attach(who, ident.New(ident.Session))
	after := t.TempDir()
	if err := os.CopyFS(after, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	l.detach(who, brought.ID, hub.SessionPaused)
	n := lifeOf(t, after, openStore(t, after), ownership.Options{Command: "cove run"}, nil)
	if a, b := n.state(who, made.ID), n.state(who, brought.ID); a != hub.SessionLost || b != hub.SessionPaused {
		t.Errorf("the session of a client is %s, the attached one %s", a, b)
	}
	if in, err := n.Session(t.Context(), who, made.ID); err != nil || in.Rollback == nil || len(in.Rollback.Executions) != 1 {
		t.Errorf("what is lost is not known: %+v, %v", in.Rollback, err)
	}
}
