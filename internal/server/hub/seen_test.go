package hub_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/telemetry"
	"cove/internal/llm/loop"
	"cove/internal/machine/sandbox"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/sessions/ondisk"
)

func newTelemetry(t testing.TB, ended func(telemetry.EndedSpan)) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(t.Context(), telemetry.Options{Ended: ended})
	if err != nil {
		t.Fatal(err)
	}
	return tel
}

func metrics(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// TestTheLifeOfASessionIsSeen in the numbers and in the traces of those who caused it.
func TestTheLifeOfASessionIsSeen(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	spans := map[string]string{} // name and session: trace
	tel := newTelemetry(t, func(s telemetry.EndedSpan) {
		mu.Lock()
		defer mu.Unlock()
		spans[s.Name+" "+s.Attrs["session"]] = s.Trace
	})
	l, who := newLife(t, func(o *hub.Options) { o.Telemetry = tel }), someone(auth.LocalProject)
	ctx, over := telemetry.Span(telemetry.With(t.Context(), tel), "test")
	defer over(nil)
	s, err := l.CreateSession(ctx, who, hub.NewSession{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.PauseSession(ctx, who, s.ID); err != nil {
		t.Fatal(err)
	}
	e, err := l.StartExecution(ctx, who, hub.NewExecution{Session: s.ID, Code: "say hello"})
	if err != nil {
		t.Fatal(err)
	}
	l.wait(who, e.ID)
	fork, err := l.ForkSession(ctx, who, s.ID, hub.NewSession{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.DeleteSession(ctx, who, s.ID); err != nil {
		t.Fatal(err)
	}
	got := metrics(t, tel)
	for _, want := range []string{
		`cove_sessions_total{change="created"} 1`, `cove_sessions_total{change="paused"} 2`, // by the request, and for the fork
		`cove_sessions_total{change="resumed"} 1`, `cove_sessions_total{change="forked"} 1`, `cove_sessions_total{change="deleted"} 1`,
		`cove_sessions_total{change="lost"} 0`, `cove_stage_seconds_count{stage="resume"} 1`, `cove_stage_seconds_count{stage="pause"} 2`,
		`cove_stage_seconds_count{stage="fork"} 1`, `cove_executions_total{outcome="ok"} 1`, "cove_sessions_live 0",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"claim " + s.ID, "pause " + s.ID, "resume " + s.ID, "execution " + s.ID, "fork " + fork.ID} {
		if spans[want] != telemetry.TraceID(ctx) {
			t.Errorf("the span %q is not in the trace of who asked for it: %v", want, spans)
		}
	}
}

// TestWhatARestartLosesIsSeen in the numbers of the server that finds it.
func TestWhatARestartLosesIsSeen(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s := l.session(who)
	e := hub.Execution{ID: "exe_killed", Project: who.Project, Session: s.ID, State: hub.ExecutionRunning, Created: s.Created}
	if err := l.store.AddExecution(t.Context(), e); err != nil { // as a killed server leaves it
		t.Fatal(err)
	}
	if err := l.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	tel := newTelemetry(t, nil)
	lifeIn(t, l.dir, openStore(t, l.dir), func(o *hub.Options) { o.Telemetry = tel })
	if got := metrics(t, tel); !strings.Contains(got, `cove_executions_total{outcome="lost"} 1`+"\n") {
		t.Error("the lost execution was not counted")
	}
}

// TestAnIdempotencyKeyOutlivesTheServer: the same request to the next server begins nothing.
func TestAnIdempotencyKeyOutlivesTheServer(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, words("Once."))
	s := l.session(who)
	n := hub.NewExecution{Session: s.ID, Code: "say hello", Once: "word"}
	e, err := l.StartExecution(t.Context(), who, n)
	if err != nil {
		t.Fatal(err)
	}
	l.wait(who, e.ID)
	ask := hub.NewTurn{Input: input("go"), NoPython: true, Once: "word"} // another kind of request
	turn, err := l.StartTurn(t.Context(), who, ask)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := lifeIn(t, l.dir, openStore(t, l.dir), func(o *hub.Options) { o.Models = &voice{t: t} })
	for range 2 {
		if again, err := next.StartExecution(t.Context(), who, n); err != nil || again.ID != e.ID || again.State != "ok" {
			t.Errorf("the repeated request returned %+v %v, not %s", again, err, e.ID)
		}
		if again, err := next.StartTurn(t.Context(), who, ask); err != nil || again.ID != turn.ID {
			t.Errorf("the repeated request returned %+v %v, not %s", again, err, turn.ID)
		}
	}
	n.Code = "say something else"
	_, err = next.StartExecution(t.Context(), who, n)
	fails(t, err, "idempotency_mismatch")
	other := who
	other.User = "usr_other"
	n.Session = next.session(other).ID
	if _, err := next.StartExecution(t.Context(), other, n); err != nil {
		t.Errorf("another user's word is not his own: %v", err)
	}
	if list, err := next.Executions(t.Context(), who, hub.ExecutionFilter{Session: s.ID}, hub.Page{}); err != nil || len(list.Items) != 1 {
		t.Errorf("there are %d executions, %v", len(list.Items), err)
	}
}

// BenchmarkRoundTrip is an execution of 20 events from its request to the client's having its end, on a real store: seen by nobody, by the metrics,
// and by the metrics and a trace. The three take turns, so that a busy machine is as busy for each, and their medians are told.
func BenchmarkRoundTrip(b *testing.B) {
	ways := []struct {
		name string
		tel  *telemetry.Telemetry
		took []time.Duration
		trip func()
	}{{name: "unseen"}, {name: "metrics", tel: newTelemetry(b, nil)}, {name: "traced", tel: newTelemetry(b, func(telemetry.EndedSpan) {})}}
	for n := range ways {
		ways[n].trip = tripper(b, ways[n].tel)
	}
	for b.Loop() {
		for n := range ways {
			began := time.Now()
			ways[n].trip()
			ways[n].took = append(ways[n].took, time.Since(began))
		}
	}
	for _, w := range ways {
		slices.Sort(w.took)
		b.ReportMetric(float64(w.took[len(w.took)/2].Microseconds()), "µs-"+w.name)
	}
}

// tripper returns what has one execution run to its end.
func tripper(b *testing.B, tel *telemetry.Telemetry) func() {
	b.Helper()
	db, err := store.Open(b.Context(), store.Options{Database: filepath.Join(b.TempDir(), "cove.db")})
	if err != nil {
		b.Fatal(err)
	}
	machine := &toys{}
	h, err := hub.New(hub.Options{
		Limits: hub.DefaultLimits(), Turns: loop.DefaultLimits(),
		Store: db, Sessions: ondisk.Store{Dir: filepath.Join(b.TempDir(), "sessions")}, Prepare: machine.prepare, Audit: db, Contents: b.TempDir(), Telemetry: tel,
		Base: ondisk.Base{Engine: "toys", Packages: "standard", Limits: ondisk.LimitsOf(sandbox.Limits{})},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := h.Drain(context.Background()); err != nil {
			b.Error(err)
		}
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	who, ctx := someone(auth.LocalProject), telemetry.With(b.Context(), tel)
	s, err := h.CreateSession(ctx, who, hub.NewSession{})
	if err != nil {
		b.Fatal(err)
	}
	return func() {
		ctx, over := telemetry.Span(ctx, "request")
		defer over(nil)
		e, err := h.StartExecution(ctx, who, hub.NewExecution{Session: s.ID, Code: "count 20"})
		if err != nil {
			b.Fatal(err)
		}
		events, err := h.Follow(ctx, who, e.ID, 0)
		if err != nil {
			b.Fatal(err)
		}
		for _, err := range events {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
