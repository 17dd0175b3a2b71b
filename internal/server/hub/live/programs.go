package live

import (
	"context"
	"slices"

	"cove/internal/core/problem"
	"cove/internal/machine/egress"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// CheckProgram returns why code that a surface is about to run as a program of its own, in a process, may not run: the rules for code, and the processor time of the day, hold for it as for
// an execution. "" is code of a language that the rules are not about. Needs auth.SessionsExecute. Problems: code_refused, code_unapproved, quota_cpu.
func (m *Manager) CheckProgram(ctx context.Context, who auth.Principal, code string) error {
	err := who.Require(auth.SessionsExecute)
	if err == nil {
		err = m.meter.MayRun(ctx, who.Project, who.Key)
	}
	if err == nil && code != "" {
		err = m.ScreenCode(ctx, &record.Execution{Project: who.Project, User: who.User, Key: who.Key, Code: code}, false)
	}
	if problem.Has(err, problem.CodeUnapproved) { // what its hint says is not for those whose client cannot ask anybody
		err = problem.Of(err).WithHint("nobody can be asked here; take another way, or have an administrator change the rules of the project")
	}
	return err
}

// WidestNetwork returns the network of a session of the caller's that may connect to as much as the server, the project and the key let it, for clients that cannot say where
// they want to connect to. It is nil where a session can have no network.
func (m *Manager) WidestNetwork(ctx context.Context, who auth.Principal) (*record.Network, error) {
	all, err := m.meter.ReachOf(ctx, who.Project, who.Key)
	if err != nil {
		return nil, err
	}
	all = append(all, m.o.Network.Rules)
	var allow []string
	for _, rules := range all {
		for _, rule := range rules.Allow {
			held := !slices.ContainsFunc(all, func(r egress.Rules) bool { return !r.Covers(rule) })
			if held && !slices.Contains(allow, rule.String()) {
				allow = append(allow, rule.String())
			}
		}
	}
	if len(allow) == 0 {
		return nil, nil
	}
	return &record.Network{Allow: allow[:min(len(allow), egress.MostRules)]}, nil
}
