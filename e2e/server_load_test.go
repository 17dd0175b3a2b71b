package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
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
	m.add(step, time.Since(start))
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

func (m *timings) add(step string, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.steps == nil {
		m.steps = map[string][]time.Duration{}
	}
	m.steps[step] = append(m.steps[step], took)
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

// fault is an answer of a living server that nobody should get.
type fault string

func (f fault) Error() string { return string(f) }

// later waits as long as an answer asks for, when it is one that asks to come back.
func later(ctx context.Context, status int, header http.Header) (again bool, err error) {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return false, nil
	}
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil {
		return false, fault(fmt.Sprintf("%d without Retry-After", status))
	}
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// patiently is call for a client that comes back when the server asks it to.
func (s *server) patiently(ctx context.Context, method, path string, body any) (reply, error) {
	for {
		r, err := s.call(ctx, method, path, body)
		if err != nil {
			return r, err
		}
		if again, err := later(ctx, r.status, r.header); err != nil || !again {
			return r, err
		}
	}
}

// expect makes a request whose answer must have a status of 2xx in the end.
func (s *server) expect(ctx context.Context, method, path string, body any) (reply, error) {
	r, err := s.patiently(ctx, method, path, body)
	if err == nil && r.status/100 != 2 {
		err = fault(fmt.Sprintf("%d %s", r.status, r.body))
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w", method, path, err)
	}
	return r, err
}

// cell runs code and notes the execution. It comes back to a stream that breaks off, and must find one end.
func (s *server) cell(ctx context.Context, a *acknowledged, session, code, prints string) error {
	var all []event
	method, path, body := "POST", "/api/v1/sessions/"+session+"/executions?stream=true", any(map[string]any{"code": code})
	for outcome(all) == "" {
		response, err := s.request(ctx, method, path, body)
		if err != nil {
			return err
		}
		if response.StatusCode/100 != 2 {
			text, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			again, err := later(ctx, response.StatusCode, response.Header)
			if err != nil {
				return fmt.Errorf("%s: %w: %s", path, err, text)
			}
			if !again {
				return fault(fmt.Sprintf("%s: %d %s", path, response.StatusCode, text))
			}
			continue
		}
		more, err := events(response.Body, nil)
		_ = response.Body.Close()
		if method == "POST" && len(more) > 0 {
			made, _ := more[0].data["execution"].(map[string]any)
			id := fmt.Sprint(made["id"])
			a.note(func() { a.executions = append(a.executions, id) })
			method, path, body = "GET", "/api/v1/executions/"+id+"/events", nil
		}
		if err != nil {
			return err
		}
		for _, e := range more {
			if e.id != "" {
				all = append(all, e)
			}
		}
		if len(all) > 0 {
			path, _, _ = strings.Cut(path, "?")
			path += "?after=" + all[len(all)-1].id
		}
	}
	if printed(all) != prints || outcome(all) != "ok" {
		return fault(fmt.Sprintf("%q ended as %s and printed %q, want %q: %v", code, outcome(all), printed(all), prints, all))
	}
	return nil
}

// uploaded is where a user's file goes in the workspace.
const uploaded = "/files/data/random.bin"

// user does what a user of an application does, from a new session to its end.
func (s *server) user(ctx context.Context, m *timings, a *acknowledged) error {
	var made, stored struct{ ID string }
	err := m.time("create", func() error {
		r, err := s.expect(ctx, "POST", "/api/v1/sessions", map[string]any{})
		if err == nil {
			r.into(s.t, &made)
		}
		return err
	})
	if err != nil {
		return err
	}
	a.note(func() { a.sessions = append(a.sessions, made.ID) })
	for n, cell := range cells {
		step := "execute"
		if n == 0 {
			step = "first"
		}
		if err := m.time(step, func() error { return s.cell(ctx, a, made.ID, cell.code, cell.prints) }); err != nil {
			return err
		}
	}
	data := make([]byte, 1<<20)
	_, _ = rand.Read(data)
	path := "/api/v1/sessions/" + made.ID + uploaded
	if err := m.time("upload", func() error { _, err := s.expect(ctx, "PUT", path, data); return err }); err != nil {
		return err
	}
	a.note(func() { a.uploads[made.ID] = data })
	err = m.time("download", func() error {
		r, err := s.expect(ctx, "GET", path, nil)
		if err == nil && !bytes.Equal(r.body, data) {
			err = fault(fmt.Sprintf("%d bytes came back that are not those that were sent", len(r.body)))
		}
		return err
	})
	if err != nil {
		return err
	}
	err = m.time("store", func() error {
		r, err := s.expect(ctx, "POST", "/api/v1/files?name=random.bin", data)
		if err == nil {
			r.into(s.t, &stored)
		}
		return err
	})
	if err != nil {
		return err
	}
	a.note(func() { a.files[stored.ID], a.doomed[made.ID] = data, true })
	err = m.time("delete", func() error { _, err := s.expect(ctx, "DELETE", "/api/v1/sessions/"+made.ID, nil); return err })
	if err == nil {
		a.note(func() { a.deleted[made.ID] = true })
	}
	return err
}

// TestScaleUsersAtOnce has many users work at once: all of them succeed, and nothing is left of them.
func TestScaleUsersAtOnce(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t), "COVE_PACKAGES=standard")
	users := cycles(t, 6, 100)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(users)*10*time.Second+patience)
	defer cancel()
	var m timings
	var all sync.WaitGroup
	start := time.Now()
	for range users {
		all.Go(func() {
			if err := m.time("all", func() error { return s.user(ctx, &m, nil) }); err != nil {
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
	testneeds.FullTier(t)
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
