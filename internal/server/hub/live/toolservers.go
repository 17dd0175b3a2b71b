package live

import (
	"context"
	"slices"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
)

// ToolServers are servers of tools that the operator has set up, and that the host runs or holds connections to. What they need to be allowed in stays with them.
// A project sees those that it may use. Safe for concurrent use.
type ToolServers interface {
	// Offer returns the tools of servers by name, each tool as SERVER.TOOL. It may take as long as a server needs to start. Problems: tool_server_not_found, also where the
	// project may not use one; tool_server_unreachable, tool_server_invalid.
	Offer(ctx context.Context, project string, names []string) ([]tool.Tool, error)
	// Call has a server perform a call of one of its tools, and returns soon after ctx ends. key may be "".
	Call(ctx context.Context, project, key string, call tool.Call) tool.Result
	// List returns what the project may use, by name.
	List(ctx context.Context, project string) []tool.Server
}

// ToolServers lists the servers whose tools code of the caller's project may call. Needs auth.SessionsRead.
func (m *Manager) ToolServers(ctx context.Context, who auth.Principal) ([]tool.Server, error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return nil, err
	}
	if m.o.ToolServers == nil {
		return nil, nil
	}
	return m.o.ToolServers.List(ctx, who.Project), nil
}

// ServerTools returns the tools of servers by name, and what performs calls of them. ask says before calls of which of them the user is asked. No names: no tools, and nil. Calls of other tools fail. Problems: those of ToolServers.Offer.
func (m *Manager) ServerTools(ctx context.Context, who auth.Principal, names, ask []string) ([]tool.Tool, tool.Calls, error) {
	if len(names)+len(ask) == 0 {
		return nil, nil, nil
	}
	if m.o.ToolServers == nil {
		return nil, nil, problem.New(problem.ToolServerNotFound, "there are no servers of tools").WithHint("leave them out")
	}
	tools, err := m.o.ToolServers.Offer(ctx, who.Project, names)
	if err == nil {
		tools, err = tool.AskBefore(ask, tools)
	}
	if err != nil {
		return nil, nil, err
	}
	return tools, tool.Each(func(ctx context.Context, c tool.Call) tool.Result {
		return m.o.ToolServers.Call(ctx, who.Project, who.Key, c)
	}), nil
}

// withServers returns what the code may call: tools, and those of servers by name.
func (m *Manager) withServers(ctx context.Context, who auth.Principal, tools *kernel.Tools, names, ask []string) (*kernel.Tools, error) {
	offered, call, err := m.ServerTools(ctx, who, names, ask)
	if err != nil || call == nil {
		return tools, err
	}
	out := kernel.Tools{Call: call}
	if tools != nil {
		out = *tools
		var own []tool.Tool
		for _, t := range tools.Set.All {
			own = append(own, t)
		}
		out.Call = tool.Split(offered, call, tools.Call)
		offered = slices.Concat(own, offered)
	}
	out.Set, err = tool.NewSet(offered)
	return &out, err
}
