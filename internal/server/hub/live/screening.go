package live

import (
	"cmp"
	"context"

	"cove/internal/code/screen"
	"cove/internal/core/problem"
	"cove/internal/server/hub/record"
)

// ScreenCode looks at the code of an execution that a client asked for, before it is recorded, and returns a problem where the code does not run. What a turn's model wrote
// was decided before.
func (m *Manager) ScreenCode(ctx context.Context, e *record.Execution, approved bool) error {
	rules, err := m.meter.CodeRules(ctx, e.Project, e.Key)
	if err != nil || cmp.Or(rules.Policy, record.CodeOff) == record.CodeOff {
		return err
	}
	e.Cautions = screen.Look(e.Code)
	if e.Turn != "" || !rules.Concern(e.Cautions) {
		return nil
	}
	switch {
	case rules.Policy == record.CodeRefuse:
		return problem.New(problem.CodeRefused, "the rules for code do not let this run. "+screen.Describe(e.Cautions)).
			WithHint("take another way; an administrator can change the rules of the project")
	case rules.Policy == record.CodeAsk && !approved:
		return problem.New(problem.CodeUnapproved, "somebody has to look at this code before it runs. "+screen.Describe(e.Cautions)).
			WithHint(`send it again with "approved": true when somebody has`)
	}
	return nil
}
