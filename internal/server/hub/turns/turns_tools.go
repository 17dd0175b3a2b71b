package turns

import (
	"context"
	"slices"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/record"
)

// planTools finds what the turn's code may call.
func (r *Runner) planTools(ctx context.Context, p *plan, n record.NewTurn) error {
	if len(n.CodeTools)+len(n.Servers)+len(n.AskBefore) == 0 {
		return nil
	}
	if n.Kernels > 0 && len(n.CodeTools) > 0 {
		return problem.New(problem.TurnInvalid, "code that runs in several kernels cannot call the client's functions").WithHint("leave kernels out, or have the model call the functions")
	}
	o := &live.Offer{Globals: n.CodeGlobals, Client: len(n.CodeTools) > 0}
	var err error
	if o.Servers, o.Call, err = r.live.ServerTools(ctx, p.who, n.Servers, n.AskBefore); err != nil {
		return err
	}
	if o.Set, err = tool.NewSet(slices.Concat(n.CodeTools, o.Servers)); err != nil {
		return err
	}
	p.offer, p.spec.Offered = o, o.Set
	return nil
}
