package turns

import (
	"context"
	"iter"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// Models are the models that a server can ask.
type Models interface {
	// Open connects to a model by PROVIDER/NAME, or by NAME alone where one provider is the default. "" is the default model.
	Open(ctx context.Context, name string) (model.Model, error)
	// List returns the models that can be asked.
	List(ctx context.Context) ([]ModelInfo, error)
}

// ModelInfo describes a model.
type ModelInfo struct {
	ID       string // as Open takes it
	Provider string
	Default  bool
	About    model.About
}

// Models lists the models that can be asked. Needs auth.ModelsRead.
func (r *Runner) Models(ctx context.Context, who auth.Principal) ([]ModelInfo, error) {
	if err := who.Require(auth.ModelsRead); err != nil {
		return nil, err
	}
	if r.o.Models == nil {
		return nil, nil
	}
	return r.o.Models.List(ctx)
}

// OpenModel connects to a model for a surface that passes requests through. The tokens are counted for the caller. Needs auth.ModelsRead and
// auth.ConversationsWrite. Problems: quota_tokens and those of opening it.
func (r *Runner) OpenModel(ctx context.Context, who auth.Principal, name string) (model.Model, error) {
	for _, action := range []auth.Action{auth.ModelsRead, auth.ConversationsWrite} { // asking a model costs, unlike listing models
		if err := who.Require(action); err != nil {
			return nil, err
		}
	}
	if err := r.meter.MayAsk(ctx, who.Project, who.Key); err != nil {
		return nil, err
	}
	m, err := r.openModel(ctx, name)
	if err != nil {
		return nil, err
	}
	return metered{m, r.o.Turns.Time, func(u model.Usage) {
		r.meter.AddUsage(ctx, who, used(u, r.about(m.Name()).Cost(u)))
	}}, nil
}

func (r *Runner) openModel(ctx context.Context, name string) (model.Model, error) {
	if r.o.Models == nil {
		return nil, problem.New(problem.ModelMissing, "the server has no model").WithHint("the operator has to configure one")
	}
	m, err := r.o.Models.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return model.Observed(m), nil
}

// about is what is known of a model.
func (r *Runner) about(name string) model.About {
	if r.o.About == nil {
		return model.About{}
	}
	return r.o.About(name)
}

// used is what the tokens of a model add to the day's counters.
func used(u model.Usage, c model.Cost) record.Usage {
	return record.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Cost: c.Amount, Currency: c.Currency}
}

// metered is a model that counts the tokens of every answer, and bounds an answer by the time of a turn.
type metered struct {
	model.Model
	time  time.Duration
	spend func(model.Usage)
}

func (m metered) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		ctx, cancel := record.WithLimit(ctx, m.time)
		defer cancel()
		said, finished := int64(0), false
		defer func() {
			if !finished && said > 0 {
				m.spend(model.Estimate(req, said)) // a caller that leaves before the end has used the tokens all the same
			}
		}()
		for part, err := range m.Model.Stream(ctx, req) {
			switch p := part.(type) {
			case model.TextDelta:
				said += int64(len(p.Text))
			case model.ReasoningDelta:
				said += int64(len(p.Text))
			case model.CallDelta:
				said += int64(len(p.Name) + len(p.Arguments))
			case model.Finish:
				finished = true
				m.spend(p.Usage)
			}
			if !yield(part, err) {
				return
			}
		}
	}
}
