package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"cove/internal/core/telemetry"
)

// TestACollector cannot be parallel: OpenTelemetry's exporter reads the environment of the process.
func TestACollector(t *testing.T) {
	got := make(chan string, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.URL.Path }))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	tel := newTelemetry(t, telemetry.Options{Getenv: os.Getenv})
	_, end := telemetry.Span(telemetry.With(t.Context(), tel), "x")
	end(nil)
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if path := <-got; path != "/v1/traces" {
		t.Errorf("the spans went to %s", path)
	}
}

// TestACollectorThatIsDownBlocksNobody: far more spans than the queue holds are made at once, and the end is bounded.
func TestACollectorThatIsDownBlocksNobody(t *testing.T) {
	hold := make(chan struct{})
	stuck := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
	defer stuck.Close()
	defer close(hold)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", stuck.URL)
	tel := newTelemetry(t, telemetry.Options{Getenv: os.Getenv})
	ctx := telemetry.With(t.Context(), tel)
	for range 20_000 {
		_, end := telemetry.Span(ctx, "x")
		end(nil)
	}
	bounded, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := tel.Close(bounded); err == nil {
		t.Error("the spans cannot have been sent")
	}
}
