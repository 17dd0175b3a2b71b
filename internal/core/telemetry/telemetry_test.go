package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
)

func scrape(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("the metrics are a %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func newTelemetry(t *testing.T, o telemetry.Options) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return tel
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t, telemetry.Options{Version: "1.2.3"})
	ctx := telemetry.With(t.Context(), tel)
	telemetry.Stage(ctx, telemetry.StageQueue)()
	telemetry.Count(ctx, telemetry.Tokens, 7, "openai/x", "in")
	telemetry.Count(ctx, telemetry.Gaps, 1)
	telemetry.Count(ctx, telemetry.Gaps, -1)                     // would be a panic in the library
	telemetry.Count(ctx, telemetry.Tokens, 1)                    // too few values
	telemetry.Count(ctx, telemetry.Executions, 1, "a", "b", "c") // too many
	telemetry.Count(ctx, "cove_unknown", 1)
	telemetry.Observe(ctx, telemetry.Store, 3*time.Millisecond, "a\xffb")
	tel.Gauge("cove_sessions_live", "Sessions in memory.", func() float64 { return 4 })
	got := scrape(t, tel)
	for _, want := range []string{
		`cove_build_info{version="1.2.3"} 1`, `cove_stage_seconds_count{stage="queue"} 1`, `cove_model_tokens_total{direction="in",model="openai/x"} 7`,
		"cove_event_gaps_total 1\n", "cove_sessions_live 4", `cove_executions_total{outcome="a"} 1`, "go_goroutines", "process_open_fds",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

func TestNothingHappensWithoutTelemetry(t *testing.T) {
	t.Parallel()
	var none *telemetry.Telemetry
	for _, ctx := range []context.Context{t.Context(), telemetry.With(t.Context(), none)} {
		telemetry.Stage(ctx, "x")()
		telemetry.Count(ctx, telemetry.Gaps, 1)
		_, end := telemetry.Span(ctx, "x")
		end(errors.New("x"))
	}
	none.Gauge("x", "", nil)
	if err := none.Close(t.Context()); err != nil || none.Metrics() == nil {
		t.Error(err)
	}
}

// TestCallersCannotFillTheMemory: label values that callers choose are bounded.
func TestCallersCannotFillTheMemory(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t, telemetry.Options{})
	for i := range 5000 {
		tel.Count(telemetry.Tokens, 1, fmt.Sprintf("model-%d-%s", i, strings.Repeat("x", 1000)), "in")
	}
	got := scrape(t, tel)
	if n := strings.Count(got, "\ncove_model_tokens_total{"); n > 501 {
		t.Errorf("there are %d series", n)
	}
	if !strings.Contains(got, `cove_model_tokens_total{direction="other",model="other"} 4500`) {
		t.Error("what is above the bound is not counted as other")
	}
	if len(got) > 1<<20 {
		t.Errorf("the metrics have %d bytes", len(got))
	}
}

func settings(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestTraces(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tel := newTelemetry(t, telemetry.Options{Getenv: settings("OTEL_TRACES_EXPORTER", "console"), Console: &out, Version: "9"})
	ctx := telemetry.WithRequest(telemetry.With(t.Context(), tel), "req_7")
	parent := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	ctx, done := telemetry.Request(ctx, parent, "POST")
	if got := telemetry.TraceID(ctx); got != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the trace is %s and not the caller's", got)
	}
	_, end := telemetry.Span(ctx, "kernel.execute", slog.String("session", "ses_1"), slog.Int("n", 3), slog.String("token", "sk-abcdefghijklmnop"))
	end(problem.Received(problem.Timeout, "execution_timeout", "the code that said hunter2 took too long"))
	done("/api/v1/sessions/{session}/executions", 504)
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kernel.execute", "ses_1", "execution_timeout", "POST /api/v1/sessions/{session}/executions", "req_7", "0af7651916cd43dd8448eb211c80319c"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the spans lack %s", want)
		}
	}
	for _, never := range []string{"sk-abcdefghijklmnop", "hunter2"} {
		if strings.Contains(out.String(), never) {
			t.Errorf("a span has %s", never)
		}
	}
}

func TestTracesAreOffUnlessAsked(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{
		{}, {"OTEL_TRACES_EXPORTER", "none", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"},
		{"OTEL_SDK_DISABLED", "true", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"}, {"OTEL_TRACES_EXPORTER", "otlp"},
	} {
		tel := newTelemetry(t, telemetry.Options{Getenv: settings(env...)})
		ctx, end := telemetry.Span(telemetry.With(t.Context(), tel), "x")
		end(nil)
		if telemetry.TraceID(ctx) != "" {
			t.Errorf("%v makes traces", env)
		}
	}
	_, err := telemetry.New(t.Context(), telemetry.Options{Getenv: settings("OTEL_TRACES_EXPORTER", "zipkin")})
	if p := problem.Of(err); p == nil || p.Code != "traces_invalid" {
		t.Errorf("an unknown exporter: %v", err)
	}
}
