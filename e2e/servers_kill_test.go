package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cove/internal/llm/model/modeltest"
	"cove/internal/server/store/pgtest"
	"cove/internal/testkit/testneeds"
)

// questions has the model of a server asked again and again, in one conversation with a session of its own, until ctx ends or the server is gone. It returns
// the turns that were answered.
func (s *server) questions(ctx context.Context) (wait func() (answered []string)) {
	var answered []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		path := "/api/v1/turns"
		for ctx.Err() == nil {
			r, err := s.expect(ctx, "POST", path, map[string]any{"prompt": "compute"})
			var f fault
			if err != nil && ctx.Err() == nil && !s.killed.Load() || errors.As(err, &f) {
				s.t.Error(err)
			}
			if err != nil {
				return
			}
			var turn struct{ ID, Conversation, State, Answer string }
			r.into(s.t, &turn)
			if turn.State != "completed" || turn.Answer != "The answer is 42." {
				s.t.Errorf("a turn is %+v", turn)
			}
			answered, path = append(answered, turn.ID), "/api/v1/conversations/"+turn.Conversation+"/turns"
			rest(ctx, s.t)
		}
	}()
	return func() []string { <-done; return answered }
}

// asks runs `cove ask` on the servers' database, one after the other, until ctx ends. It returns how many gave their answer.
func asks(ctx context.Context, t *testing.T, env []string) (wait func() int) {
	var answered atomic.Int64
	done := make(chan struct{})
	folder := t.TempDir()
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			c := newCommand(t, "ask", "--model", "openai/scripted", "compute")
			c.setenv("COVE_SERVER_FOLDER=" + filepath.Join(folder, "server"))
			c.setenv(env...)
			if err := c.cmd.Run(); err != nil || !strings.Contains(c.stdout.String(), "The answer is 42.") || strings.Contains(c.stderr.String(), "not kept") {
				t.Errorf("cove ask: %v\n%s\n%s", err, c.stdout.String(), c.stderr.String())
				return
			}
			answered.Add(1)
			rest(ctx, t)
		}
	}()
	return func() int { <-done; return int(answered.Load()) }
}

// all lists a collection.
func (s *server) all(t *testing.T, path string) (items []struct{ ID, State, Source string }) {
	t.Helper()
	for next := ""; ; {
		var page struct {
			Items []struct{ ID, State, Source string }
			Next  string
		}
		s.must("GET", path+"?limit=100&after="+next, nil, &page)
		items = append(items, page.Items...)
		if next = page.Next; next == "" {
			return items
		}
	}
}

