package hub

import (
	"cmp"
	"context"

	"cove/internal/code/screen"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
)

// screen looks at the code of an execution that a client asked for, before it is recorded, and returns a problem where the code does not run. What a turn's model wrote
// was decided before.
func (h *Hub) screen(ctx context.Context, e *Execution, approved bool) error {
	rules, err := h.CodeRules(ctx, e.Project, e.Key)
	if err != nil || cmp.Or(rules.Policy, CodeOff) == CodeOff {
		return err
	}
	e.Cautions = screen.Look(e.Code)
	if e.Turn != "" || !rules.Concern(e.Cautions) {
		return nil
	}
	switch {
	case rules.Policy == CodeRefuse:
		return problem.New(problem.CodeRefused, "the rules for code do not let this run. "+screen.Describe(e.Cautions)).
			WithHint("take another way; an administrator can change the rules of the project")
	case rules.Policy == CodeAsk && !approved:
		return problem.New(problem.CodeUnapproved, "somebody has to look at this code before it runs. "+screen.Describe(e.Cautions)).
			WithHint(`send it again with "approved": true when somebody has`)
	}
	return nil
}

// screenTurn is loop.Turn's Screen: what becomes of the model's code.
func (h *Hub) screenTurn(ctx context.Context, p *plan) func(code string) loop.Screening {
	return func(code string) loop.Screening {
		out := loop.Screening{Ask: p.asks}
		rules, err := h.CodeRules(ctx, p.turn.Project, p.turn.Key)
		if err != nil {
			h.work.Log.WarnContext(ctx, "the rules for code could not be read, so that code of a turn waits for its user", "error", err)
			return loop.Screening{Ask: true}
		}
		if cmp.Or(rules.Policy, CodeOff) == CodeOff {
			return out
		}
		found := screen.Look(code)
		if !rules.Concern(found) {
			return out
		}
		why := screen.Describe(found)
		if rules.Policy == CodeRefuse || rules.Policy == CodeAsk && p.alone {
			out.Refuse = why
		} else if rules.Policy == CodeAsk {
			out.Ask, out.Why = true, why
		}
		return out
	}
}
