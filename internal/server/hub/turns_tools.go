package hub

import (
	"context"
	"slices"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
)

// offer is what the code of a turn may call outside of its sandbox.
type offer struct {
	set     *tool.Set
	globals bool
	servers []tool.Tool // of set, those of servers that the host holds
	call    tool.Calls  // of these
	client  bool        // there are others, which the client performs: the code may outlive the turn
}

// longestWaits is how long the code of a turn may wait for results of its clients, all in all.
const longestWaits = 12 * time.Hour

// planTools finds what the turn's code may call.
func (h *Hub) planTools(ctx context.Context, p *plan, n NewTurn) error {
	if len(n.CodeTools)+len(n.Servers)+len(n.AskBefore) == 0 {
		return nil
	}
	if n.Kernels > 0 && len(n.CodeTools) > 0 {
		return problem.New(problem.TurnInvalid, "code that runs in several kernels cannot call the client's functions").WithHint("leave kernels out, or have the model call the functions")
	}
	o := &offer{globals: n.CodeGlobals, client: len(n.CodeTools) > 0}
	var err error
	if o.servers, o.call, err = h.serverTools(ctx, p.who, n.Servers, n.AskBefore); err != nil {
		return err
	}
	if o.set, err = tool.NewSet(slices.Concat(n.CodeTools, o.servers)); err != nil {
		return err
	}
	p.offer, p.spec.Offered = o, o.set
	return nil
}

// tools is what the kernel is told of the offer. client performs what the client is to do.
func (o *offer) tools(client tool.Calls) *kernel.Tools {
	t := &kernel.Tools{Set: o.set, Globals: o.globals, Call: o.call}
	if o.client {
		t.Call, t.Patience = tool.Split(o.servers, o.call, client), longestWaits
	}
	return t
}
