package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"cove/internal/server/store/pgtest"
	"cove/internal/testkit/testneeds"
)

// acknowledged is what a server said that it had done, which must be there whatever becomes of the server. A nil one takes nothing down.
type acknowledged struct {
	mu         sync.Mutex
	sessions   []string
	executions []string
	files      map[string][]byte // stored files
	uploads    map[string][]byte // what the workspaces of sessions got
	deleted    map[string]bool   // sessions whose deletion was acknowledged
	doomed     map[string]bool   // sessions whose deletion was asked for
}

func newAcknowledged() *acknowledged {
	return &acknowledged{files: map[string][]byte{}, uploads: map[string][]byte{}, deleted: map[string]bool{}, doomed: map[string]bool{}}
}

func (a *acknowledged) note(f func()) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// await waits until n executions were acknowledged.
func (a *acknowledged) await(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		done := false
		a.note(func() { done = len(a.executions) >= n })
		if done {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the server acknowledges nothing")
		}
	}
}

// count says how much was acknowledged.
func (a *acknowledged) count() (sessions, executions, files int) {
	return len(a.sessions), len(a.executions), len(a.files) + len(a.uploads)
}

// crowd are the settings of a server whose users all have the same key.
var crowd = []string{"COVE_PACKAGES=standard", "COVE_REQUESTS_PER_SECOND=0", "COVE_PROJECT_REQUESTS_PER_SECOND=0"}

// rest is between two things that one user does. The quick round has other tests beside it, and looks at everything that was done.
func rest(ctx context.Context, t *testing.T) {
	select {
	case <-time.After(time.Duration(cycles(t, 500, 0)) * time.Millisecond):
	case <-ctx.Done():
	}
}

// burden has users work with a server until ctx ends or the server is gone. What goes wrong while the server lives is a fault.
func (s *server) burden(ctx context.Context, users int, a *acknowledged) (wait func()) {
	var all sync.WaitGroup
	for range users {
		all.Go(func() {
			var err error
			for err == nil && ctx.Err() == nil {
				err = s.user(ctx, &timings{}, a)
				rest(ctx, s.t)
			}
			var f fault
			if err != nil && ctx.Err() == nil && !s.killed.Load() || errors.As(err, &f) {
				s.t.Error(err)
			}
		})
	}
	return all.Wait
}

// check looks for everything that was acknowledged.
func (s *server) check(t *testing.T, a *acknowledged) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, id := range a.executions {
		r, err := s.patiently(ctx, "GET", "/api/v1/executions/"+id+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		all, err := events(bytes.NewReader(r.body), nil)
		if how := outcome(all); err != nil || how == "" || how == "two ends" {
			t.Errorf("execution %s has the end %q, %v: %d %v", id, how, err, r.status, all)
		}
		if r, err = s.expect(ctx, "GET", "/api/v1/executions/"+id, nil); err != nil {
			t.Fatal(err)
		}
		var e struct{ State string }
		r.into(t, &e)
		if e.State == "queued" || e.State == "running" || e.State == "" {
			t.Errorf("execution %s is %q behind its end", id, e.State)
		}
	}
	for id, content := range a.files {
		if r, err := s.patiently(ctx, "GET", "/api/v1/files/"+id+"/content", nil); err != nil || !bytes.Equal(r.body, content) {
			t.Errorf("file %s: %v, %d %q", id, err, r.status, r.body)
		}
	}
	for _, id := range a.sessions {
		r, err := s.patiently(ctx, "GET", "/api/v1/sessions/"+id, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ State, Reason string }
		r.into(t, &got)
		switch {
		case a.deleted[id]:
			if r.status != 404 && got.State != "deleted" {
				t.Errorf("session %s was deleted and is %s", id, got.State)
			}
		case a.doomed[id] && r.status == 404:
		case r.status != 200 || got.State == "lost" && got.Reason == "":
			t.Errorf("session %s: %d %s", id, r.status, r.body)
		case a.uploads[id] != nil:
			if r, err := s.patiently(ctx, "GET", "/api/v1/sessions/"+id+uploaded, nil); err != nil || !bytes.Equal(r.body, a.uploads[id]) {
				t.Errorf("session %s is %s without what was uploaded: %v, %d, %d bytes", id, got.State, err, r.status, len(r.body))
			}
		}
	}
}

// TestServerKilled kills the server again and again while it is used. What it acknowledged is there afterwards.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	dir, key := t.TempDir(), testKey(t)
	rounds, users := cycles(t, 2, 50), cycles(t, 4, 100)
	var sessions, executions, files int
	for range rounds {
		a := newAcknowledged()
		s := startServer(t, dir, key, crowd...)
		ctx, cancel := context.WithCancel(t.Context())
		wait := s.burden(ctx, users, a)
		a.await(t, 4)
		time.Sleep(rand.N(time.Duration(users) * 400 * time.Millisecond)) // about as long as each user needs for one session
		s.kill()
		cancel()
		wait()
		again := startServer(t, dir, key, crowd...)
		again.check(t, a)
		again.revive(t, a)
		for _, id := range a.sessions {
			if !a.deleted[id] {
				if r, err := again.patiently(t.Context(), "DELETE", "/api/v1/sessions/"+id, nil); err != nil || r.status != 404 && r.status/100 != 2 {
					t.Errorf("session %s is not deleted: %v, %d %s", id, err, r.status, r.body)
				}
			}
		}
		again.stop().ended(t, 0)
		n, e, f := a.count()
		sessions, executions, files = sessions+n, executions+e, files+f
		t.Logf("%d sessions, %d executions, %d files", n, e, f)
	}
	t.Logf("%d kills under %d users: %d sessions, %d executions and %d files were acknowledged and found", rounds, users, sessions, executions, files)
}

// revive uses some of the sessions that were not deleted.
func (s *server) revive(t *testing.T, a *acknowledged) {
	t.Helper()
	var all sync.WaitGroup
	left := 4
	for _, n := range rand.Perm(len(a.sessions)) {
		if id := a.sessions[n]; !a.doomed[id] && left > 0 {
			left--
			all.Go(func() {
				if err := s.cell(t.Context(), nil, id, "print('alive')", "alive\n"); err != nil {
					t.Errorf("session %s cannot be used: %v", id, err)
				}
			})
		}
	}
	all.Wait()
}

// TestServerOnPostgreSQL works on a database that is killed under load and comes back: what was acknowledged is there, and every execution has one end.
func TestServerOnPostgreSQL(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	cluster := pgtest.New(t)
	s := startServer(t, "", testKey(t), append([]string{"COVE_DATABASE=" + cluster.Database(t)}, crowd...)...)
	a := newAcknowledged()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rounds, users := cycles(t, 2, 10), cycles(t, 3, 100)
	wait := s.burden(ctx, users, a)
	for round := range rounds {
		a.await(t, 2*users*(round+1))
		cluster.Stop(t)
		time.Sleep(time.Second + rand.N(2*time.Second))
		cluster.Start(t)
	}
	a.await(t, 2*users*(rounds+1))
	cancel()
	wait()
	s.ready(t)
	s.check(t, a)
	sessions, executions, files := a.count()
	t.Logf("%d stops under %d users: %d sessions, %d executions and %d files were acknowledged and found", rounds, users, sessions, executions, files)
	s.stop().ended(t, 0)
}

// ready waits until the server says that it can serve.
func (s *server) ready(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		r, err := s.call(t.Context(), "GET", "/api/v1/health/ready", nil)
		if err == nil && r.status == 200 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not get ready: %v %d %s", err, r.status, r.body)
		}
	}
}
