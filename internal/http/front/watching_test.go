package front_test

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"cove/internal/core/telemetry"
	"cove/internal/http/api"
	"cove/internal/http/front"
	"cove/internal/http/protocol"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/machine/sandbox"
	localengine "cove/internal/machine/sandbox/local"
	"cove/internal/machine/snapshot"
	"cove/internal/python/pyenv"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/sessions/ondisk"
	"cove/internal/sessions/pool"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

// scripted is a model that is reached at the second attempt, runs code and answers then.
type scripted struct{}

func (scripted) Name() string                                        { return "test/scripted" }
func (scripted) Capabilities() model.Capabilities                    { return model.Capabilities{Tools: true} }
func (m scripted) Open(context.Context, string) (model.Model, error) { return m, nil }
func (scripted) List(context.Context) (out []hub.ModelInfo, _ error) { return out, nil }
func (m scripted) code() string                                      { return `{"code":"print(6 * 7)"}` }
func (m scripted) usage() model.Usage                                { return model.Usage{InputTokens: 100, OutputTokens: 10} }
func (m scripted) call() model.ToolCall {
	return model.ToolCall{ID: "one", Name: "python", Arguments: m.code()}
}
func (m scripted) Stream(_ context.Context, r model.Request) iter.Seq2[model.Part, error] {
	parts := []model.Part{
		model.Retry{Attempt: 1, Reason: "busy"}, model.CallDelta{ID: "one", Name: "python", Arguments: m.code()},
		model.Finish{Reason: model.FinishCalls, Calls: []model.ToolCall{m.call()}, Usage: m.usage()},
	}
	if r.Messages[len(r.Messages)-1].Role == model.RoleTool {
		parts = []model.Part{model.TextDelta{Text: "It is 42."}, model.Finish{Reason: model.FinishStop, Usage: m.usage()}}
	}
	return func(yield func(model.Part, error) bool) {
		for _, p := range parts {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// stack is a server from HTTP to the kernel, on the engine local.
type stack struct {
	*rig
	stop  func()
	mu    sync.Mutex
	spans []telemetry.EndedSpan
}

func (w *stack) ended() []telemetry.EndedSpan {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.spans)
}

func newStack(t *testing.T) *stack {
	t.Helper()
	env := testneeds.Environment(t, pyenv.Standard)
	w := &stack{}
	tel, err := telemetry.New(t.Context(), telemetry.Options{Version: "1", Ended: func(s telemetry.EndedSpan) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.spans = append(w.spans, s)
	}})
	must(t, err)
	engine := localengine.New(localengine.Options{State: t.TempDir()})
	boxes := pool.New(pool.Options[*session.Live]{Make: func(ctx context.Context) (*session.Live, error) {
		return session.Open(ctx, session.Options{Engine: engine, Env: env})
	}})
	db, err := store.Open(t.Context(), store.Options{Database: filepath.Join(t.TempDir(), "cove.db")})
	must(t, err)
	log := &buffer{}
	logger := slog.New(telemetry.NewHandler(log, telemetry.LogOptions{Level: slog.LevelDebug, JSON: true}))
	limits := ondisk.LimitsOf(sandbox.Limits{})
	h, err := hub.New(hub.Options{
		Limits: hub.DefaultLimits(), Turns: loop.DefaultLimits(),
		Store: db, Audit: db, Log: logger, Telemetry: tel, Models: scripted{}, Sessions: ondisk.Store{Dir: filepath.Join(t.TempDir(), "sessions")},
		Contents: t.TempDir(), Base: ondisk.Base{Engine: "local", Packages: "standard", Limits: limits}, Unsaved: true,
		Prepare: func(context.Context, ondisk.Base) (*ondisk.Ground, error) {
			return &ondisk.Ground{
				Key: snapshot.Key{Engine: "local", Environment: "one", Guest: "1", Limits: limits.Limits}, Python: env.Version,
				Start: func(ctx context.Context, _ *snapshot.Snapshot, _ bool) (ondisk.Live, error) { return boxes.Claim(ctx) },
			}, nil
		},
	})
	must(t, err)
	must(t, h.Recover(telemetry.With(t.Context(), tel)))
	s, err := front.New(front.Options{
		Accounts: people(), Surfaces: []protocol.Surface{api.Surface(api.Options{Hub: h, Log: logger})}, Telemetry: tel, Log: logger, Limits: front.DefaultLimits(),
	})
	must(t, err)
	w.rig = &rig{Server: s, log: log, tel: tel}
	tel.Gauge("cove_sandboxes_ready", "Sandboxes that wait for a new session.", func() float64 { return float64(boxes.Ready()) })
	for _, name := range []string{"cove_sandboxes_booted", "cove_sessions_stored", "cove_sessions_unfit", "cove_disk_free_bytes", "cove_disk_size_bytes", "cove_backup_timestamp_seconds", "cove_backup_interval_seconds"} { // package app's
		tel.Gauge(name, "As of package app.", func() float64 { return 0 })
	}
	w.stop = sync.OnceFunc(func() {
		if err := h.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

const (
	trace   = "0af7651916cd43dd8448eb211c80319c"
	caller  = "b7ad6b7169203331"
	request = "my-request-0001"
)

// turn asks once, and returns when everything of it is over.
func (w *stack) turn(t *testing.T) {
	t.Helper()
	answer := w.send(t, "POST", "/api/v1/turns?wait=true", anns, `{"prompt":"What is 6 times 7, my secret is hunter22?"}`,
		"Traceparent", "00-"+trace+"-"+caller+"-01", "X-Request-Id", request)
	want(t, "the turn", answer, http.StatusOK)
	if !strings.Contains(answer.Body.String(), "It is 42.") {
		t.Errorf("the answer is %s", answer.Body)
	}
	w.stop()
}

// paths are the spans of a trace, each with those that it is in.
func paths(t *testing.T, spans []telemetry.EndedSpan) []string {
	t.Helper()
	byID := map[string]telemetry.EndedSpan{}
	for _, s := range spans {
		if s.Trace == trace {
			byID[s.ID] = s
		}
	}
	var out []string
	for _, s := range byID {
		path := s.Name
		for s.Parent != caller {
			parent, ok := byID[s.Parent]
			if !ok {
				t.Fatalf("the span %s has no parent", path)
			}
			s, path = parent, parent.Name+" > "+path
		}
		out = append(out, path)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestOneTraceGoesFromTheRequestToTheKernel also when the work goes on in goroutines that do not end with the request.
func TestOneTraceGoesFromTheRequestToTheKernel(t *testing.T) {
	t.Parallel()
	w := newStack(t)
	w.turn(t)
	got := paths(t, w.ended())
	const root = "POST /api/v1/turns"
	for _, path := range []string{
		root, root + " > claim", root + " > turn", root + " > turn > model", root + " > turn > execution", root + " > turn > execution > queue",
		root + " > turn > execution > kernel", root + " > store", root + " > turn > store", root + " > turn > execution > store",
	} {
		if !slices.Contains(got, path) {
			t.Errorf("there is no span %s; there are:\n%s", path, strings.Join(got, "\n"))
		}
	}
	models := 0
	for _, s := range w.ended() {
		if text := s.Name + strings.Join(slices.Collect(maps.Values(s.Attrs)), " "); strings.Contains(text, "6 * 7") || strings.Contains(text, "hunter22") || strings.Contains(text, "It is 42") {
			t.Errorf("the span %s says what was said: %v", s.Name, s.Attrs)
		}
		if s.Failed {
			t.Errorf("the span %s failed: %v", s.Name, s.Attrs)
		}
		if s.Name == "model" {
			models++
		}
		for name, value := range map[string]string{"claim": "sandbox=made", "model": "tokens_in=100", "execution": "outcome=ok", "turn": "outcome=completed"} {
			key, value, _ := strings.Cut(value, "=")
			if s.Name == name && s.Attrs[key] != value {
				t.Errorf("the span %s has %v and not %s %s", s.Name, s.Attrs, key, value)
			}
		}
	}
	if models != 2 {
		t.Errorf("the model was called %d times", models)
	}
}

// TestTheLogTellsOneRequest: what a request had done says so in every line, and nothing of what was said.
func TestTheLogTellsOneRequest(t *testing.T) {
	t.Parallel()
	w := newStack(t)
	w.turn(t)
	seen := map[string]map[string]any{}
	for line := range strings.Lines(w.log.String()) {
		var fields map[string]any
		must(t, json.Unmarshal([]byte(line), &fields))
		if fields["request"] == request {
			if fields["trace"] != trace {
				t.Errorf("no trace in %s", line)
			}
			seen[fields["msg"].(string)] = fields
		}
		for _, said := range []string{"6 * 7", "hunter22", "It is 42"} {
			if strings.Contains(line, said) {
				t.Errorf("the log says %s", line)
			}
		}
	}
	for message, fields := range map[string][]string{
		"request": {"method", "route", "status", "bytes", "seconds", "key", "ip"}, "session": {"change", "session", "project"},
		"execution finished": {"outcome", "seconds", "waited", "events", "execution", "session", "turn", "project"},
		"turn finished":      {"outcome", "seconds", "steps", "tokens_in", "tokens_out", "model", "turn", "conversation", "session", "project"},
	} {
		for _, field := range fields {
			if _, ok := seen[message][field]; !ok {
				t.Errorf("the line %q has no %s: %v", message, field, seen[message])
			}
		}
	}
	for _, message := range []string{"recovered", "draining", "drained"} {
		if !strings.Contains(w.log.String(), `"msg":"`+message+`"`) {
			t.Errorf("there is no line %q", message)
		}
	}
}

// TestTheGuideNamesTheMetrics: what docs/serve.md names is there after one turn and one refused request, and what is there is named.
func TestTheGuideNamesTheMetrics(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/serve.md")
	must(t, err)
	documented := regexp.MustCompile("`(cove_[a-z_]+)`").FindAllStringSubmatch(string(guide), -1)
	if len(documented) < 15 {
		t.Fatalf("the guide names %d metrics", len(documented))
	}
	w := newStack(t)
	want(t, "a request without a key", w.ask(t, "GET", "/api/v1/sessions", ""), http.StatusUnauthorized)
	w.turn(t)
	metrics := scrape(t, w.tel)
	there := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (cove_[a-z_]+) `).FindAllStringSubmatch(metrics, -1) {
		there[m[1]] = true
	}
	named := map[string]bool{}
	for _, m := range documented {
		named[m[1]] = true
		if !there[m[1]] {
			t.Errorf("the guide names %s, which there is not", m[1])
		}
	}
	for name := range there {
		if !named[name] {
			t.Errorf("the guide does not name %s", name)
		}
	}
	for _, line := range []string{
		`cove_turns_total{outcome="completed"} 1`, `cove_executions_total{outcome="ok"} 1`, `cove_sessions_total{change="created"} 1`,
		`cove_model_tokens_total{direction="in",model="test/scripted"} 200`, `cove_model_retries_total{model="test/scripted"} 1`,
		`cove_pool_claims_total{result="made"} 1`, `cove_requests_refused_total{code="unauthenticated"} 1`, `cove_executions_running 0`,
		`cove_executions_queued 0`, `cove_turns_running 0`, `cove_sessions_live 0`, `cove_execution_seconds_count{outcome="ok"} 1`,
		`cove_model_seconds_count{model="test/scripted",phase="answer"} 2`, `cove_stage_seconds_count{stage="first_event"} 1`,
		`cove_stage_seconds_count{stage="queue"} 1`, `cove_stage_seconds_count{stage="claim"} 1`, `cove_stage_seconds_count{stage="room"} 1`,
		`cove_stage_seconds_count{stage="model"} 2`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("there is no %s", line)
		}
	}
	for _, operation := range []string{"read", "write", "end"} {
		if !strings.Contains(metrics, `cove_store_seconds_count{operation="`+operation+`"}`) {
			t.Errorf("the time of the store's %s was not measured", operation)
		}
	}
}

func scrape(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	want(t, "the metrics", w, http.StatusOK)
	return w.Body.String()
}
