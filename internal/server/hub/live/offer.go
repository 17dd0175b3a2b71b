package live

import (
	"time"

	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
)

// Offer is what the code of a turn may call outside of its sandbox.
type Offer struct {
	Set     *tool.Set
	Globals bool
	Servers []tool.Tool // of set, those of servers that the host holds
	Call    tool.Calls  // of these
	Client  bool        // there are others, which the client performs: the code may outlive the turn
}

// longestWaits is how long the code of a turn may wait for results of its clients, all in all.
const longestWaits = 12 * time.Hour

// Tools is what the kernel is told of the offer. client performs what the client is to do.
func (o *Offer) Tools(client tool.Calls) *kernel.Tools {
	t := &kernel.Tools{Set: o.Set, Globals: o.Globals, Call: o.Call}
	if o.Client {
		t.Call, t.Patience = tool.Split(o.Servers, o.Call, client), longestWaits
	}
	return t
}
