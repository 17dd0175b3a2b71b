package meter

import (
	"context"
	"slices"

	"cove/internal/code/redact"
	"cove/internal/machine/egress"
	"cove/internal/server/hub/record"
)

// ReachOf returns the rules of a project and of a key, each of which has to allow a destination.
func (m *Meter) ReachOf(ctx context.Context, project, key string) ([]egress.Rules, error) {
	limits, err := m.Quotas(ctx, project, key)
	if err != nil {
		return nil, err
	}
	var all []egress.Rules
	for _, q := range []record.Quota{limits.Project, limits.Key} {
		if q.Network == nil {
			continue
		}
		rules, err := egress.ParseRules(q.Network.Allow, q.Network.Deny)
		if err != nil {
			return nil, err
		}
		all = append(all, rules)
	}
	return all, nil
}

// RedactionKinds is what holds for a project and a key: the project's own in the place of the server's, and the key's besides. When that cannot be read, everything is taken out.
func (m *Meter) RedactionKinds(ctx context.Context, project, key string) redact.Kinds {
	limits, err := m.Quotas(ctx, project, key)
	if err != nil {
		m.work.Log.WarnContext(ctx, "what is to be redacted could not be read, so that all kinds are", "project", project, "error", err)
		return redact.Kinds{Secrets: true, Guesses: true, Cards: true, People: true, Emails: true}
	}
	r := m.o.Redaction
	if of := limits.Project.Redact; of != nil {
		r = *of
	}
	if of := limits.Key.Redact; of != nil {
		r.Kinds = slices.Concat(r.Kinds, of.Kinds)
	}
	return r.KindSet()
}

// CodeRules are what holds for code of a project and a key: the project's own in the place of the server's, and the key's besides.
func (m *Meter) CodeRules(ctx context.Context, project, key string) (record.CodeRules, error) {
	limits, err := m.Quotas(ctx, project, key)
	if err != nil {
		return record.CodeRules{}, err
	}
	rules := m.o.Code
	if of := limits.Project.Code; of != nil {
		rules = *of
	}
	if of := limits.Key.Code; of != nil {
		rules = record.StrictestRules(rules, *of)
	}
	return rules, nil
}
