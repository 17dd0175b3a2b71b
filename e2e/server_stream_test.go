package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// TestEventsArriveSoon measures how long events take from the code's own clock to a client, and checks that all of them arrive in their order.
func TestEventsArriveSoon(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t))
	id := s.session()
	const lines = 200
	all, err := s.execute(t.Context(), id, fmt.Sprintf("import time\nfor i in range(%d):\n    print(i, time.time_ns(), flush=True)\n    time.sleep(0.01)", lines))
	if err != nil || outcome(all) != "ok" {
		t.Fatalf("%v %v", err, all)
	}
	var late []time.Duration
	next, begun := 0, ""
	for _, e := range all {
		if e.data["type"] != "stream" {
			continue
		}
		for line := range strings.Lines(begun + e.data["text"].(string)) {
			if begun = ""; !strings.HasSuffix(line, "\n") {
				begun = line // print writes the end of its line by itself
				continue
			}
			var n int
			var written int64
			if _, err := fmt.Sscan(line, &n, &written); err != nil || n != next {
				t.Fatalf("line %d is %q", next, line)
			}
			next++
			late = append(late, e.at.Sub(time.Unix(0, written)))
		}
	}
	if next != lines {
		t.Fatalf("%d lines came, not %d", next, lines)
	}
	slices.Sort(late)
	t.Logf("from print to the client: p50 %s, p95 %s, p99 %s", late[lines/2], late[lines*95/100], late[lines*99/100])
	s.stop().ended(t, 0)
}

// TestComingBack leaves a stream again and again and comes back with the id of the last event: each event is seen once.
func TestComingBack(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", testKey(t))
	id := s.session()
	var e struct{ ID string }
	s.must("POST", "/api/v1/sessions/"+id+"/executions?background=true",
		map[string]any{"code": "import time\nfor i in range(300):\n    print(i, flush=True)\n    time.sleep(0.005)"}, &e)
	var seen []event
	visits := 0
	for last := ""; outcome(seen) == ""; visits++ {
		if visits > 1000 {
			t.Fatal("the end never came")
		}
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.base+"/api/v1/executions/"+e.ID+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.key)
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		response, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		left := 1 + rand.N(40)
		some, err := events(response.Body, func(event) bool { left--; return left == 0 })
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if len(some) > 0 {
			last = some[len(some)-1].id
		}
		seen = append(seen, some...)
	}
	var want strings.Builder
	for i := range 300 {
		fmt.Fprintln(&want, i)
	}
	if got := printed(seen); got != want.String() {
		t.Errorf("after %d visits: %q", visits, got)
	}
	previous := int64(0)
	for _, e := range seen {
		n, err := strconv.ParseInt(e.id, 10, 64)
		if err != nil || n <= previous {
			t.Errorf("event %q after %d", e.id, previous)
		}
		previous = n
	}
	s.stop().ended(t, 0)
}

// TestReaderThatNeverReads follows a flood of output without reading: the code is not slowed by it, and the server does not keep the flood in memory.
func TestReaderThatNeverReads(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t))
	id := s.session()
	const flood = "import sys\nfor i in range(120):\n    sys.stdout.write('x' * 100_000 + '\\n')\nprint('end')"
	alone := time.Now()
	if all, err := s.execute(t.Context(), id, flood); err != nil || outcome(all) != "ok" {
		t.Fatalf("%v, %q", err, outcome(all))
	}
	took := time.Since(alone)
	followed := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var e struct{ ID string }
	s.must("POST", "/api/v1/sessions/"+id+"/executions?background=true", map[string]any{"code": flood}, &e)
	for range 20 {
		response, err := s.request(ctx, "GET", "/api/v1/executions/"+e.ID+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
	}
	deadline := time.Now().Add(patience)
	for {
		var got struct{ State string }
		s.must("GET", "/api/v1/executions/"+e.ID, nil, &got)
		if got.State == "ok" {
			t.Logf("the flood took %s alone and %s with readers that do not read", took, time.Since(followed))
			break
		}
		if time.Now().After(deadline) || got.State != "running" {
			t.Fatalf("the execution is %s; alone it took %s", got.State, took)
		}
		time.Sleep(50 * time.Millisecond)
	}
	cancel()
	s.stop().ended(t, 0)
}
