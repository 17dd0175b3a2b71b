package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// cells are what each user runs, and what each cell prints.
var cells = []struct{ code, prints string }{
	{"import pandas as pd; df = pd.DataFrame({'n': range(1000)}); print(df.n.sum())", "499500\n"},
	{"df['even'] = df.n % 2 == 0; print(int(df.even.sum()))", "500\n"},
	{"print(df.groupby('even').n.mean().tolist())", "[500.0, 499.0]\n"},
	{"df.to_csv('numbers.csv', index=False); print(len(open('numbers.csv').read()))", "9397\n"},
	{"print(pd.read_csv('numbers.csv').equals(df))", "True\n"},
}

// timings are how long the steps of many users took.
type timings struct {
	mu    sync.Mutex
	steps map[string][]time.Duration
}

func (m *timings) time(step string, f func() error) error {
	start := time.Now()
	err := f()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.steps == nil {
		m.steps = map[string][]time.Duration{}
	}
	m.steps[step] = append(m.steps[step], time.Since(start))
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

// table is the steps with their percentiles, for people.
func (m *timings) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s %6s %10s %10s %10s\n", "step", "n", "p50", "p95", "p99")
	for _, step := range slices.Sorted(maps.Keys(m.steps)) {
		all := slices.Sorted(slices.Values(m.steps[step]))
		at := func(p float64) time.Duration {
			return all[min(int(p*float64(len(all))), len(all)-1)].Round(time.Millisecond)
		}
		fmt.Fprintf(&b, "%-10s %6d %10s %10s %10s\n", step, len(all), at(0.50), at(0.95), at(0.99))
	}
	return b.String()
}

// expect makes a request whose answer must have a status of 2xx. A server that says when to come back is obeyed.
func (s *server) expect(ctx context.Context, method, path string, body any) (reply, error) {
	for {
		r, err := s.call(ctx, method, path, body)
		switch {
		case err != nil:
			return r, err
		case r.status/100 == 2:
			return r, nil
		case r.status == http.StatusTooManyRequests || r.status == http.StatusServiceUnavailable:
			wait, err := strconv.Atoi(r.header.Get("Retry-After"))
			if err != nil {
				return r, fmt.Errorf("%s %s: %d without Retry-After: %s", method, path, r.status, r.body)
			}
			select {
			case <-time.After(time.Duration(wait) * time.Second):
			case <-ctx.Done():
				return r, ctx.Err()
			}
		default:
			return r, refusal(fmt.Sprintf("%s %s: %d %s", method, path, r.status, r.body))
		}
	}
}

// refusal is an answer of a living server that nobody should get.
type refusal string

func (r refusal) Error() string { return string(r) }

// user does what a user of an application does, from a new session to its end.
func (s *server) user(ctx context.Context, m *timings) error {
	var id string
	err := m.time("create", func() error {
		r, err := s.expect(ctx, "POST", "/api/v1/sessions", map[string]any{})
		if err == nil {
			var made struct{ ID string }
			r.into(s.t, &made)
			id = made.ID
		}
		return err
	})
	if err != nil {
		return err
	}
	for n, cell := range cells {
		step := "execute"
		if n == 0 {
			step = "first"
		}
		err := m.time(step, func() error {
			all, err := s.execute(ctx, id, cell.code)
			if err == nil && (printed(all) != cell.prints || outcome(all) != "ok") {
				err = fmt.Errorf("cell %d ended as %s and printed %q, want %q", n, outcome(all), printed(all), cell.prints)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	data := make([]byte, 1<<20)
	_, _ = rand.Read(data)
	path := "/api/v1/sessions/" + id + "/files/data/random.bin"
	if err := m.time("upload", func() error { _, err := s.expect(ctx, "PUT", path, data); return err }); err != nil {
		return err
	}
	err = m.time("download", func() error {
		r, err := s.expect(ctx, "GET", path, nil)
		if err == nil && !bytes.Equal(r.body, data) {
			err = fmt.Errorf("%d bytes came back that are not those that were sent", len(r.body))
		}
		return err
	})
	if err != nil {
		return err
	}
	return m.time("delete", func() error { _, err := s.expect(ctx, "DELETE", "/api/v1/sessions/"+id, nil); return err })
}

// TestUsersAtOnce has many users work at once: all of them succeed, and nothing is left of them.
func TestUsersAtOnce(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", testKey(t), "COVE_PACKAGES=standard")
	users := cycles(t, 6, 100)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(users)*10*time.Second+patience)
	defer cancel()
	var m timings
	var all sync.WaitGroup
	start := time.Now()
	for range users {
		all.Go(func() {
			if err := m.time("all", func() error { return s.user(ctx, &m) }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	t.Logf("%d users in %s\n%s", users, time.Since(start).Round(time.Second), m.table())
	var left struct{ Items []any }
	s.must("GET", "/api/v1/sessions", nil, &left)
	if len(left.Items) > 0 {
		t.Errorf("sessions are left: %v", left.Items)
	}
	s.stop().ended(t, 0)
}

// TestOverload asks for more than the server may hold: what is too much is refused with a time to come back, and nothing hangs.
func TestOverload(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", testKey(t), "COVE_MAX_EXECUTIONS=1", "COVE_MAX_QUEUE=2")
	id := s.session()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var mu sync.Mutex
	codes := map[string]int{}
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			r, err := s.call(ctx, "POST", "/api/v1/sessions/"+id+"/executions?background=true", map[string]any{"code": "import time; time.sleep(1.5)"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case r.status/100 == 2:
				codes["taken"]++
			case r.status == http.StatusTooManyRequests && r.header.Get("Retry-After") != "":
				codes[r.code()]++
			default:
				t.Errorf("%d %v %s", r.status, r.header, r.body)
			}
		})
	}
	all.Wait()
	if codes["taken"] < 3 || codes["queue_full"] == 0 {
		t.Errorf("%v, want some taken and the rest refused because the queue is full", codes)
	}
	s.stop().ended(t, 0)
}
