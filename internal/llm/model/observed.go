package model

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"cove/internal/core/telemetry"
)

// Observed is a model each of whose calls is seen by the context's telemetry: its time until the first word and to the end, its tokens, and how
// often it was repeated. What is said is not.
func Observed(m Model) Model { return observed{m} }

type observed struct{ Model }

func (o observed) Stream(ctx context.Context, req Request) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		ctx, over := telemetry.Step(ctx, telemetry.StageModel, slog.String("model", o.Name()))
		c := call{name: o.Name(), began: time.Now()}
		defer func() {
			c.end(ctx)
			over(c.failed)
		}()
		for part, err := range o.Model.Stream(ctx, req) {
			c.hear(ctx, part, err)
			if !yield(part, err) {
				return
			}
		}
	}
}

// call is what is known of one call.
type call struct {
	name    string
	began   time.Time
	spoken  bool
	retries int
	usage   Usage
	reason  FinishReason
	failed  error
}

func (c *call) hear(ctx context.Context, part Part, err error) {
	switch p := part.(type) {
	case Retry:
		c.retries++
		telemetry.Count(ctx, telemetry.Retries, 1, c.name)
		return
	case Finish:
		c.usage, c.reason = p.Usage, p.Reason
	}
	if c.failed = err; err == nil && !c.spoken {
		c.spoken = true
		telemetry.Observe(ctx, telemetry.Model, time.Since(c.began), c.name, "first_token")
	}
}

func (c *call) end(ctx context.Context) {
	if c.failed == nil && c.reason != "" {
		telemetry.Observe(ctx, telemetry.Model, time.Since(c.began), c.name, "answer")
	}
	telemetry.Count(ctx, telemetry.Tokens, float64(c.usage.InputTokens), c.name, "in")
	telemetry.Count(ctx, telemetry.Tokens, float64(c.usage.OutputTokens), c.name, "out")
	telemetry.Note(ctx, slog.Int64("tokens_in", c.usage.InputTokens), slog.Int64("tokens_out", c.usage.OutputTokens), slog.Int("retries", c.retries),
		slog.String("reason", string(c.reason)))
}