// ends waits until a server says of each execution that another one was asked for how it ended.
func (s *server) ends(t *testing.T, executions []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, id := range executions {
		r, err := s.expect(ctx, "GET", "/api/v1/executions/"+id+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := events(bytes.NewReader(r.body), nil); err != nil || outcome(all) == "" || outcome(all) == "two ends" {
			t.Errorf("at the other server execution %s has the end %q, %v: %s", id, outcome(all), err, r.body)
		}
	}
}

// whole looks at everything that a database has: it has ended, and once.
func (s *server) whole(t *testing.T, answered []string) (turns, lost int) {
	t.Helper()
	every := newAcknowledged()
	for _, e := range s.all(t, "/api/v1/executions") {
		every.executions = append(every.executions, e.ID)
		if e.State == "lost" {
			lost++
		}
	}
	s.check(t, every)
	seen := map[string]string{}
	for _, c := range s.all(t, "/api/v1/conversations") {
		for _, turn := range s.all(t, "/api/v1/conversations/"+c.ID+"/turns") {
			ends := 0
			r := s.must("GET", "/api/v1/turns/"+turn.ID+"/events", nil, nil) // until it ends
			all, err := events(bytes.NewReader(r.body), nil)
			for _, e := range all {
				if kind := e.data["type"]; kind == "answer" || kind == "failure" || e.name == "error" {
					ends++
				}
			}
			if err != nil || ends != 1 {
				t.Errorf("turn %s, which was %s, has %d ends, %v: %s", turn.ID, turn.State, ends, err, r.body)
			}
			s.must("GET", "/api/v1/turns/"+turn.ID, nil, &turn) // what it is now; it may have run when it was listed
			seen[turn.ID] = turn.State
			if turn.State == "lost" {
				lost++
			}
			if c.Source == "cli" && turn.State != "completed" {
				t.Errorf("turn %s of a command that nobody killed is %s", turn.ID, turn.State)
			}
		}
	}
	for id, state := range seen {
		if state == "running" || state == "queued" {
			t.Errorf("turn %s is %s in the end", id, state)
		}
	}
	for _, id := range answered {
		if seen[id] != "completed" {
			t.Errorf("turn %s, which was answered, is %q", id, seen[id])
		}
	}
	return len(seen), lost
}

// untouched looks for what became of the living server's.
func (s *server) untouched(t *testing.T, a *acknowledged) {
	t.Helper()
	for _, kind := range []struct {
		path string
		ids  []string
	}{{"/api/v1/sessions/", a.sessions}, {"/api/v1/executions/", a.executions}} {
		for _, id := range kind.ids {
			r, err := s.patiently(t.Context(), "GET", kind.path+id, nil)
			if err != nil {
				t.Fatal(err)
			}
			var row struct{ State string }
			if r.status == 200 {
				r.into(t, &row)
			}
			if row.State == "lost" || r.status != 200 && !a.doomed[id] {
				t.Errorf("%s%s of the living server: %d %s", kind.path, id, r.status, r.body)
			}
		}
	}
}

// TestScaleServersOnOneDatabase has two servers and a command work on one PostgreSQL, and kills one of the servers again and again. What it acknowledged is there
// afterwards, what it had not ended ends once, and nothing of the living one, or of the command, is touched.
func TestScaleServersOnOneDatabase(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(sdkModel)
	key, folder, cluster := testKey(t), t.TempDir(), pgtest.New(t)
	env := append([]string{"COVE_DATABASE=" + cluster.Database(t), "OPENAI_BASE_URL=" + upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted"}, crowd...)
	rounds, users := cycles(t, 2, 20), cycles(t, 1, 2)
	longest := time.Duration(min(rounds, 4)) * time.Second // between the first work and the kill, which may come at any moment
	living, kept := startServer(t, "", key, env...), newAcknowledged()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	worked, asked, commands := living.burden(ctx, users, kept), living.questions(ctx), asks(ctx, t, env)

	var answered []string
	var sessions, executions, files int
	mortal := startServer(t, folder, key, env...)
	for round := range rounds {
		a := newAcknowledged()
		dying, end := context.WithCancel(t.Context())
		wait, turns := mortal.burden(dying, users, a), mortal.questions(dying)
		a.await(t, 4)
		time.Sleep(rand.N(longest))
		mortal.kill()
		end()
		wait()
		answered = append(answered, turns()...)
		if round%2 == 0 {
			living.ends(t, a.executions) // before the killed one is back
		}
		mortal = startServer(t, folder, key, env...)
		mortal.check(t, a)
		mortal.revive(t, a)
		n, e, f := a.count()
		sessions, executions, files = sessions+n, executions+e, files+f
		t.Logf("killed: %d sessions, %d executions, %d files", n, e, f)
	}
	cancel()
	worked()
	answered = slices.Concat(answered, asked())
	n := commands()
	living.check(t, kept)
	living.untouched(t, kept)
	turns, lost := living.whole(t, answered)
	told := 0
	for _, c := range living.all(t, "/api/v1/conversations") {
		if c.Source == "cli" {
			told++
		}
	}
	if told < n {
		t.Errorf("%d of %d commands are in the history", told, n)
	}
	s, e, f := kept.count()
	t.Logf("%s", fmt.Sprintf("%d kills: %d sessions, %d executions, %d files and %d turns of the killed and the living were acknowledged and found; ", rounds, sessions, executions, files, len(answered))+
		fmt.Sprintf("the living one's %d sessions, %d executions and %d files were not touched; of %d turns and all executions %d were lost, each once; %d commands", s, e, f, turns, lost, n))
	mortal.stop().ended(t, 0)
	living.stop().ended(t, 0)
}

// TestServerTakenForDead has a server stand still for longer than its lease, as one whose machine sleeps. The other one ends what it ran, and when it goes on it
// ends by itself, with its sessions saved. It takes most of a minute.
func TestServerTakenForDead(t *testing.T) {
	if cycles(t, 0, 1) == 0 {
		testneeds.RunsElsewhere(t, "make soak", "it takes long")
	}
	t.Parallel()
	key, folder, cluster := testKey(t), t.TempDir(), pgtest.New(t)
	env := append([]string{"COVE_DATABASE=" + cluster.Database(t)}, crowd...)
	living, still := startServer(t, "", key, env...), startServer(t, folder, key, env...)
	saved, busy := still.session(), still.session()
	if got := still.says(saved, "kept = 42; print(kept)"); got != "42\n" {
		t.Fatal(got)
	}
	var running struct{ ID string }
	still.must("POST", "/api/v1/sessions/"+busy+"/executions?background=true", map[string]any{"code": "import time; time.sleep(600)"}, &running)
	if err := still.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	living.ends(t, []string{running.ID})
	for id, want := range map[string]string{saved: "lost", busy: "lost"} {
		var row struct{ State, Reason string }
		if living.must("GET", "/api/v1/sessions/"+id, nil, &row); row.State != want || row.Reason == "" {
			t.Errorf("session %s is %+v", id, row)
		}
	}
	r, err := living.call(t.Context(), "POST", "/api/v1/sessions/"+saved+"/executions", map[string]any{"code": "1"})
	if err != nil || r.status != 503 || r.code() != "session_elsewhere" {
		t.Errorf("the other server answers %d %s, %v", r.status, r.body, err)
	}
	if err := still.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if end := still.wait(); end.code == 0 || !strings.Contains(still.log.String(), "owner_lost") && !strings.Contains(still.log.String(), "took this one for dead") {
		t.Errorf("it ended with %d:\n%s", end.code, still.log)
	}
	again := startServer(t, folder, key, env...)
	if got := again.says(saved, "print(kept)"); got != "42\n" {
		t.Errorf("the session says %q", got)
	}
	again.ends(t, []string{running.ID})
	again.stop().ended(t, 0)
	living.stop().ended(t, 0)
}
