package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"cove/internal/core/problem"
)

// Span begins a span and returns what ends it, with the error that the work ended with, or nil. The returned context is for the work.
// Attributes must not hold code, prompts, contents or keys; their values are cleaned like those of a log line.
func Span(ctx context.Context, name string, attrs ...slog.Attr) (context.Context, func(error)) {
	t := From(ctx)
	if t == nil || t.tracer == nil {
		return ctx, func(error) {}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(attributes(attrs)...))
	return ctx, func(err error) { end(span, err) }
}

// Part is Span for what is worth a span as a part of something alone, as an operation of the database. The work has none of its own.
func Part(ctx context.Context, name string, attrs ...slog.Attr) func(error) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return func(error) {}
	}
	_, end := Span(ctx, name, attrs...)
	return end
}

// Step begins a stage of a request that is a span of its own, and returns what ends both. See Stage and Span.
func Step(ctx context.Context, stage string, attrs ...slog.Attr) (context.Context, func(error)) {
	over := Stage(ctx, stage)
	ctx, end := Span(ctx, stage, attrs...)
	return ctx, func(err error) {
		over()
		end(err)
	}
}

// Request begins the span of an HTTP request, as a child of the caller's where the headers name one, and returns what ends it with the
// route's pattern and the status.
func Request(ctx context.Context, h http.Header, method string) (context.Context, func(route string, status int)) {
	t := From(ctx)
	if t == nil || t.tracer == nil {
		return ctx, func(string, int) {}
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
	ctx, span := t.tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", method), attribute.String("cove.request", RequestID(ctx))))
	return ctx, func(route string, status int) {
		span.SetName(method + " " + route)
		span.SetAttributes(attribute.String("http.route", route), attribute.Int("http.response.status_code", status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// Note adds to what the context's span says of itself.
func Note(ctx context.Context, attrs ...slog.Attr) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attributes(attrs)...)
	}
}

// Carry returns into with from's Telemetry, request id and span, for work that from asks for and that does not end with it.
func Carry(into, from context.Context) context.Context {
	if t := From(from); t != nil {
		into = With(into, t)
	}
	if id := RequestID(from); id != "" {
		into = WithRequest(into, id)
	}
	if span := trace.SpanFromContext(from); span.SpanContext().IsValid() {
		into = trace.ContextWithSpan(into, span)
	}
	return into
}

// TraceID returns the id of the context's trace, or "".
func TraceID(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.HasTraceID() {
		return c.TraceID().String()
	}
	return ""
}

// end says how the work ended by the problem's kind and code. Its message may quote what a user wrote, and stays out.
func end(span trace.Span, err error) {
	if err != nil {
		p := problem.Of(err)
		span.SetAttributes(attribute.String("cove.problem", p.Code))
		span.SetStatus(codes.Error, string(p.Kind)+" "+p.Code)
	}
	span.End()
}

func attributes(attrs []slog.Attr) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, len(attrs))
	for _, a := range attrs {
		a = (*cleaner)(nil).attr(nil, a)
		switch a.Value.Kind() {
		case slog.KindInt64:
			out = append(out, attribute.Int64(a.Key, a.Value.Int64()))
		case slog.KindFloat64:
			out = append(out, attribute.Float64(a.Key, a.Value.Float64()))
		case slog.KindBool:
			out = append(out, attribute.Bool(a.Key, a.Value.Bool()))
		default:
			out = append(out, attribute.String(a.Key, a.Value.String()))
		}
	}
	return out
}

// startTracing obeys OpenTelemetry's own settings: nothing is sent unless an endpoint is set, or the console is named.
func (t *Telemetry) startTracing(ctx context.Context, o Options) error {
	exporter, err := exporterFor(ctx, o)
	if exporter == nil && o.Ended == nil || err != nil {
		return err
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "cove"), attribute.String("service.version", o.Version)), resource.WithFromEnv())
	if err != nil {
		return problem.New(problem.TracesInvalid, "the settings for traces have a mistake").WithCause(err)
	}
	if o.Errors != nil {
		otel.SetErrorHandler(atMostEach(time.Minute, o.Errors))
	}
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(about)}
	if exporter != nil {
		// The batcher drops spans when its queue is full and never waits.
		options = append(options, sdktrace.WithBatcher(exporter))
	}
	if o.Ended != nil {
		options = append(options, sdktrace.WithSpanProcessor(listener(o.Ended)))
	}
	provider := sdktrace.NewTracerProvider(options...)
	t.tracer, t.stop = provider.Tracer("cove"), provider.Shutdown
	return nil
}

func exporterFor(ctx context.Context, o Options) (sdktrace.SpanExporter, error) {
	if o.Getenv == nil || strings.EqualFold(o.Getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	switch kind := o.Getenv("OTEL_TRACES_EXPORTER"); kind {
	case "none":
		return nil, nil
	case "console":
		if o.Console == nil {
			return nil, nil
		}
		return stdouttrace.New(stdouttrace.WithWriter(o.Console))
	case "", "otlp":
	default:
		return nil, problem.New(problem.TracesInvalid, fmt.Sprintf("OTEL_TRACES_EXPORTER is %q, which cove does not have", kind)).
			WithHint("set it to otlp, console or none")
	}
	if o.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && o.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return nil, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, problem.New(problem.TracesInvalid, "cannot send traces with these OTEL_EXPORTER_OTLP settings").WithCause(err)
	}
	return exporter, nil
}

// atMostEach passes on one error and is then silent for the pause: a collector that is down would fill the log.
func atMostEach(pause time.Duration, to func(error)) otel.ErrorHandler {
	var mu sync.Mutex
	var last time.Time
	return otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		quiet := !last.IsZero() && time.Since(last) < pause
		if !quiet {
			last = time.Now()
		}
		mu.Unlock()
		if !quiet {
			to(err)
		}
	})
}
