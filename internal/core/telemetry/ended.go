package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// EndedSpan is what a span was.
type EndedSpan struct {
	Name   string
	Trace  string
	ID     string
	Parent string // "" for the first one of a trace
	Took   time.Duration
	Attrs  map[string]string
	Failed bool
}

// listener hears of spans that end.
type listener func(EndedSpan)

func (l listener) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

func (l listener) OnEnd(s sdktrace.ReadOnlySpan) {
	e := EndedSpan{
		Name: s.Name(), Trace: s.SpanContext().TraceID().String(), ID: s.SpanContext().SpanID().String(), Took: s.EndTime().Sub(s.StartTime()),
		Attrs: map[string]string{}, Failed: s.Status().Code == codes.Error,
	}
	if s.Parent().IsValid() {
		e.Parent = s.Parent().SpanID().String()
	}
	for _, a := range s.Attributes() {
		e.Attrs[string(a.Key)] = a.Value.String()
	}
	l(e)
}

func (l listener) Shutdown(context.Context) error   { return nil }
func (l listener) ForceFlush(context.Context) error { return nil }
