package hub

import (
	"cmp"
	"context"
	"slices"

	"cove/internal/code/screen"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
)

// CodePolicy says what becomes of code that calls for a second look; see package caution.
type CodePolicy string

// The policies, the least strict first.
const (
	CodeOff    CodePolicy = "off"    // nobody looks
	CodeNote   CodePolicy = "note"   // the findings are recorded with the execution
	CodeAsk    CodePolicy = "ask"    // it waits for a user's word: a turn as with ApprovalAlways, an execution until it is asked for with NewExecution.Approved
	CodeRefuse CodePolicy = "refuse" // it does not run
)

func policies() []CodePolicy { return []CodePolicy{CodeOff, CodeNote, CodeAsk, CodeRefuse} }

// CodeRules say what becomes of code before it runs. Its zero value looks at nothing.
type CodeRules struct {
	Policy CodePolicy `json:"policy"`
	// Rules are those of package screen that CodeAsk and CodeRefuse are about besides the serious ones.
	Rules []string `json:"rules,omitempty"`
}

// Check returns what is wrong with the rules, as a problem with code code_rules_invalid.
func (r CodeRules) Check() error {
	if r.Policy != "" && !slices.Contains(policies(), r.Policy) {
		return problem.New(problem.CodeRulesInvalid, "there is no policy "+string(r.Policy)+" for code").WithHint("the policies are off, note, ask and refuse")
	}
	for _, rule := range r.Rules {
		if !screen.Known(rule) {
			p := problem.New(problem.CodeRulesInvalid, "there is no rule "+rule+" for code")
			names := ""
			for _, r := range screen.Rules() {
				names += ", " + r.Name
			}
			return p.WithHint("the rules are " + names[2:])
		}
	}
	return nil
}

// matters says whether the policy is about one of the findings.
func (r CodeRules) matters(found []screen.Finding) bool {
	return slices.ContainsFunc(found, func(f screen.Finding) bool { return screen.Serious(f.Rule) || slices.Contains(r.Rules, f.Rule) })
}

// strictest is what holds where both do.
func strictest(a, b CodeRules) CodeRules {
	out := CodeRules{Policy: a.Policy, Rules: slices.Concat(a.Rules, b.Rules)}
	if slices.Index(policies(), cmp.Or(b.Policy, CodeOff)) > slices.Index(policies(), cmp.Or(a.Policy, CodeOff)) {
		out.Policy = b.Policy
	}
	return out
}

// codeRules are what holds for code of a project and a key: the project's own in the place of the server's, and the key's besides.
func (h *Hub) codeRules(ctx context.Context, project, key string) (CodeRules, error) {
	limits, err := h.quotas(ctx, project, key)
	if err != nil {
		return CodeRules{}, err
	}
	rules := h.o.Code
	if of := limits.project.Code; of != nil {
		rules = *of
	}
	if of := limits.key.Code; of != nil {
		rules = strictest(rules, *of)
	}
	return rules, nil
}

// screen looks at the code of an execution that a client asked for, before it is recorded, and returns a problem where the code does not run. What a turn's model wrote
// was decided before.
func (h *Hub) screen(ctx context.Context, e *Execution, approved bool) error {
	rules, err := h.codeRules(ctx, e.Project, e.Key)
	if err != nil || cmp.Or(rules.Policy, CodeOff) == CodeOff {
		return err
	}
	e.Cautions = screen.Look(e.Code)
	if e.Turn != "" || !rules.matters(e.Cautions) {
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
		rules, err := h.codeRules(ctx, p.turn.Project, p.turn.Key)
		if err != nil {
			h.log.WarnContext(ctx, "the rules for code could not be read, so that code of a turn waits for its user", "error", err)
			return loop.Screening{Ask: true}
		}
		if cmp.Or(rules.Policy, CodeOff) == CodeOff {
			return out
		}
		found := screen.Look(code)
		if !rules.matters(found) {
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
