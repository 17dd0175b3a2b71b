// Package telemetry is what an operator sees of a running server: logs without secrets, metrics for Prometheus, traces for OpenTelemetry.
//
// What happens is told to the context: Span, Stage, Observe and Count find the Telemetry that With put there, and do nothing where there
// is none, as in the command line and in tests. Nothing here blocks or fails a request: what a sink cannot take is dropped.
package telemetry

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/trace"
)

// Options say what a Telemetry is made of.
type Options struct {
	Version string
	Getenv  func(string) string // for the OTEL_* settings; nil: no traces
	Errors  func(error)         // hears of spans that could not be sent, at most once a minute; nil: nobody
	Console io.Writer           // of OTEL_TRACES_EXPORTER=console; nil: nothing is written
	// Ended is told of every span as soon as it has ended, whatever the settings are. It must be quick and safe for concurrent use.
	Ended func(EndedSpan)
}

// Telemetry is safe for concurrent use. A nil one does nothing.
type Telemetry struct {
	registry   *prometheus.Registry
	histograms map[Histogram]*series[prometheus.Observer]
	counters   map[Counter]*series[prometheus.Counter]
	tracer     trace.Tracer // nil while tracing is off
	stop       func(context.Context) error
}

// New returns a Telemetry whose metrics begin at zero. It sends nothing unless the environment asks for traces.
func New(ctx context.Context, o Options) (*Telemetry, error) {
	t := &Telemetry{
		registry:   prometheus.NewRegistry(),
		histograms: map[Histogram]*series[prometheus.Observer]{},
		counters:   map[Counter]*series[prometheus.Counter]{},
	}
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	t.registerMetrics()
	t.Gauge("cove_build_info", "1, with the version of the program.", func() float64 { return 1 }, "version", o.Version)
	if err := t.startTracing(ctx, o); err != nil {
		return nil, err
	}
	return t, nil
}

// Metrics serves what was measured in Prometheus' formats.
func (t *Telemetry) Metrics() http.Handler {
	if t == nil {
		return http.NotFoundHandler()
	}
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: 4, Timeout: 10 * time.Second, ErrorHandling: promhttp.ContinueOnError,
	})
}

// Close sends the spans that were not sent yet, for as long as ctx allows.
func (t *Telemetry) Close(ctx context.Context) error {
	if t == nil || t.stop == nil {
		return nil
	}
	return t.stop(ctx)
}

type telemetryKey struct{}
type requestKey struct{}

// With returns a context whose Span, Stage, Observe and Count go to t.
func With(ctx context.Context, t *Telemetry) context.Context {
	return context.WithValue(ctx, telemetryKey{}, t)
}

// From returns the context's Telemetry, or nil, which is good to use.
func From(ctx context.Context) *Telemetry {
	t, _ := ctx.Value(telemetryKey{}).(*Telemetry)
	return t
}

// WithRequest returns a context whose log lines and spans have the request's id.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// RequestID returns the id that WithRequest set, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}
