package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"cove/internal/store/pgtest"
)

// acknowledged is what a server said that it had done, which must be there whatever becomes of the server.
type acknowledged struct {
	mu         sync.Mutex
	sessions   []string
	executions []string
	files      map[string][]byte // stored files
	deleted    map[string]bool   // sessions whose deletion was acknowledged
	doomed     map[string]bool   // sessions whose deletion was asked for
}

func newAcknowledged() *acknowledged {
	return &acknowledged{files: map[string][]byte{}, deleted: map[string]bool{}, doomed: map[string]bool{}}
}

func (a *acknowledged) note(f func()) {
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

// gone says whether a request failed because the server was killed; that it answered with a problem is a fault.
func (s *server) gone(err error) bool {
	var refused refusal
	if errors.As(err, &refused) {
		s.t.Error(err)
	}
	return err != nil
}

// burden works with a server until ctx ends, and notes what it was acknowledged. Requests fail when the server is killed.
func (s *server) burden(ctx context.Context, a *acknowledged) {
	for ctx.Err() == nil {
		var made struct{ ID string }
		r, err := s.expect(ctx, "POST", "/api/v1/sessions", map[string]any{})
		if s.gone(err) {
			return
		}
		r.into(s.t, &made)
		a.note(func() { a.sessions = append(a.sessions, made.ID) })
		for range 3 {
			r, err := s.expect(ctx, "POST", "/api/v1/sessions/"+made.ID+"/executions?background=true",
				map[string]any{"code": "import time\nfor i in range(20):\n    print(i)\n    time.sleep(0.01)"})
			if s.gone(err) {
				return
			}
			var e struct{ ID string }
			r.into(s.t, &e)
			a.note(func() { a.executions = append(a.executions, e.ID) })
		}
		content := fmt.Appendf(nil, "content of %s", made.ID)
		if r, err = s.expect(ctx, "POST", "/api/v1/files?name=note.txt", content); s.gone(err) {
			return
		}
		var f struct{ ID string }
		r.into(s.t, &f)
		a.note(func() { a.files[f.ID] = content })
		if rand.N(2) == 0 {
			a.note(func() { a.doomed[made.ID] = true })
			if _, err := s.expect(ctx, "DELETE", "/api/v1/sessions/"+made.ID, nil); s.gone(err) {
				return
			}
			a.note(func() { a.deleted[made.ID] = true })
		}
	}
}

// check looks for everything that was acknowledged.
func (s *server) check(t *testing.T, a *acknowledged) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, id := range a.executions {
		response, err := s.request(ctx, "GET", "/api/v1/executions/"+id+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		all, err := events(response.Body, nil)
		_ = response.Body.Close()
		if how := outcome(all); err != nil || how == "" || how == "two ends" {
			t.Errorf("execution %s has the end %q, %v: %d %v", id, how, err, response.StatusCode, all)
		}
		var e struct{ State string }
		s.must("GET", "/api/v1/executions/"+id, nil, &e)
		if e.State == "queued" || e.State == "running" || e.State == "" {
			t.Errorf("execution %s is %q behind its end", id, e.State)
		}
	}
	for id, content := range a.files {
		if r, err := s.call(ctx, "GET", "/api/v1/files/"+id+"/content", nil); err != nil || !bytes.Equal(r.body, content) {
			t.Errorf("file %s: %v, %d %q", id, err, r.status, r.body)
		}
	}
	for _, id := range a.sessions {
		r, err := s.call(ctx, "GET", "/api/v1/sessions/"+id, nil)
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
		}
	}
}

// TestServerKilled kills the server again and again while it is used. What it acknowledged is there afterwards.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	dir, key := t.TempDir(), testKey(t)
	rounds := cycles(t, 2, 50)
	a := newAcknowledged()
	counted := [3]int{}
	for range rounds {
		s := startServer(t, dir, key)
		ctx, cancel := context.WithCancel(t.Context())
		var users sync.WaitGroup
		for range 4 {
			users.Go(func() { s.burden(ctx, a) })
		}
		a.await(t, 4)
		time.Sleep(rand.N(2 * time.Second))
		s.kill()
		cancel()
		users.Wait()
		again := startServer(t, dir, key)
		again.check(t, a)
		// One that was not deleted can be used.
		for _, id := range a.sessions {
			if !a.doomed[id] {
				all, err := again.execute(t.Context(), id, "print('alive')")
				if err != nil || printed(all) != "alive\n" {
					t.Errorf("session %s cannot be used: %v %v", id, err, all)
				}
				break
			}
		}
		for _, id := range a.sessions {
			if !a.deleted[id] {
				_, _ = again.call(t.Context(), "DELETE", "/api/v1/sessions/"+id, nil)
			}
		}
		again.stop().ended(t, 0)
		counted[0], counted[1], counted[2] = counted[0]+len(a.sessions), counted[1]+len(a.executions), counted[2]+len(a.files)
		a = newAcknowledged()
	}
	t.Logf("%d kills: %d sessions, %d executions and %d files were acknowledged and found", rounds, counted[0], counted[1], counted[2])
}

// TestServerOnPostgreSQL works on a database that is killed under load and comes back: what was acknowledged is there, and every execution has one end.
func TestServerOnPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t)
	s := startServer(t, "", testKey(t), "COVE_DATABASE="+cluster.Database(t))
	a := newAcknowledged()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var users sync.WaitGroup
	for range 3 {
		users.Go(func() {
			for ctx.Err() == nil {
				s.burden(ctx, a)
			}
		})
	}
	for round := range cycles(t, 2, 10) {
		a.await(t, 4*(round+1))
		cluster.Stop(t)
		time.Sleep(time.Second + rand.N(2*time.Second))
		cluster.Start(t)
	}
	a.await(t, 4*(cycles(t, 2, 10)+1))
	cancel()
	users.Wait()
	s.ready(t)
	s.check(t, a)
	t.Logf("%d sessions, %d executions and %d files were acknowledged and found", len(a.sessions), len(a.executions), len(a.files))
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
